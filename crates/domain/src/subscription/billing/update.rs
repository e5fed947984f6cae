//! Applying the fields of an update request to a managed subscription.

use jiff::Timestamp;

use super::{Account, BillingChange, StatusDates, StatusError, Terms, create::trial_end_error};
use crate::{
    FieldError, Rule, ValidationError,
    subscription::{
        SubscriptionChanges, SubscriptionStatus, SubscriptionUpdateError, create::future_end_error,
    },
};

impl Account {
    /// Applies changes to a managed subscription.
    pub(in crate::subscription) fn update(
        mut self,
        changes: &SubscriptionChanges,
        status_sent: bool,
    ) -> Result<BillingChange, SubscriptionUpdateError> {
        let before = self.sub.clone();
        let mut errors = Vec::new();
        errors.extend(self.move_start(changes));
        let terms = before.changed_terms(changes);
        let terms = terms.map_err(SubscriptionUpdateError::InvalidFields)?;
        let free_until = self.requested_free_time(changes, &terms);
        let status = changes.status.filter(|to| *to != before.status);
        errors.extend(self.validate_terms(&terms));
        errors.extend(free_until.as_ref().err().cloned());
        if let Some(end) = changes.ends_at {
            let status = status.unwrap_or(before.status);
            if status == SubscriptionStatus::Expired && end.is_some_and(|end| end > self.now) {
                errors.push(future_end_error());
            } else if status == before.status {
                errors.extend(status.validate_end(end, self.now));
            }
        }
        if !errors.is_empty() {
            return Err(SubscriptionUpdateError::InvalidFields(errors));
        }
        let free_until = free_until.unwrap_or_default();

        if terms.plan.id != before.plan.id || terms.quantity != before.quantity {
            let trial_days = changes.offer.map_or(0, |offer| offer.trial_days);
            self.change_terms(terms, trial_days > 0 && !changes.had_trial)?;
        } else if terms != before.terms() {
            self.set_price(terms);
        }
        if let Some(until) = free_until {
            self.give_free_time(until)?;
        }
        // The terms may have made the requested status true, such as active by paying an open period.
        if let Some(to) = status.filter(|to| *to != self.sub.status) {
            let from = self.sub.status;
            let dates = StatusDates {
                ends_at: changes.ends_at,
                trial_days: changes.offer.map_or(0, |offer| offer.trial_days),
            };
            self.change_status(to, dates).map_err(|error| match error {
                StatusError::NotAllowed => {
                    SubscriptionUpdateError::TransitionNotAllowed { from, to }
                }
                StatusError::Lifetime => SubscriptionUpdateError::LifetimeCancelled,
                StatusError::TrialEndMissing => {
                    SubscriptionUpdateError::InvalidFields(vec![trial_end_error()])
                }
                StatusError::Shortage(shortage) => shortage.into(),
            })?;
        } else if let Some(end) = changes.ends_at {
            self.sub.ends_at = end;
        }
        if self.sub.status_at(self.now) == SubscriptionStatus::Expired {
            self.sub.status = SubscriptionStatus::Expired;
            self.sub.late_since = None;
        }
        self.settle();
        errors.extend(self.sub.validate_end_after_start());
        let suspension = (changes.is_active, status_sent);
        errors.extend(self.sub.change_suspension(suspension, self.now));
        if !errors.is_empty() {
            return Err(SubscriptionUpdateError::InvalidFields(errors));
        }
        Ok(self.finish())
    }

    /// Moves `starts_at`, which is possible only before the start.
    fn move_start(&mut self, changes: &SubscriptionChanges) -> Option<FieldError> {
        let start = changes.starts_at?;
        let error = |message: &str| {
            let error = ValidationError::new(Rule::InconsistentDates, message);
            Some(("starts_at", error))
        };
        let is_pending = self.sub.status == SubscriptionStatus::Pending;
        let is_scheduled = self.sub.status == SubscriptionStatus::Active
            && self.sub.starts_at > self.now
            && !self.sub.was_covered();
        if !is_pending && !is_scheduled {
            return error("cannot change: the subscription has started, or free time is set");
        }
        if start <= self.now && !is_pending {
            return error("must be in the future; to start now, leave it out and send a payment");
        }
        // A date set for the end of the first period must be later than its start.
        if self.sub.anchor == self.sub.starts_at || self.sub.anchor <= start {
            self.sub.anchor = start;
            self.sub.renews_at = self.sub.renews_at.filter(|_| !is_pending);
        }
        self.sub.starts_at = start;
        if is_scheduled {
            self.sub.renews_at = Some(start);
        }
        None
    }

    /// Returns the end of free time that the request gives, or why it cannot.
    fn requested_free_time(
        &self,
        changes: &SubscriptionChanges,
        terms: &Terms,
    ) -> Result<Option<Timestamp>, FieldError> {
        let error = |rule, message: &str| Err(("free_until", ValidationError::new(rule, message)));
        match changes.free_until {
            None => Ok(None),
            Some(None) => error(
                Rule::Required,
                "cannot be null: free time is not taken back",
            ),
            Some(_) if terms.plan.id != self.sub.plan.id || terms.quantity != self.sub.quantity => {
                let message = "cannot change together with the plan or the quantity";
                error(Rule::InconsistentDates, message)
            }
            Some(until) => Ok(until),
        }
    }

    /// Checks that new terms can be charged.
    fn validate_terms(&self, terms: &Terms) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let currency = self.sub.plan.price.currency();
        if terms.plan.price.currency() != currency {
            let message = format!("must be a plan in {currency}, the subscription's currency");
            let error = ValidationError::new(Rule::CurrencyMismatch, message);
            errors.push(("subscription_plan_id", error));
        }
        if terms.price().is_none() {
            let message = "must be sent: the billing cycle differs from the plan's";
            let error = ValidationError::new(Rule::Required, message);
            errors.push(("price", error));
        }
        let only_cycle = terms.plan.id == self.sub.plan.id && terms.quantity == self.sub.quantity;
        let is_paid_lifetime = self.sub.was_covered() && self.sub.renews_at.is_none();
        if terms.billing_cycle != self.sub.billing_cycle && only_cycle && is_paid_lifetime {
            let message = "cannot change: the lifetime is paid; change the plan";
            let error = ValidationError::new(Rule::InconsistentStatus, message);
            errors.push(("billing_cycle", error));
        }
        errors
    }
}
