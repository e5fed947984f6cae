//! Rules for creating a subscription, and the validation that creating and updating share.

use jiff::Timestamp;

use super::{FieldError, NewSubscription, Offer, Subscription, SubscriptionStatus};
use crate::{BillingCycle, Rule, SubscriptionId, ValidationError};

impl Subscription {
    /// Creates a subscription to `offer` at `now`, or returns all validation errors.
    pub fn create(
        new: NewSubscription,
        offer: &Offer,
        id: SubscriptionId,
        now: Timestamp,
    ) -> Result<Self, Vec<FieldError>> {
        let mut errors = offer.validate();
        let is_active = new.is_active;
        let mut created = new.into_subscription(offer, id, now);
        match created.status {
            SubscriptionStatus::Expired if created.ends_at.is_some_and(|end| end > now) => {
                errors.push(future_end_error());
            }
            // Without an explicit end, the subscription ends now, or at its start if that is later.
            SubscriptionStatus::Cancelled | SubscriptionStatus::Expired => {
                let end = now.max(created.starts_at);
                created.ends_at.get_or_insert(end);
            }
            SubscriptionStatus::Pending
            | SubscriptionStatus::OnTrial
            | SubscriptionStatus::Active
            | SubscriptionStatus::Paused
            | SubscriptionStatus::PastDue
            | SubscriptionStatus::Unpaid => {}
        }
        errors.extend(created.validate_dates());
        match is_active {
            Some(true) if !created.has_access(now) => errors.push(created.no_access_error(now)),
            // Only a subscription that gives access can be suspended.
            Some(false) => created.suspended = created.has_access(now),
            _ => {}
        }
        created.status = created.status_at(now);
        created.sync_past_due_since(now);
        if errors.is_empty() {
            Ok(created)
        } else {
            Err(errors)
        }
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
        if self.ends_at.is_some_and(|end| end < start) {
            errors.push(("ends_at", before_start()));
        }
        errors
    }

    /// Returns the error for `is_active: true` on a subscription that gives no access.
    pub(super) fn no_access_error(&self, now: Timestamp) -> FieldError {
        let status = self.status_at(now);
        let message = if status.gives_access() && self.starts_at > now {
            format!("cannot be true before starts_at ({})", self.starts_at)
        } else {
            format!(
                "cannot be true while status is {status}; change status, or leave is_active out"
            )
        };
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
