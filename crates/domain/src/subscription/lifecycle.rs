//! Transitions that become due over time, and the effect of payments.
//!
//! A tenant's [`Lifecycle`] setting decides which transitions happen. *Recorded*: the client or a
//! payment provider reports changes, and a subscription only expires at `ends_at`. *Managed*:
//! subscriptions without a provider renew when their next period is paid or free; otherwise they
//! become past due, then unpaid, then expired.
//!
//! A [`DueTransition`] takes effect **at the instant it was due**, however late it is stored. So
//! processing a year in one run gives the same result as processing it day by day. A payment is
//! applied after all transitions that were due before it.

use jiff::{SignedDuration, Timestamp};

use super::{Subscription, SubscriptionStatus};
use crate::{EventKind, Money};

/// How a tenant's subscriptions change over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifecycle {
    /// Clients report every change.
    Recorded,
    /// The service applies transitions to subscriptions without an external id.
    Managed(Dunning),
}

/// Deadlines for unpaid periods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dunning {
    /// When managed mode started; earlier due dates count from here.
    pub since: Timestamp,
    /// Days from the due date until the status becomes unpaid and access stops.
    pub unpaid_after: u16,
    /// Days from the due date until the subscription expires.
    pub expired_after: u16,
}

/// The kinds of transitions that become due over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transition {
    /// The next period started; it is paid or free.
    Renewed,
    /// The next period started without a payment.
    PastDue,
    /// No payment within `unpaid_after` days.
    Unpaid,
    /// `ends_at` has passed, or no payment within `expired_after` days.
    Expired,
}

impl Transition {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Renewed, Self::PastDue, Self::Unpaid, Self::Expired];

    /// Returns the kind of event to record.
    pub const fn event_kind(self) -> EventKind {
        match self {
            Self::Renewed => EventKind::SubscriptionRenewed,
            Self::PastDue => EventKind::SubscriptionPastDue,
            Self::Unpaid => EventKind::SubscriptionUnpaid,
            Self::Expired => EventKind::SubscriptionExpired,
        }
    }
}

/// A transition that is due.
#[derive(Debug, Clone, PartialEq)]
pub struct DueTransition {
    /// The kind of transition.
    pub transition: Transition,
    /// When it takes effect.
    pub at: Timestamp,
    /// The subscription afterwards.
    pub after: Subscription,
}

/// The effect of a completed payment on its subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct PaymentEffect {
    /// The subscription afterwards.
    pub after: Subscription,
    /// Start of the paid period; `None` in recorded mode.
    pub period: Option<Timestamp>,
}

impl Subscription {
    /// Returns the next transition if it was due by `now`.
    pub fn next_transition(&self, lifecycle: &Lifecycle, now: Timestamp) -> Option<DueTransition> {
        let end = self
            .ends_at
            .filter(|_| self.status != SubscriptionStatus::Expired)
            .map(|end| (end, Transition::Expired));
        let managed = self
            .dunning(lifecycle)
            .and_then(|dunning| self.next_managed_transition(&dunning));
        // A subscription that ends at its renewal date does not renew.
        let ends_first = match (end, managed) {
            (Some((end, _)), Some((due, _))) => end <= due,
            (end, _) => end.is_some(),
        };
        let next = if ends_first { end } else { managed };
        let (due, transition) = next.filter(|(due, _)| *due <= now)?;
        if ends_first {
            let after = self.as_of(now);
            let at = after.updated_at;
            return Some(DueTransition {
                transition,
                at,
                after,
            });
        }
        // Each change has its own timestamp, so events have a strict order.
        let tick = SignedDuration::from_micros(1);
        let after_last = self.updated_at.saturating_add(tick).unwrap_or(due);
        let at = due.max(after_last);
        let after = self.after_transition(transition, due, at);
        Some(DueTransition {
            transition,
            at,
            after,
        })
    }

    /// Returns the deadlines if the service manages this subscription.
    fn dunning(&self, lifecycle: &Lifecycle) -> Option<Dunning> {
        match lifecycle {
            Lifecycle::Managed(dunning) if self.external_id.is_none() => Some(*dunning),
            Lifecycle::Managed(_) | Lifecycle::Recorded => None,
        }
    }

    /// Returns the next transition in managed mode and its due date, ignoring `ends_at`.
    fn next_managed_transition(&self, dunning: &Dunning) -> Option<(Timestamp, Transition)> {
        let past_due_for = |days: u16| {
            let days = SignedDuration::from_hours(24 * i64::from(days));
            self.past_due_since?.checked_add(days).ok()
        };
        let (due, transition) = match self.status {
            SubscriptionStatus::OnTrial | SubscriptionStatus::Active => {
                let covered = self.prepaid > 0 || self.is_free();
                let transition = if covered {
                    Transition::Renewed
                } else {
                    Transition::PastDue
                };
                (self.renews_at?, transition)
            }
            SubscriptionStatus::PastDue if dunning.unpaid_after < dunning.expired_after => {
                (past_due_for(dunning.unpaid_after)?, Transition::Unpaid)
            }
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => {
                (past_due_for(dunning.expired_after)?, Transition::Expired)
            }
            SubscriptionStatus::Pending
            | SubscriptionStatus::Paused
            | SubscriptionStatus::Cancelled
            | SubscriptionStatus::Expired => return None,
        };
        Some((due.max(dunning.since), transition))
    }

    fn is_free(&self) -> bool {
        self.price().is_some_and(|price| price.minor_units() == 0)
    }

    /// Returns the subscription after a managed transition.
    fn after_transition(&self, transition: Transition, due: Timestamp, at: Timestamp) -> Self {
        let mut next = self.clone();
        next.updated_at = at;
        match transition {
            Transition::Renewed => {
                next.status = SubscriptionStatus::Active;
                // Paid periods are used up one by one. Free periods that were missed are skipped.
                let from = if self.is_free() { at } else { due };
                next.renews_at = self.billing_cycle.next_renewal(self.anchor, from);
                if !self.is_free() {
                    next.prepaid = self.prepaid.saturating_sub(1);
                }
            }
            Transition::PastDue => next.status = SubscriptionStatus::PastDue,
            Transition::Unpaid => next.status = SubscriptionStatus::Unpaid,
            Transition::Expired => {
                next.status = SubscriptionStatus::Expired;
                next.ends_at = Some(at.max(self.starts_at));
            }
        }
        next.sync_past_due_since(at);
        next
    }

    /// Sets `past_due_since` when the status becomes past due or unpaid, and clears it otherwise.
    pub(super) fn sync_past_due_since(&mut self, now: Timestamp) {
        self.past_due_since = match self.status {
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => {
                Some(self.past_due_since.unwrap_or(now))
            }
            SubscriptionStatus::Pending
            | SubscriptionStatus::OnTrial
            | SubscriptionStatus::Active
            | SubscriptionStatus::Paused
            | SubscriptionStatus::Cancelled
            | SubscriptionStatus::Expired => None,
        };
    }

    /// Applies a payment completed at `now`, after all transitions due before it. Returns `None` if
    /// it changes nothing. Subscriptions with an external id are managed by their payment provider.
    pub fn apply_payment(
        &self,
        amount: Money,
        lifecycle: &Lifecycle,
        now: Timestamp,
    ) -> Option<PaymentEffect> {
        if self.external_id.is_some() {
            return None;
        }
        match lifecycle {
            Lifecycle::Recorded => self.reactivated(now).map(|after| PaymentEffect {
                after,
                period: None,
            }),
            Lifecycle::Managed(_) => self.pay_period(amount, now),
        }
    }

    /// Returns the subscription as active if it was waiting for a payment.
    fn reactivated(&self, now: Timestamp) -> Option<Self> {
        match self.status_at(now) {
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => Some(Self {
                status: SubscriptionStatus::Active,
                past_due_since: None,
                updated_at: now,
                ..self.clone()
            }),
            SubscriptionStatus::Pending
            | SubscriptionStatus::OnTrial
            | SubscriptionStatus::Active
            | SubscriptionStatus::Paused
            | SubscriptionStatus::Cancelled
            | SubscriptionStatus::Expired => None,
        }
    }

    /// Pays the earliest unpaid period. An amount below the price has no effect.
    fn pay_period(&self, amount: Money, now: Timestamp) -> Option<PaymentEffect> {
        let covers_price = amount.currency() == self.plan.price.currency()
            && self
                .price()
                .is_none_or(|price| amount.minor_units() >= price.minor_units());
        if !covers_price {
            return None;
        }
        let mut after = self.clone();
        let status = self.status_at(now);
        // Only a lifetime subscription has no renewal date. A payment during its trial buys it.
        let buys_lifetime = status == SubscriptionStatus::OnTrial && self.renews_at.is_none();
        let period = match status {
            // The current period.
            SubscriptionStatus::Pending
            | SubscriptionStatus::PastDue
            | SubscriptionStatus::Unpaid
            | SubscriptionStatus::OnTrial
                if buys_lifetime || status != SubscriptionStatus::OnTrial =>
            {
                after.status = SubscriptionStatus::Active;
                after.renews_at = self.next_renewal(now);
                after.sync_past_due_since(now);
                after.updated_at = now;
                // A status set by the client does not tell which period is unpaid.
                let started = self.renews_at.filter(|renewal| *renewal <= now);
                match status {
                    SubscriptionStatus::Pending | SubscriptionStatus::OnTrial => self.starts_at,
                    _ => started.or(self.past_due_since).unwrap_or(self.starts_at),
                }
            }
            // A future period: only the prepaid counter changes.
            SubscriptionStatus::OnTrial
            | SubscriptionStatus::Active
            | SubscriptionStatus::Paused
                if !self.is_free() =>
            {
                after.prepaid = self.prepaid.checked_add(1)?;
                self.renewal_after(self.prepaid)?
            }
            SubscriptionStatus::Pending
            | SubscriptionStatus::PastDue
            | SubscriptionStatus::Unpaid
            | SubscriptionStatus::OnTrial
            | SubscriptionStatus::Active
            | SubscriptionStatus::Paused
            | SubscriptionStatus::Cancelled
            | SubscriptionStatus::Expired => return None,
        };
        Some(PaymentEffect {
            after,
            period: Some(period),
        })
    }

    /// Returns the renewal date `periods` cycles after `renews_at`.
    pub(super) fn renewal_after(&self, periods: u32) -> Option<Timestamp> {
        (0..periods).try_fold(self.renews_at?, |renewal, _| {
            self.billing_cycle.next_renewal(self.anchor, renewal)
        })
    }

    /// Grants the current period, in managed mode, to a subscription that an update has just
    /// reactivated: `renews_at` becomes the next renewal date. A past due subscription that was
    /// switched to a free plan becomes active.
    #[must_use]
    pub fn with_current_period_granted(mut self, before: &Self, lifecycle: &Lifecycle) -> Self {
        let now = self.updated_at;
        let reactivated = match self.status {
            SubscriptionStatus::Active | SubscriptionStatus::OnTrial => {
                before.status != self.status
            }
            SubscriptionStatus::Pending
            | SubscriptionStatus::Paused
            | SubscriptionStatus::PastDue
            | SubscriptionStatus::Unpaid
            | SubscriptionStatus::Cancelled
            | SubscriptionStatus::Expired => false,
        };
        let renewal_passed = self.renews_at.is_some_and(|renewal| renewal <= now);
        let still_past_due = self.past_due_since.is_some() && before.past_due_since.is_some();
        let became_free = still_past_due && self.is_free() && !before.is_free();
        if self.dunning(lifecycle).is_some() && (reactivated && renewal_passed || became_free) {
            if became_free {
                self.status = SubscriptionStatus::Active;
                self.past_due_since = None;
            }
            self.renews_at = self.next_renewal(now);
        }
        self
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
