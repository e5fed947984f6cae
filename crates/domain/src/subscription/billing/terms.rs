//! Changes of the plan, the quantity, the price and the billing cycle.

use jiff::Timestamp;

use super::{Account, BillingPeriod, EntryCause, EntryType, Shortage, ledger_entry};
use crate::{
    BillingCycle, Money, Quantity,
    subscription::{PlanSnapshot, Subscription, SubscriptionStatus},
};

/// What a subscription is billed for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::subscription) struct Terms {
    pub plan: PlanSnapshot,
    pub billing_cycle: BillingCycle,
    pub custom_price: Option<Money>,
    pub quantity: Quantity,
}

impl Terms {
    /// Returns the price of one cycle, or `None` if the cycle differs from the plan's and no price
    /// was set.
    pub fn price(&self) -> Option<Money> {
        let plan_price = (self.billing_cycle == self.plan.billing_cycle).then_some(self.plan.price);
        self.custom_price.or(plan_price)
    }
}

impl Subscription {
    pub(in crate::subscription) fn terms(&self) -> Terms {
        Terms {
            plan: self.plan,
            billing_cycle: self.billing_cycle,
            custom_price: self.custom_price,
            quantity: self.quantity,
        }
    }

    pub(in crate::subscription) fn set_terms(&mut self, terms: Terms) {
        self.plan = terms.plan;
        self.billing_cycle = terms.billing_cycle;
        self.custom_price = terms.custom_price;
        self.quantity = terms.quantity;
    }

    /// Returns whether a trial is running at `now`.
    pub(in crate::subscription) fn in_trial(&self, now: Timestamp) -> bool {
        self.trial.is_some_and(|trial| trial.ends_at > now)
    }
}

impl Account {
    /// Sets a new price or billing cycle, from the next period that is not paid yet.
    pub(in crate::subscription) fn set_price(&mut self, terms: Terms) {
        let cycle_changes = terms.billing_cycle != self.sub.billing_cycle;
        self.sub.set_terms(terms);
        if cycle_changes {
            self.align_anchor();
            // The end of the open period moves, and with it the end of the grace.
            if self.sub.status == SubscriptionStatus::Unpaid {
                self.sub.status = self.late_status();
            }
        }
        self.settle();
    }

    /// Moves the anchor to `renews_at` if that is not a renewal date of the new billing cycle. A date
    /// that was set for the first period counts no more.
    pub(super) fn align_anchor(&mut self) {
        if self.sub.status == SubscriptionStatus::Pending {
            self.sub.anchor = self.sub.starts_at;
            self.sub.renews_at = None;
        }
        let Some(renewal) = self.sub.renews_at else {
            return;
        };
        let just_before = renewal.saturating_sub(super::TICK).unwrap_or(renewal);
        let cycle = self.sub.billing_cycle;
        if cycle.next_renewal(self.sub.anchor, just_before) != Some(renewal) {
            self.sub.anchor = renewal;
        }
    }

    /// Changes the plan or the quantity.
    pub(in crate::subscription) fn change_terms(&mut self, terms: Terms) -> Result<(), Shortage> {
        let covered = match self.sub.status {
            SubscriptionStatus::Pending | SubscriptionStatus::Expired => false,
            _ => self.is_covered() && !self.sub.in_trial(self.now),
        };
        if covered {
            self.change_covered(terms)?;
            self.settle();
            return Ok(());
        }
        let late_since = self.sub.late_since;
        self.set_price(terms);
        if late_since.is_some() && self.sub.late_since == late_since {
            return Err(Shortage {
                missing: self.amount().saturating_sub(self.sub.credit),
            });
        }
        Ok(())
    }

    /// Charges or returns the difference for the rest of the covered time.
    fn change_covered(&mut self, terms: Terms) -> Result<(), Shortage> {
        let Some(mut period) = self.current_period() else {
            return Ok(());
        };
        let same_period = terms.billing_cycle == period.cycle
            && self.sub.renews_at.is_none_or(|renewal| {
                started_days(self.rest_starts_at(), renewal) <= max_days(period.cycle)
            });
        self.sub.set_terms(terms);
        if same_period {
            self.change_within(period);
        } else {
            let cost = period.cost;
            let returned = self.take_unused_value(&mut period, cost);
            let posting =
                ledger_entry::Posting::new(EntryType::Change, EntryCause::Change, returned);
            self.post(&posting.with_period(period.starts_at, period.ends_at));
            let start = self.rest_starts_at();
            self.sub.anchor = start;
            if start > self.now {
                // A period is charged when it starts.
                self.sub.period = None;
                self.sub.renews_at = Some(start);
            } else {
                self.charge_period(start, EntryCause::Change);
            }
        }
        if self.sub.credit < 0 {
            return Err(Shortage {
                missing: -self.sub.credit,
            });
        }
        Ok(())
    }

    /// Returns from when the rest of the covered time counts: now, or the start if it is later.
    fn rest_starts_at(&self) -> Timestamp {
        self.now.max(self.sub.starts_at)
    }

    /// Returns the period that runs now. After a period that an extension follows, that is the free
    /// time.
    fn current_period(&self) -> Option<BillingPeriod> {
        let period = self.sub.period?;
        match period.ends_at {
            Some(end) if end <= self.now => Some(BillingPeriod {
                starts_at: end,
                ends_at: self.sub.renews_at,
                cost: 0,
                waived: 0,
                ..period
            }),
            _ => Some(period),
        }
    }

    /// Changes the amount of the current period; `renews_at` stays.
    fn change_within(&mut self, mut period: BillingPeriod) {
        let (old, new) = (period.amount, self.amount());
        let difference = if new > old {
            let charge = self.charge_for_rest(&period, new - old);
            period.cost = period.cost.saturating_add(new - old);
            -charge
        } else {
            let surplus = period.cost.saturating_sub(new).max(0);
            period.cost = period.cost.min(new);
            self.take_unused_value(&mut period, surplus)
        };
        period.amount = new;
        self.sub.period = Some(period);
        let posting = ledger_entry::Posting::new(EntryType::Change, EntryCause::Change, difference);
        self.post(&posting.with_period(period.starts_at, self.sub.renews_at));
    }

    /// Returns the share of `difference` for the days left, rounded up. Started days count.
    fn charge_for_rest(&self, period: &BillingPeriod, difference: i64) -> i64 {
        let (Some(renewal), Some(end)) = (self.sub.renews_at, period.ends_at) else {
            return difference;
        };
        let days_left = started_days(self.rest_starts_at(), renewal);
        // Free time can be longer than a cycle, but a cycle's price buys no more than a cycle.
        let paid_days = if period.cost > 0 {
            whole_days(period.starts_at, end)
        } else {
            0
        };
        let days = whole_days(period.starts_at, renewal)
            .min(paid_days.max(max_days(period.cycle)))
            .max(1);
        let charge = (i128::from(difference) * i128::from(days_left) + i128::from(days) - 1)
            / i128::from(days);
        i64::try_from(charge).unwrap_or(i64::MAX)
    }

    /// Returns the share of `value` for the whole days left, rounded down, less what was waived in
    /// the period. A waived amount is deducted once. A lifetime returns nothing.
    fn take_unused_value(&self, period: &mut BillingPeriod, value: i64) -> i64 {
        let Some(end) = period.ends_at else { return 0 };
        let days_left = whole_days(self.now.max(period.starts_at), end);
        let days = started_days(period.starts_at, end).max(1);
        let share = i128::from(value) * i128::from(days_left) / i128::from(days);
        let share = i64::try_from(share).unwrap_or(0);
        let deducted = share.min(period.waived);
        period.waived -= deducted;
        share - deducted
    }
}

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Returns the number of whole days from `start` to `end`.
fn whole_days(start: Timestamp, end: Timestamp) -> i64 {
    (end.as_microsecond() - start.as_microsecond()).max(0) / MICROS_PER_DAY
}

/// Returns the number of days from `start` to `end`; a started day counts.
fn started_days(start: Timestamp, end: Timestamp) -> i64 {
    ((end.as_microsecond() - start.as_microsecond()).max(0) + MICROS_PER_DAY - 1) / MICROS_PER_DAY
}

/// Returns the most days that one cycle can have.
fn max_days(cycle: BillingCycle) -> i64 {
    match cycle {
        BillingCycle::Daily => 1,
        BillingCycle::Weekly => 7,
        BillingCycle::Monthly => 31,
        BillingCycle::Quarterly => 92,
        BillingCycle::Semiannual => 184,
        BillingCycle::Yearly => 366,
        BillingCycle::Lifetime => i64::MAX,
    }
}
