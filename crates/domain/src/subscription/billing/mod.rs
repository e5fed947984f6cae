//! Managed billing: credit, periods and the ledger.
//!
//! Money waits as credit until a period starts. A period is charged when it starts. Free time is only
//! a trial, `free_until`, or what was covered when the service began to manage the subscription.
//!
//! An [`Account`] is a managed subscription while one change is applied to it. Every rule that moves
//! money or time is a method of it, and each movement posts a [`LedgerEntry`]. The rules by topic:
//! `create.rs`, `due.rs` (what happens over time), `terms.rs` (plan, quantity, price), `status.rs`
//! (pause, cancel, reopen), `free_time.rs`, `update.rs` (requests), `payments.rs`, `managed.rs` (switches
//! between modes), `summary.rs` (derived fields) and `preview.rs`. `period.rs` has the shares of a period.

use jiff::{SignedDuration, Timestamp};

use super::{Dunning, Subscription, SubscriptionStatus};
use crate::PlanId;

mod create;
mod due;
mod free_time;
mod ledger_entry;
mod managed;
mod payments;
mod period;
mod preview;
mod status;
mod summary;
mod terms;
mod update;

pub use free_time::FreeTimeError;
pub use ledger_entry::{EntryCause, EntryType, LedgerEntry};
pub use payments::PaymentPosting;
pub use period::BillingPeriod;
pub use preview::Preview;
pub(super) use status::{StatusDates, StatusError};
pub use summary::BillingSummary;
pub(super) use terms::Terms;

/// The precision of stored timestamps.
pub(super) const TICK: SignedDuration = SignedDuration::from_micros(1);

/// A free trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// The plan when the trial started. A later change of the plan does not change it.
    pub plan: PlanId,
    /// End of the trial.
    pub ends_at: Timestamp,
}

/// The result of a change to a subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct BillingChange {
    /// The subscription afterwards.
    pub after: Subscription,
    /// The entries to append to the ledger, in order.
    pub entries: Vec<LedgerEntry>,
}

/// A change that needs more credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shortage {
    /// Missing minor units.
    pub missing: i64,
}

/// A managed subscription while one change is applied to it.
pub(super) struct Account {
    pub sub: Subscription,
    pub dunning: Dunning,
    /// The instant of the change.
    pub now: Timestamp,
    entries: Vec<LedgerEntry>,
}

impl Account {
    pub(super) fn new(sub: Subscription, dunning: Dunning, now: Timestamp) -> Self {
        Self {
            sub,
            dunning,
            now,
            entries: Vec::new(),
        }
    }

    /// Returns an account of a subscription that the service does not manage, to post money.
    pub(super) fn unmanaged(sub: Subscription, now: Timestamp) -> Self {
        let dunning = Dunning {
            since: now,
            unpaid_after: 0,
            expired_after: 0,
        };
        Self::new(sub, dunning, now)
    }

    /// Returns the subscription and its entries. Sets `updated_at` to the time of the last entry, so
    /// that the next change is later.
    pub(super) fn finish(mut self) -> BillingChange {
        let last = self.entries.last().map_or(self.now, |entry| entry.at);
        self.sub.updated_at = self.now.max(last);
        BillingChange {
            after: self.sub,
            entries: self.entries,
        }
    }

    /// Returns price × quantity in minor units. A managed subscription has a known price.
    pub(super) fn amount(&self) -> i64 {
        self.sub.amount().unwrap_or(0)
    }

    /// Returns whether the credit pays one period.
    pub(super) fn is_funded(&self) -> bool {
        self.sub.credit >= self.amount()
    }

    /// Returns whether the covered time reaches beyond now. A paid lifetime has no `renews_at`.
    pub(super) fn is_covered(&self) -> bool {
        self.sub.was_covered() && self.sub.renews_at.is_none_or(|renewal| renewal > self.now)
    }

    /// Appends an entry and applies its amount to the credit. Entries of one change are one
    /// microsecond apart, so that their order is unambiguous.
    fn post(&mut self, entry: &ledger_entry::Posting) {
        let after_last = |last: &LedgerEntry| last.at.saturating_add(TICK).unwrap_or(last.at);
        let at = self.entries.last().map_or(self.now, after_last);
        self.sub.credit = self.sub.credit.saturating_add(entry.amount);
        self.entries.push(LedgerEntry {
            at,
            entry_type: entry.entry_type,
            cause: entry.cause,
            amount: entry.amount,
            credit_after: self.sub.credit,
            payment: entry.payment,
            period: entry.period,
            plan: self.sub.plan.id,
            quantity: self.sub.quantity,
        });
    }

    /// Charges the period that starts at `start` and covers it. An amount of 0 posts no entry.
    fn charge_period(&mut self, start: Timestamp, cause: EntryCause) {
        let (cycle, amount) = (self.sub.billing_cycle, self.amount());
        let end = cycle.next_renewal(self.sub.anchor, start);
        if amount > 0 {
            let posting = ledger_entry::Posting::new(EntryType::Period, cause, -amount);
            self.post(&posting.with_period(start, end));
        }
        self.sub.period = Some(BillingPeriod::paid(start, end, cycle, amount));
        self.sub.free_time = None;
        self.sub.renews_at = end;
    }

    /// Starts a period now: charges it, or leaves it open and late. The caller sets the anchor.
    fn start_period(&mut self, cause: EntryCause) {
        if self.is_funded() {
            self.charge_period(self.now, cause);
            self.sub.late_since = None;
            self.sub.status = SubscriptionStatus::Active;
        } else {
            self.sub.renews_at = Some(self.now);
            self.sub.late_since = self.sub.late_since.or(Some(self.now));
            self.sub.status = SubscriptionStatus::PastDue;
        }
    }

    /// Starts a pending subscription or pays an open period, if the credit suffices. Starts lateness
    /// if the credit is negative.
    pub(super) fn settle(&mut self) {
        let starts_now =
            self.sub.status == SubscriptionStatus::Pending && self.sub.starts_at <= self.now;
        if starts_now && self.is_funded() {
            self.start_pending();
        }
        if self.sub.credit < 0 && self.sub.late_since.is_none() {
            match self.sub.status {
                SubscriptionStatus::Active | SubscriptionStatus::OnTrial => {
                    self.sub.status = SubscriptionStatus::PastDue;
                    self.sub.late_since = Some(self.now);
                }
                SubscriptionStatus::Paused => self.sub.late_since = Some(self.now),
                // A canceled subscription gets no grace.
                SubscriptionStatus::Cancelled => self.expire(self.now),
                SubscriptionStatus::Pending
                | SubscriptionStatus::PastDue
                | SubscriptionStatus::Unpaid
                | SubscriptionStatus::Expired => {}
            }
        }
        self.end_lateness();
    }

    /// Starts a pending subscription now.
    fn start_pending(&mut self) {
        self.sub.starts_at = self.now;
        // An anchor in the future is the end of the first period, as the client set it.
        self.sub.anchor = self.sub.anchor.max(self.now);
        self.start_period(EntryCause::Start);
    }

    /// Returns the start of the period that is due and not paid. None starts while the subscription is
    /// paused: then only a period that was due before is open, not the time that lapsed meanwhile.
    fn open_since(&self) -> Option<Timestamp> {
        let due = self.sub.renews_at.filter(|due| *due <= self.now)?;
        let lapsed_while_paused = self.sub.status == SubscriptionStatus::Paused
            && self.sub.late_since != Some(due)
            && self.sub.was_covered();
        (!lapsed_while_paused).then_some(due)
    }

    /// Ends lateness if the credit suffices: pays the open period from its own start. If that period
    /// is over, the next one starts now.
    fn end_lateness(&mut self) {
        if self.sub.late_since.is_none() {
            return;
        }
        let open = self.open_since();
        let can_end = match open {
            Some(_) => self.is_funded(),
            None => self.sub.credit >= 0,
        };
        if !can_end {
            return;
        }
        self.sub.late_since = None;
        let paused = self.sub.status == SubscriptionStatus::Paused;
        if !paused {
            self.sub.status = SubscriptionStatus::Active;
        }
        let Some(due) = open else { return };
        self.charge_period(due, EntryCause::LatePayment);
        let is_over = self.sub.renews_at.is_some_and(|end| end <= self.now);
        if is_over && !paused {
            self.sub.anchor = self.now;
            self.start_period(EntryCause::Renewal);
        }
    }

    /// Expires the subscription at `end`. The credit stays.
    fn expire(&mut self, end: Timestamp) {
        self.sub.status = SubscriptionStatus::Expired;
        self.sub.ends_at = Some(end.max(self.sub.starts_at));
        self.sub.late_since = None;
    }
}

impl Subscription {
    /// Returns whether any time was covered, also if it has passed.
    pub const fn was_covered(&self) -> bool {
        self.period.is_some() || self.free_time.is_some()
    }

    /// Returns price × quantity in minor units, or `None` if the price is unknown.
    pub fn amount(&self) -> Option<i64> {
        let quantity = i64::from(self.quantity.get());
        self.price()?.minor_units().checked_mul(quantity)
    }

    /// Returns the end of the period that is open: due and not paid.
    pub(super) fn open_period_end(&self) -> Option<Timestamp> {
        self.billing_cycle
            .next_renewal(self.anchor, self.renews_at?)
    }

    /// Returns when access ends for a late subscription: after `unpaid_after` days, and not after
    /// the end of the period that is unpaid.
    pub(super) fn grace_ends_at(&self, dunning: &Dunning) -> Option<Timestamp> {
        let since = self.late_since?;
        let deadline = days_after(since, dunning.unpaid_after)?;
        // Lateness inside covered time comes from a dispute; the unpaid period is then the current one.
        let disputed = self.renews_at.filter(|renewal| *renewal > since);
        let end = disputed.or_else(|| self.open_period_end());
        Some(end.map_or(deadline, |end| deadline.min(end)))
    }
}

/// Returns the instant `days` × 24 hours after `instant`.
pub(super) fn days_after(instant: Timestamp, days: u16) -> Option<Timestamp> {
    let days = SignedDuration::from_hours(24 * i64::from(days));
    instant.checked_add(days).ok()
}

#[cfg(test)]
pub(super) mod fixtures;
#[cfg(test)]
pub(super) mod laws;
#[cfg(test)]
mod tests;
