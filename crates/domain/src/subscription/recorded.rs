//! Update rules for subscriptions that a client or a payment provider reports on: what the request
//! says, within the state machine.

use jiff::Timestamp;

use super::{
    FieldError, FreeTimeError, Subscription, SubscriptionChanges, SubscriptionStatus,
    SubscriptionUpdateError, create::future_end_error,
};
use crate::{BillingCycle, Rule, ValidationError};

impl Subscription {
    /// Applies `changes`, which differ from the current values, at `now`.
    pub(super) fn update_recorded(
        &self,
        changes: &SubscriptionChanges,
        status_sent: bool,
        now: Timestamp,
    ) -> Result<Self, SubscriptionUpdateError> {
        if changes.free_until.is_some() {
            return Err(SubscriptionUpdateError::FreeTimeNotPossible(
                FreeTimeError::NotManaged,
            ));
        }
        let mut next = self.clone();
        let mut errors = Vec::new();

        // The anchor stays, so that renewal dates keep their day.
        next.starts_at = changes.starts_at.unwrap_or(next.starts_at);
        match self.changed_terms(changes) {
            Ok(terms) if terms == next.terms() => {}
            Ok(terms) => {
                next.set_terms(terms);
                // What was paid in managed billing was paid for other terms.
                let parts = [&mut next.period, &mut next.free_time];
                for part in parts.into_iter().flatten() {
                    part.ends_at = Some(now);
                }
            }
            Err(invalid) => errors.extend(invalid),
        }
        next.change_renewal(self, changes, now);
        if let Some(to) = changes.status {
            next.change_recorded_status(self, to, changes, now, &mut errors)?;
        } else if let Some(end) = changes.ends_at {
            errors.extend(self.status.validate_end(end, now));
            next.ends_at = end;
        }
        next.status = next.status_at(now);
        next.sync_late_since(now);
        errors.extend(next.validate_dates());
        errors.extend(next.change_suspension((changes.is_active, status_sent), now));
        if !errors.is_empty() {
            return Err(SubscriptionUpdateError::InvalidFields(errors));
        }
        next.updated_at = now;
        Ok(next)
    }

    /// Sets `renews_at` as requested. Clears it on a change to a lifetime cycle and computes it on
    /// a change from one.
    fn change_renewal(&mut self, before: &Self, changes: &SubscriptionChanges, now: Timestamp) {
        let is_lifetime = |cycle| cycle == BillingCycle::Lifetime;
        let differing = changes
            .renews_at
            .filter(|renewal| *renewal != before.renews_at);
        if let Some(renewal) = differing {
            self.renews_at = renewal;
            self.anchor = renewal.unwrap_or(self.anchor);
        } else if is_lifetime(self.billing_cycle) {
            self.renews_at = None;
        } else if is_lifetime(before.billing_cycle) {
            self.renews_at = self.next_renewal(now);
        }
    }

    /// Returns the first renewal after both `now` and `starts_at`.
    fn next_renewal(&self, now: Timestamp) -> Option<Timestamp> {
        let from = now.max(self.starts_at);
        self.billing_cycle.next_renewal(self.anchor, from)
    }

    /// Changes the status and the dates that depend on it.
    fn change_recorded_status(
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
        if to == SubscriptionStatus::Cancelled && self.billing_cycle == BillingCycle::Lifetime {
            return Err(SubscriptionUpdateError::LifetimeCancelled);
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
                let current = before.ends_at.filter(|_| end.is_none());
                let dates = [current, self.renews_at].into_iter().flatten();
                let is_late = before.late_since.is_some();
                let earlier = dates.min().filter(|end| *end > now && !is_late);
                Some(end.flatten().or(earlier).unwrap_or(now))
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
                let renewal_passed = self.renews_at.is_some_and(|renewal| renewal <= now);
                let same_renewal = changes
                    .renews_at
                    .is_none_or(|renewal| renewal == before.renews_at);
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
