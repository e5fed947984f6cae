//! Fields that are derived from the stored ones.

use jiff::Timestamp;

use crate::{
    BillingCycle,
    subscription::{Subscription, SubscriptionStatus},
};

/// The derived fields of a managed subscription. Amounts are minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BillingSummary {
    /// Money received and not used.
    pub credit: i64,
    /// To pay now to be active.
    pub amount_due: i64,
    /// The end of the time that is covered or that the credit pays.
    pub paid_until: Option<Timestamp>,
    /// Start of the running period: paid, free or open.
    pub period_starts_at: Option<Timestamp>,
    /// End of the running period.
    pub period_ends_at: Option<Timestamp>,
}

/// The latest instant that the API accepts.
fn latest_instant() -> Timestamp {
    Timestamp::from_microsecond(253_402_300_799_999_999).unwrap_or(Timestamp::MAX)
}

impl Subscription {
    /// Returns the derived fields, or `None` if the service does not manage the subscription.
    pub fn billing_summary(&self, now: Timestamp) -> Option<BillingSummary> {
        self.dunning()?;
        let period = self.running_period(now);
        Some(BillingSummary {
            credit: self.credit,
            amount_due: self.amount_due(now)?,
            paid_until: self.paid_until(),
            period_starts_at: period.map(|(start, _)| start),
            period_ends_at: period.and_then(|(_, end)| end),
        })
    }

    /// Returns the minor units to pay now to be active.
    pub(in crate::subscription) fn amount_due(&self, now: Timestamp) -> Option<i64> {
        let amount = self.amount()?;
        let covered = self.was_covered() && self.renews_at.is_none_or(|renewal| renewal > now);
        let target = match self.status_at(now) {
            SubscriptionStatus::Pending | SubscriptionStatus::Expired => amount,
            SubscriptionStatus::PastDue
            | SubscriptionStatus::Unpaid
            | SubscriptionStatus::Paused => {
                let late = self.late_since.is_some();
                let not_started = self.starts_at > now;
                let open_is_over = self.open_period_end().is_some_and(|end| end <= now);
                match (covered || not_started, late && open_is_over) {
                    (true, _) => 0,
                    (false, true) => amount.saturating_mul(2),
                    (false, false) => amount,
                }
            }
            SubscriptionStatus::OnTrial
            | SubscriptionStatus::Active
            | SubscriptionStatus::Cancelled => 0,
        };
        Some(target.saturating_sub(self.credit).max(0))
    }

    /// Returns `renews_at` plus each whole period that the credit pays at today's amount. `None`
    /// while nothing is covered, for free subscriptions and for paid lifetimes.
    pub(in crate::subscription) fn paid_until(&self) -> Option<Timestamp> {
        let renewal = self.renews_at?;
        let amount = self.amount().filter(|amount| *amount > 0)?;
        if self.status == SubscriptionStatus::Pending {
            return None;
        }
        let periods = self.credit / amount;
        if periods <= 0 || self.billing_cycle == BillingCycle::Lifetime {
            return Some(renewal);
        }
        Some(
            self.nth_renewal_after(renewal, periods)
                .unwrap_or_else(latest_instant),
        )
    }

    /// Returns the renewal date `count` cycles after `renewal`; `None` beyond the year 9999.
    fn nth_renewal_after(&self, renewal: Timestamp, count: i64) -> Option<Timestamp> {
        let first = self.billing_cycle.next_renewal(self.anchor, renewal)?;
        let index = self.billing_cycle.index_of(self.anchor, first)?;
        self.billing_cycle
            .nth_renewal(self.anchor, index.checked_add(count - 1)?)
    }

    /// Returns start and end of the period that runs at `now`: paid, free or open.
    fn running_period(&self, now: Timestamp) -> Option<(Timestamp, Option<Timestamp>)> {
        match self.status_at(now) {
            SubscriptionStatus::Pending | SubscriptionStatus::Expired => return None,
            _ => {}
        }
        let mut parts = [self.period, self.free_time].into_iter().flatten();
        let running = parts.find(|part| part.is_in_force(now));
        match (running, self.renews_at) {
            (Some(part), _) => (part.starts_at <= now).then_some((part.starts_at, part.ends_at)),
            (None, Some(due)) if self.late_since.is_some() && due <= now => {
                Some((due, self.open_period_end()))
            }
            (None, _) => None,
        }
    }
}
