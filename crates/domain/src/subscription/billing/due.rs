//! What happens to a managed subscription over time.

use jiff::Timestamp;

use super::{Account, BillingChange, EntryCause, days_after};
use crate::subscription::{Dunning, Subscription, SubscriptionStatus, Transition};

impl Subscription {
    /// Returns an instant not later than the next transition of managed billing, or `None` if time
    /// alone changes nothing. While the tenant's lifecycle is recorded, it is the instant from which a
    /// switch to managed billing could change the subscription.
    pub fn due_at(&self) -> Option<Timestamp> {
        if self.external_id.is_some() || self.price().is_none() {
            return None;
        }
        if let Some(dunning) = self.dunning() {
            return self.next_managed_transition(&dunning).map(|(due, _)| due);
        }
        match self.status {
            SubscriptionStatus::Pending => Some(self.starts_at),
            SubscriptionStatus::OnTrial
            | SubscriptionStatus::Active
            | SubscriptionStatus::Cancelled => self.renews_at,
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => self.late_since,
            SubscriptionStatus::Paused | SubscriptionStatus::Expired => None,
        }
    }

    /// Returns the next transition in managed mode and its due date, ignoring `ends_at`.
    pub(in crate::subscription) fn next_managed_transition(
        &self,
        dunning: &Dunning,
    ) -> Option<(Timestamp, Transition)> {
        if self.managed_since.is_none_or(|since| since < dunning.since) {
            return Some((dunning.since, Transition::Managed));
        }
        let is_funded = self.amount().is_some_and(|amount| self.credit >= amount);
        match self.status {
            SubscriptionStatus::Pending if is_funded => Some((self.starts_at, Transition::Started)),
            SubscriptionStatus::Pending => {
                let from = self.created_at.max(self.starts_at);
                Some((
                    days_after(from, dunning.expired_after)?,
                    Transition::Expired,
                ))
            }
            SubscriptionStatus::OnTrial | SubscriptionStatus::Active => {
                let transition = if is_funded {
                    Transition::Renewed
                } else {
                    Transition::PastDue
                };
                Some((self.renews_at?, transition))
            }
            SubscriptionStatus::Cancelled => {
                let transition = if is_funded {
                    Transition::Renewed
                } else {
                    Transition::Expired
                };
                Some((self.renews_at?, transition))
            }
            SubscriptionStatus::PastDue
            | SubscriptionStatus::Unpaid
            | SubscriptionStatus::Paused => {
                let expiry = days_after(self.late_since?, dunning.expired_after)?;
                let grace_end = self.grace_ends_at(dunning)?;
                if self.status == SubscriptionStatus::PastDue && grace_end < expiry {
                    Some((grace_end, Transition::Unpaid))
                } else {
                    Some((expiry, Transition::Expired))
                }
            }
            SubscriptionStatus::Expired => None,
        }
    }

    /// Returns the result of a managed transition that was due at `due` and is applied at `at`.
    pub(in crate::subscription) fn after_managed_transition(
        &self,
        dunning: &Dunning,
        transition: Transition,
        due: Timestamp,
        at: Timestamp,
    ) -> BillingChange {
        let mut account = Account::new(self.clone(), *dunning, at);
        match transition {
            Transition::Managed => account.start_managing(),
            Transition::Started => account.start_pending(),
            Transition::Renewed => {
                account.charge_period(due, EntryCause::Renewal);
                if account.sub.status != SubscriptionStatus::Cancelled {
                    account.sub.status = SubscriptionStatus::Active;
                }
            }
            Transition::PastDue => {
                account.sub.status = SubscriptionStatus::PastDue;
                account.sub.late_since = Some(due);
            }
            Transition::Unpaid => account.sub.status = SubscriptionStatus::Unpaid,
            Transition::Expired => account.expire(due),
        }
        account.finish()
    }
}
