//! Rules for updating a subscription.
//!
//! Clients may send back everything that GET returned with one field changed. So a field equal to
//! its current value changes nothing: each field is compared with the subscription as shown at that
//! instant.

use jiff::Timestamp;

use super::{
    FieldError, Subscription, SubscriptionChanges, SubscriptionStatus, create::future_end_error,
};
use crate::{BillingCycle, Rule, ValidationError};

/// Why an update was rejected.
#[derive(Debug, Clone, PartialEq)]
pub enum SubscriptionUpdateError {
    /// Validation errors by field.
    InvalidFields(Vec<FieldError>),
    /// The status cannot change from `from` to `to`.
    TransitionNotAllowed {
        /// The current status.
        from: SubscriptionStatus,
        /// The requested status.
        to: SubscriptionStatus,
    },
}

impl Subscription {
    /// Applies `changes` at `now`. Returns `None` if nothing changes.
    pub fn update(
        &self,
        changes: &SubscriptionChanges,
        now: Timestamp,
    ) -> Result<Option<Self>, SubscriptionUpdateError> {
        let before = self.as_of(now);
        let mut next = before.clone();
        let mut errors = Vec::new();

        changes.copy_plain_fields(&mut next);
        next.switch_plan(&before, changes, &mut errors);
        next.change_renewal(&before, changes, now);
        if let Some(to) = changes.status.filter(|to| *to != before.status) {
            next.change_status(&before, to, changes, now, &mut errors)?;
        } else if let Some(end) = changes.ends_at.filter(|end| *end != before.ends_at) {
            errors.extend(before.status.validate_end(end, now));
            next.ends_at = end;
        }
        next.status = next.status_at(now);
        next.sync_past_due_since(now);
        errors.extend(next.validate_dates());
        match changes
            .is_active
            .filter(|is_active| *is_active != before.has_access(now))
        {
            Some(false) => next.suspended |= next.has_access(now),
            Some(true) => {
                next.suspended = false;
                if !next.has_access(now) {
                    errors.push(next.no_access_error(now));
                }
            }
            None => {}
        }

        if !errors.is_empty() {
            return Err(SubscriptionUpdateError::InvalidFields(errors));
        }
        let differs = next != before;
        next.updated_at = now;
        Ok(differs.then_some(next))
    }

    /// Copies a new plan's price, and its billing cycle unless the request sets one.
    fn switch_plan(
        &mut self,
        before: &Self,
        changes: &SubscriptionChanges,
        errors: &mut Vec<FieldError>,
    ) {
        let new_offer = changes.offer.filter(|offer| offer.plan != before.plan.id);
        if let Some(offer) = &new_offer {
            errors.extend(offer.validate());
            self.plan = offer.into();
            self.billing_cycle = offer.billing_cycle;
        }
        let cycle = changes
            .billing_cycle
            .filter(|cycle| *cycle != before.billing_cycle);
        self.billing_cycle = cycle.unwrap_or(self.billing_cycle);
    }

    /// Sets `renews_at` as requested. Clears it on a change to a lifetime cycle and computes it on
    /// a change from one.
    fn change_renewal(&mut self, before: &Self, changes: &SubscriptionChanges, now: Timestamp) {
        let is_lifetime = |cycle| cycle == BillingCycle::Lifetime;
        if let Some(renewal) = changes
            .renews_at
            .filter(|renewal| *renewal != before.renews_at)
        {
            self.renews_at = renewal;
            self.anchor = renewal.unwrap_or(self.anchor);
        } else if is_lifetime(self.billing_cycle) {
            self.renews_at = None;
        } else if is_lifetime(before.billing_cycle) {
            self.renews_at = self.next_renewal(now);
        }
    }

    /// Returns the first renewal after both `now` and `starts_at`.
    pub(super) fn next_renewal(&self, now: Timestamp) -> Option<Timestamp> {
        let from = now.max(self.starts_at);
        self.billing_cycle.next_renewal(self.anchor, from)
    }

    /// Changes the status and the dates that depend on it.
    fn change_status(
        &mut self,
        before: &Self,
        to: SubscriptionStatus,
        changes: &SubscriptionChanges,
        now: Timestamp,
        errors: &mut Vec<FieldError>,
    ) -> Result<(), SubscriptionUpdateError> {
        let from = before.status;
        let in_future =
            |date: Option<Option<Timestamp>>| date.flatten().is_some_and(|date| date > now);
        let may_reopen = from != SubscriptionStatus::Expired
            || in_future(changes.renews_at)
            || in_future(changes.ends_at);
        if !from.allowed_transitions().contains(&to) || !may_reopen {
            return Err(SubscriptionUpdateError::TransitionNotAllowed { from, to });
        }
        self.status = to;
        let end = changes.ends_at.filter(|end| *end != before.ends_at);
        let earliest_end = now.max(self.starts_at);
        self.ends_at = match to {
            SubscriptionStatus::Cancelled if !before.has_access(now) => {
                // Cancelling must not grant access to a subscription that has none.
                if end.flatten().is_some_and(|end| end > earliest_end) {
                    let message = "cannot be in the future: the subscription gives no access now; leave ends_at out";
                    let error = ValidationError::new(Rule::InconsistentStatus, message);
                    errors.push(("ends_at", error));
                }
                Some(end.flatten().unwrap_or(earliest_end))
            }
            SubscriptionStatus::Cancelled => {
                // Prepaid periods are still served.
                let paid_until = self.renewal_after(self.prepaid);
                let paid_until = paid_until.filter(|renewal| *renewal > now);
                let current = before.ends_at.filter(|_| end.is_none());
                Some(end.flatten().or(current).or(paid_until).unwrap_or(now))
            }
            SubscriptionStatus::Expired => {
                if end.flatten().is_some_and(|end| end > now) {
                    errors.push(future_end_error());
                }
                Some(end.flatten().unwrap_or(earliest_end))
            }
            SubscriptionStatus::Active | SubscriptionStatus::OnTrial
                if matches!(
                    from,
                    SubscriptionStatus::Cancelled | SubscriptionStatus::Expired
                ) =>
            {
                // Reopening drops the old end, and a renewal date that has passed.
                let same_renewal = changes
                    .renews_at
                    .is_none_or(|renewal| renewal == before.renews_at);
                let renewal_passed = self.renews_at.is_some_and(|renewal| renewal <= now);
                if from == SubscriptionStatus::Expired && same_renewal && renewal_passed {
                    self.renews_at = self.next_renewal(now);
                }
                end.flatten()
            }
            SubscriptionStatus::Pending
            | SubscriptionStatus::OnTrial
            | SubscriptionStatus::Active
            | SubscriptionStatus::Paused
            | SubscriptionStatus::PastDue
            | SubscriptionStatus::Unpaid => end.unwrap_or(before.ends_at),
        };
        Ok(())
    }
}

impl SubscriptionStatus {
    /// Checks a new `ends_at` when the status stays the same.
    fn validate_end(self, end: Option<Timestamp>, now: Timestamp) -> Option<FieldError> {
        let required = || {
            let message = format!("cannot be null while status is {self}");
            (
                "ends_at",
                ValidationError::new(Rule::InconsistentStatus, message),
            )
        };
        match (self, end) {
            (Self::Cancelled | Self::Expired, None) => Some(required()),
            (Self::Expired, Some(end)) if end > now => Some(future_end_error()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
