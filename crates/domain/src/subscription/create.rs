//! Rules for creating a subscription, and the validation that creating and updating share.

use jiff::Timestamp;

use super::{
    CreateContext, FieldError, NewSubscription, Offer, Subscription, SubscriptionStatus, Trial,
    billing::{Account, BillingChange, days_after},
};
use crate::{BillingCycle, Money, Rule, ValidationError, card_number::reject_card_number};

impl Subscription {
    /// Creates a subscription, or returns all validation errors.
    pub fn create(
        new: &NewSubscription,
        context: &CreateContext<'_>,
    ) -> Result<BillingChange, Vec<FieldError>> {
        let CreateContext { offer, now, .. } = *context;
        let mut errors = offer.validate();
        let mut created = new.to_subscription(context);
        match new
            .price
            .as_ref()
            .map(|price| Money::from_decimal(price, offer.price.currency()))
        {
            Some(Ok(price)) => created.custom_price = Some(price),
            Some(Err(error)) => errors.push(("price", error)),
            None => {}
        }
        errors.extend(created.terms().validate_amount());
        errors.extend(reject_card_number(
            "external_subscription_id",
            new.external_id.as_ref(),
        ));
        let trial_days = if context.had_trial {
            0
        } else {
            offer.trial_days
        };
        let mut entries = Vec::new();
        if created.needs_price() && new.price.is_none() {
            let message = "is required: the billing cycle differs from the plan's";
            errors.push(("price", ValidationError::new(Rule::Required, message)));
        } else if let Some(dunning) = created.dunning() {
            let mut account = Account::new(created.clone(), dunning, now);
            // A trial that the client asks for may repeat an earlier one.
            let days = match new.status {
                None => trial_days,
                Some(_) => offer.trial_days,
            };
            match account.open(new, days) {
                Ok(()) => {
                    BillingChange {
                        after: created,
                        entries,
                    } = account.finish();
                }
                Err(error) => errors.push(error),
            }
            errors.extend(created.validate_first_renewal(new.renews_at));
            errors.extend(created.validate_end_after_start());
        } else {
            errors.extend(created.create_recorded(new, trial_days, now));
        }
        // Only a subscription that gives access can be suspended.
        match new.is_active {
            Some(true) if new.status.is_none() && !created.status_at(now).gives_access() => {
                let pays_first = created.status == SubscriptionStatus::Pending;
                if !pays_first {
                    errors.push(created.no_access_error(now));
                }
            }
            Some(false) => created.suspended = created.has_access(now),
            _ => {}
        }
        created.status = created.status_at(now);
        if created.status == SubscriptionStatus::Expired {
            created.late_since = None;
        }
        if errors.is_empty() {
            Ok(BillingChange {
                after: created,
                entries,
            })
        } else {
            Err(errors)
        }
    }

    /// Returns whether managed billing requires a price that is unknown.
    fn needs_price(&self) -> bool {
        let is_managed_tenant = self.lifecycle != super::Lifecycle::Recorded;
        is_managed_tenant && self.external_id.is_none() && self.price().is_none()
    }

    /// Applies the rules for a subscription that a client or a provider reports on.
    fn create_recorded(
        &mut self,
        new: &NewSubscription,
        trial_days: u16,
        now: Timestamp,
    ) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if new.status.is_none() && trial_days > 0 {
            self.status = SubscriptionStatus::OnTrial;
        }
        let trial_end = days_after(self.starts_at, trial_days).filter(|_| trial_days > 0);
        if self.status == SubscriptionStatus::OnTrial
            && new.renews_at.is_none()
            && let Some(end) = trial_end
            && self.billing_cycle != BillingCycle::Lifetime
        {
            self.renews_at = Some(end);
            self.anchor = end;
        }
        if self.status == SubscriptionStatus::OnTrial {
            self.trial = self.renews_at.or(trial_end).map(|ends_at| Trial {
                plan: self.plan.id,
                ends_at,
            });
        }
        match self.status {
            SubscriptionStatus::Expired if self.ends_at.is_some_and(|end| end > now) => {
                errors.push(future_end_error());
            }
            // Without an explicit end, the subscription ends now, or at its start if that is later.
            SubscriptionStatus::Cancelled | SubscriptionStatus::Expired => {
                let end = now.max(self.starts_at);
                self.ends_at.get_or_insert(end);
            }
            SubscriptionStatus::Pending
            | SubscriptionStatus::OnTrial
            | SubscriptionStatus::Active
            | SubscriptionStatus::Paused
            | SubscriptionStatus::PastDue
            | SubscriptionStatus::Unpaid => {}
        }
        errors.extend(self.validate_dates());
        self.status = self.status_at(now);
        self.sync_late_since(now);
        errors
    }

    /// Checks `renews_at` and `ends_at` against `starts_at` and the billing cycle.
    pub(super) fn validate_dates(&self) -> Vec<FieldError> {
        let error = |message: String| ValidationError::new(Rule::InconsistentDates, message);
        let mut errors = Vec::new();
        let start = self.starts_at;
        let before_start = || error(format!("must not be before starts_at ({start})"));
        if self.renews_at.is_some() && self.billing_cycle == BillingCycle::Lifetime {
            let message = "must be null: a lifetime subscription does not renew".to_owned();
            errors.push(("renews_at", error(message)));
        } else if self.renews_at.is_some_and(|renewal| renewal < start) {
            errors.push(("renews_at", before_start()));
        }
        errors.extend(self.validate_end_after_start());
        errors
    }

    /// Checks the end of the first period or the trial that a client sent.
    fn validate_first_renewal(&self, renewal: Option<Timestamp>) -> Option<FieldError> {
        let (renewal, start) = (renewal?, self.starts_at);
        let message = if self.billing_cycle == BillingCycle::Lifetime && self.trial.is_none() {
            "must be null: a lifetime subscription does not renew".to_owned()
        } else if renewal < start {
            format!("must not be before starts_at ({start})")
        } else {
            return None;
        };
        let error = ValidationError::new(Rule::InconsistentDates, message);
        Some(("renews_at", error))
    }

    /// Checks that `ends_at` is not before `starts_at`.
    pub(super) fn validate_end_after_start(&self) -> Option<FieldError> {
        let start = self.starts_at;
        self.ends_at.filter(|end| *end < start)?;
        let message = format!("must not be before starts_at ({start})");
        let error = ValidationError::new(Rule::InconsistentDates, message);
        Some(("ends_at", error))
    }

    /// Returns the error for `is_active: true` on a subscription that gives no access.
    pub(super) fn no_access_error(&self, now: Timestamp) -> FieldError {
        let status = self.status_at(now);
        let message = format!(
            "cannot be true while status is {status}; change status, or leave is_active out"
        );
        (
            "is_active",
            ValidationError::new(Rule::InconsistentStatus, message),
        )
    }
}

/// Returns the error for status `expired` with a future `ends_at`.
pub(super) fn future_end_error() -> FieldError {
    let message = "must not be in the future when status is expired";
    (
        "ends_at",
        ValidationError::new(Rule::InconsistentStatus, message),
    )
}

impl Offer {
    /// Returns an error if the plan is inactive.
    pub(super) fn validate(&self) -> Vec<FieldError> {
        if self.is_active {
            return Vec::new();
        }
        let message = "must be an active plan; existing subscriptions keep an inactive one";
        vec![(
            "subscription_plan_id",
            ValidationError::new(Rule::PlanInactive, message),
        )]
    }
}
