//! Calls that the auditor cannot judge. They are left out of the sequences.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::{
    super::fixtures::{Book, DUNNING},
    scenario::{Action, Creation},
};
use crate::{BillingCycle, Dunning, SubscriptionStatus};

impl Creation {
    /// Removes what the auditor cannot judge.
    pub(super) fn limit(&mut self, dunning: &Dunning) {
        if dunning.expired_after == 0 {
            self.starts = None;
        }
        let may_be_trial =
            self.offer.trial_days > 0 || self.status == Some(SubscriptionStatus::OnTrial);
        if may_be_trial {
            self.starts = self.starts.filter(|days| *days >= 0);
        }
        if self.status == Some(SubscriptionStatus::Cancelled) {
            self.ends = self.ends.or(Some(50));
        }
        let longest = match self.offer.billing_cycle {
            BillingCycle::Daily => 1,
            BillingCycle::Weekly => 7,
            BillingCycle::Monthly => 28,
            _ => 80,
        };
        self.renews = self.renews.map(|days| days.min(longest));
        if self.status == Some(SubscriptionStatus::Paused) {
            self.renews = None;
        }
        let is_free = self.offer.price.minor_units() == 0;
        self.switch_after = self.switch_after.filter(|_| !is_free);
        if self.switch_after.is_some() {
            self.starts = None;
        }
    }
}

impl Action {
    /// Returns whether the auditor can judge this call on a subscription to which everything due by
    /// `now` was applied.
    pub(super) fn is_judged(&self, book: &Book, now: Timestamp) -> bool {
        let sub = &book.sub;
        let period = sub.period.as_ref();
        let is_bought_cycle = period.is_none_or(|period| period.cycle == sub.billing_cycle);
        let is_early = |at: Timestamp| TimeZone::UTC.to_datetime(at).day() <= 28;
        let is_first_end_stated = sub.period.is_none() && sub.anchor > sub.starts_at;
        // The anchor of another cycle is known.
        let is_anchored =
            !is_first_end_stated && is_early(sub.anchor) && sub.renews_at.is_none_or(is_early);
        let is_pending = sub.status == SubscriptionStatus::Pending;
        // A cancelled subscription that is changed within its last second.
        let just_later = now + SignedDuration::from_secs(1);
        let is_at_end = sub.status == SubscriptionStatus::Cancelled
            && sub.renews_at.is_some_and(|renewal| renewal < just_later);
        let is_extended = sub.renews_at == Some(sub.anchor);
        let is_switched = sub.managed_since > Some(DUNNING.since);
        let is_first_entry_unclear = is_switched && book.entries.is_empty();
        match self {
            Self::Extend(_)
            | Self::Status(SubscriptionStatus::Active, Some(_), _)
            | Self::Quantity(_)
            | Self::Plan(_)
                if is_first_entry_unclear =>
            {
                false
            }
            Self::Status(SubscriptionStatus::Paused, ..) => !is_first_end_stated,
            Self::Dispute(_) => sub.amount() > Some(0),
            Self::Extend(_) | Self::Status(SubscriptionStatus::Active, Some(_), _) => {
                sub.starts_at <= now && !sub.in_trial(now)
            }
            Self::Status(SubscriptionStatus::Active, None, _) => {
                sub.starts_at <= now || !sub.in_trial(now)
            }
            Self::Status(SubscriptionStatus::Cancelled, ..) => {
                let last = sub.paid_until().map_or(0, Timestamp::as_second);
                // Up to the year 2200.
                !is_pending && sub.starts_at <= now && last < 7_258_118_400
            }
            Self::Status(SubscriptionStatus::OnTrial, ..) => is_pending,
            Self::Price(..) | Self::Quantity(_) | Self::Plan(_) if is_at_end => false,
            Self::Price(cycle, price) => {
                let is_free_start_or_debt = *price == 0 && (is_pending || sub.credit < 0);
                let is_cycle_kept = *cycle == sub.billing_cycle;
                !is_free_start_or_debt && (is_cycle_kept || sub.late_since.is_none() && is_anchored)
            }
            Self::Quantity(_) => is_bought_cycle && !(sub.amount() == Some(0) && is_extended),
            Self::Plan(offer) => {
                let is_free = offer.price.minor_units() == 0;
                let is_cycle_kept = offer.billing_cycle == sub.billing_cycle;
                let is_late = sub.late_since.is_some();
                let is_unclear_if_free =
                    is_extended || is_pending || is_late && !is_cycle_kept || sub.credit < 0;
                let is_clear = !is_free || !is_unclear_if_free;
                is_clear && is_bought_cycle && (is_cycle_kept || is_anchored)
            }
            _ => true,
        }
    }
}
