//! Changes of the plan, the quantity, the price and the billing cycle.

use jiff::Timestamp;

use super::{
    Account, BillingPeriod, EntryCause, EntryType, FreeTimeError, Shortage, ledger_entry,
    period::value_left,
};
use crate::{
    BillingCycle, Money, Quantity,
    subscription::{PlanSnapshot, Subscription, SubscriptionStatus, SubscriptionUpdateError},
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

    /// Changes the plan or the quantity. A trial goes on only if the user may have one of the new plan.
    pub(in crate::subscription) fn change_terms(
        &mut self,
        terms: Terms,
        may_have_trial: bool,
    ) -> Result<(), SubscriptionUpdateError> {
        let is_live = !matches!(
            self.sub.status,
            SubscriptionStatus::Pending | SubscriptionStatus::Expired
        );
        let is_late = self.sub.late_since.is_some() && self.open_since().is_some();
        if is_live && self.is_covered() && self.sub.in_trial(self.now) {
            self.change_in_trial(terms, may_have_trial);
        } else if is_live && self.is_covered() {
            let now = self.now;
            let parts = [self.sub.period, self.sub.free_time].into_iter().flatten();
            let mut in_force = parts.filter(|part| part.is_in_force(now));
            let other_cycle = in_force.any(|part| part.cycle != terms.billing_cycle);
            let free_until = self.sub.free_until.filter(|until| *until > now);
            if let Some(until) = free_until.filter(|_| other_cycle) {
                let error = FreeTimeError::CycleChange { until };
                return Err(SubscriptionUpdateError::FreeTimeNotPossible(error));
            }
            self.change_covered(terms);
        } else if is_live && is_late {
            self.change_late(terms);
        } else {
            self.set_price(terms);
            return Ok(());
        }
        if self.sub.credit < 0 {
            let missing = -self.sub.credit;
            return Err(Shortage { missing }.into());
        }
        self.settle();
        Ok(())
    }

    fn change_in_trial(&mut self, terms: Terms, may_have_trial: bool) {
        let same_plan = terms.plan.id == self.sub.plan.id;
        self.sub.set_terms(terms);
        if same_plan || may_have_trial {
            self.align_anchor();
            return;
        }
        self.end_trial();
        self.sub.free_time = None;
        let start = self.rest_starts_at();
        self.sub.anchor = start;
        self.sub.renews_at = Some(start);
        if self.sub.status == SubscriptionStatus::OnTrial {
            self.sub.status = SubscriptionStatus::Active;
        }
        if start <= self.now && self.sub.status != SubscriptionStatus::Paused {
            self.charge_period(start, EntryCause::Change);
        }
    }

    /// Charges the open period at the old amount, so that the grace that was used does not become
    /// cheaper. Then changes it, or starts the next period if it is over.
    fn change_late(&mut self, terms: Terms) {
        let Some(due) = self.open_since() else { return };
        self.charge_period(due, EntryCause::LatePayment);
        if self.is_covered() {
            self.change_covered(terms);
        } else {
            self.sub.set_terms(terms);
            if self.sub.status != SubscriptionStatus::Paused {
                self.sub.anchor = self.now;
                self.charge_period(self.now, EntryCause::Renewal);
            }
        }
        self.sub.late_since = None;
        if self.sub.status != SubscriptionStatus::Paused {
            self.sub.status = SubscriptionStatus::Active;
        }
    }

    /// Charges or returns the difference for the rest of the covered time, up to the microsecond.
    fn change_covered(&mut self, terms: Terms) {
        let start = self.rest_starts_at();
        let now = self.now;
        let is_in_force = |period: &&mut BillingPeriod| period.is_in_force(now);
        let mut period = self.sub.period;
        let period = period.as_mut().filter(is_in_force);
        let mut free_time = self.sub.free_time;
        let free_time = free_time.as_mut().filter(is_in_force);
        let bounds = period.as_ref().or(free_time.as_ref());
        let Some(bounds) = bounds.map(|first| (first.starts_at, self.sub.renews_at)) else {
            return;
        };
        let same_cycle = [&period, &free_time]
            .into_iter()
            .flatten()
            .all(|part| part.cycle == terms.billing_cycle);
        self.sub.set_terms(terms);
        let amount = self.amount();
        let mut values = Vec::new();
        let mut change = |part: &mut BillingPeriod, left| {
            let value = if same_cycle {
                part.change_amount(amount)
            } else {
                part.cost
            };
            values.push((value, left));
        };
        if let Some(period) = period {
            let left = period.left(start);
            change(period, left);
            self.sub.period = Some(*period);
        }
        if let Some(free_time) = free_time {
            let left = free_time.free_left(start);
            change(free_time, left);
            self.sub.free_time = Some(*free_time);
        }
        let posting =
            ledger_entry::Posting::new(EntryType::Change, EntryCause::Change, value_left(&values));
        self.post(&posting.with_period(bounds.0, bounds.1));
        if same_cycle {
            return;
        }
        self.sub.anchor = start;
        if start > now {
            // A period is charged when it starts.
            self.sub.period = None;
            self.sub.free_time = None;
            self.sub.renews_at = Some(start);
        } else {
            self.charge_period(start, EntryCause::Change);
        }
    }

    /// Returns from when the rest of the covered time counts: now, or the start if it is later.
    pub(super) fn rest_starts_at(&self) -> Timestamp {
        self.now.max(self.sub.starts_at)
    }
}
