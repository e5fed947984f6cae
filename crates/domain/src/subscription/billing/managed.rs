//! Switches between recorded and managed mode, of the tenant or by an external id.
//!
//! While a subscription is not managed, its credit and periods stay as they were, unless a client changes the
//! terms. What still fits the record afterwards is kept: switching there and back changes nothing.

use jiff::Timestamp;

use super::{Account, BillingPeriod, EntryCause, Trial, days_after};
use crate::{
    BillingCycle,
    subscription::{Dunning, Subscription, SubscriptionStatus},
};

impl Account {
    /// Starts to manage a subscription. Covers a future `renews_at` without charge, as far as its periods do not.
    /// A passed one is due now.
    pub(in crate::subscription) fn start_managing(&mut self) {
        let was_managed = self.sub.managed_since.is_some();
        self.sub.managed_since = Some(self.dunning.since);
        let now = self.now;
        if self.sub.status != SubscriptionStatus::OnTrial
            && self.sub.in_trial(now)
            && !self.is_paused_or_cancelled()
        {
            self.end_trial();
        }
        if was_managed && self.sub.renews_at.is_none() && self.sub.is_unpaid_lifetime(now) {
            // Recorded lifetimes have no `renews_at`. Its due date is the anchor.
            self.sub.anchor = self.sub.anchor.max(self.sub.starts_at);
            self.sub.renews_at = Some(self.sub.anchor);
        }
        match self.sub.status {
            SubscriptionStatus::Expired => return,
            SubscriptionStatus::Pending => {
                let first_end = self.sub.renews_at.filter(|_| was_managed);
                self.sub.anchor = first_end.unwrap_or(self.sub.starts_at);
                self.sub.renews_at = first_end;
                return;
            }
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => {
                self.continue_lateness(was_managed);
            }
            SubscriptionStatus::Paused if self.sub.renews_at.is_some_and(|due| due <= now) => {
                let expiry = self
                    .sub
                    .late_since
                    .and_then(|since| days_after(since, self.dunning.expired_after));
                if expiry.is_some_and(|expiry| expiry <= now) {
                    self.sub.late_since = None;
                }
            }
            SubscriptionStatus::OnTrial
            | SubscriptionStatus::Active
            | SubscriptionStatus::Paused
            | SubscriptionStatus::Cancelled => self.cover_reported(was_managed),
        }
        self.settle();
    }

    fn is_paused_or_cancelled(&self) -> bool {
        matches!(
            self.sub.status,
            SubscriptionStatus::Paused | SubscriptionStatus::Cancelled
        )
    }

    /// Continues the lateness of an earlier managed mode, as far as none of its deadlines has passed. What its
    /// periods cover is paid.
    fn continue_lateness(&mut self, was_managed: bool) {
        let (now, sub) = (self.now, &mut self.sub);
        let goes_on = was_managed && sub.is_still_late(&self.dunning, now);
        let is_covered = was_managed && sub.covered_until(now) == Some(sub.renews_at);
        match (is_covered, sub.credit) {
            (true, 0..) => {
                sub.late_since = None;
                self.sub.status = self.covered_status();
            }
            // A dispute.
            (true, _) if goes_on => {}
            (true, _) => sub.late_since = Some(now),
            (false, _) if goes_on && sub.renews_at.is_some_and(|due| due <= now) => {
                let last = sub.free_time.or(sub.period);
                if last.is_some_and(|last| last.cycle != sub.billing_cycle) {
                    self.align_anchor();
                }
            }
            (false, _) => self.restart_lateness(),
        }
    }

    /// Opens the period that a client reported as unpaid, late from now.
    fn restart_lateness(&mut self) {
        let (now, sub) = (self.now, &mut self.sub);
        sub.late_since = Some(now);
        sub.period = None;
        sub.free_time = None;
        let reported = sub.renews_at.filter(|renewal| *renewal > now);
        if let Some(renewal) = reported.filter(|_| sub.starts_at <= now) {
            // The period before this date is unpaid.
            let start = sub.billing_cycle.nth_renewal(renewal, -1);
            let start = start.unwrap_or(sub.starts_at).max(sub.starts_at);
            sub.renews_at = Some(start.min(now));
            sub.anchor = renewal;
        } else {
            let due = now.max(sub.starts_at);
            sub.renews_at = Some(due);
            sub.anchor = due;
        }
    }

    /// Covers the time up to `renews_at`, which a client reported as covered.
    fn cover_reported(&mut self, was_managed: bool) {
        let (now, amount) = (self.now, self.amount());
        if self.sub.status == SubscriptionStatus::OnTrial {
            // The trial of a lifetime has no renewal. What follows it is due.
            let trial_end = self.sub.trial.map(|trial| trial.ends_at);
            let ends_at = self.sub.renews_at.or(trial_end).unwrap_or(now);
            self.sub.renews_at = Some(ends_at);
            if trial_end != Some(ends_at) && ends_at > now {
                let plan = self.sub.plan.id;
                self.sub.trial = Some(Trial { plan, ends_at });
            }
        }
        // Without a date, nothing is known to be covered.
        let is_lifetime = self.sub.billing_cycle == BillingCycle::Lifetime;
        let end = self.sub.renews_at.or((!is_lifetime).then_some(now));
        if end.is_some_and(|renewal| renewal <= now) {
            let due = now.max(self.sub.starts_at);
            self.sub.renews_at = Some(due);
            self.sub.anchor = due;
            if due > now && self.sub.status == SubscriptionStatus::OnTrial {
                self.sub.status = SubscriptionStatus::Active;
            }
            return;
        }
        let covered_until = self.sub.covered_until(now).filter(|_| was_managed);
        match (covered_until, end) {
            // It starts later, and nothing is covered before.
            (None, _) if was_managed && end == Some(self.sub.starts_at) => {
                self.sub.period = None;
                self.sub.free_time = None;
            }
            (Some(covered), _) if covered == end => {}
            (Some(Some(covered)), Some(end)) if covered < end => {
                let anchor = self.sub.anchor;
                self.sub.renews_at = Some(covered);
                self.cover_free(end, EntryCause::Managed);
                self.sub.anchor = anchor;
                self.align_anchor();
            }
            _ => {
                let start = now.max(self.sub.starts_at);
                let cycle = self.sub.billing_cycle;
                self.sub.period = None;
                self.sub.free_time = Some(BillingPeriod::free(start, end, cycle, amount));
                self.post_free_time(EntryCause::Managed, start, end);
                self.align_anchor();
            }
        }
    }
}

impl Subscription {
    /// Returns whether it is a lifetime that is due, or will be, and whose client does not report it as paid.
    pub(super) fn is_unpaid_lifetime(&self, now: Timestamp) -> bool {
        let is_due = match self.status {
            SubscriptionStatus::PastDue
            | SubscriptionStatus::Unpaid
            | SubscriptionStatus::Paused => true,
            SubscriptionStatus::Active => self.starts_at > now && self.anchor == self.starts_at,
            _ => false,
        };
        is_due && self.billing_cycle == BillingCycle::Lifetime && self.covered_until(now).is_none()
    }

    /// Returns until when its periods cover it; the outer `None` if they do not.
    #[expect(clippy::option_option, reason = "a lifetime is covered without an end")]
    fn covered_until(&self, now: Timestamp) -> Option<Option<Timestamp>> {
        let parts = [self.free_time, self.period].into_iter().flatten();
        let mut in_force = parts.filter(|part| part.is_in_force(now));
        in_force.next().map(|part| part.ends_at)
    }

    /// Returns whether no deadline of its lateness has passed.
    fn is_still_late(&self, dunning: &Dunning, now: Timestamp) -> bool {
        let is_before = |deadline: Option<Timestamp>| deadline.is_some_and(|at| at > now);
        let expiry = self
            .late_since
            .and_then(|since| days_after(since, dunning.expired_after));
        let has_grace =
            self.status == SubscriptionStatus::Unpaid || is_before(self.grace_ends_at(dunning));
        has_grace && is_before(expiry)
    }
}
