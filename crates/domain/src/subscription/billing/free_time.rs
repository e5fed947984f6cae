//! Free time: trials, `free_until`, and what was covered when the service began to manage a subscription.

use jiff::Timestamp;

use super::{Account, BillingPeriod, EntryCause, EntryType, Trial, ledger_entry, period::micros};
use crate::{
    BillingCycle, FieldError, Rule, ValidationError,
    subscription::{SubscriptionStatus, SubscriptionUpdateError},
};

impl Account {
    /// Covers the time up to `until` without charge, after what is covered.
    pub(super) fn cover_free(&mut self, until: Timestamp, cause: EntryCause) {
        let due = self.sub.renews_at.unwrap_or(self.now);
        let from = due.max(self.now);
        self.post_free_time(cause, from, Some(until));
        let (amount, cycle) = (self.amount(), self.sub.billing_cycle);
        let (now, covered) = (self.now, self.is_covered());
        match &mut self.sub.free_time {
            Some(free_time) if covered => free_time.prolong(until, now),
            free_time => {
                *free_time = Some(BillingPeriod::free(from, Some(until), cycle, amount));
                if !covered {
                    self.sub.period = None;
                }
            }
        }
        self.sub.renews_at = Some(until);
        self.sub.anchor = until;
        self.sub.late_since = None;
    }

    pub(super) fn post_free_time(
        &mut self,
        cause: EntryCause,
        start: Timestamp,
        end: Option<Timestamp>,
    ) {
        let posting = ledger_entry::Posting::new(EntryType::Extension, cause, 0);
        self.post(&posting.with_period(start, end));
    }

    /// Gives free time up to `until`. Ends lateness and waives negative credit.
    pub(super) fn give_free_time(
        &mut self,
        until: Timestamp,
    ) -> Result<(), SubscriptionUpdateError> {
        let in_trial = self.sub.in_trial(self.now);
        let reopens = self.sub.status == SubscriptionStatus::Expired;
        match self.sub.status {
            SubscriptionStatus::OnTrial
            | SubscriptionStatus::Active
            | SubscriptionStatus::PastDue
            | SubscriptionStatus::Unpaid
            | SubscriptionStatus::Expired => {}
            status @ (SubscriptionStatus::Pending
            | SubscriptionStatus::Paused
            | SubscriptionStatus::Cancelled) => {
                return Err(SubscriptionUpdateError::FreeTimeNotPossible(
                    FreeTimeError::Status(status),
                ));
            }
        }
        if self.sub.billing_cycle == BillingCycle::Lifetime && !in_trial {
            return Err(SubscriptionUpdateError::FreeTimeNotPossible(
                FreeTimeError::Lifetime,
            ));
        }
        if self.amount() == 0 {
            return Err(SubscriptionUpdateError::FreeTimeNotPossible(
                FreeTimeError::NothingToPay,
            ));
        }
        let covered_until = self.sub.renews_at.filter(|_| !reopens);
        if until <= self.now.max(self.sub.starts_at) || covered_until >= Some(until) {
            let error = not_later_error(covered_until.unwrap_or(self.now).max(self.now));
            return Err(SubscriptionUpdateError::InvalidFields(vec![error]));
        }
        self.waive_debt();
        if reopens {
            self.end_trial();
            self.sub.starts_at = self.sub.starts_at.min(self.now);
            self.sub.ends_at = None;
            self.sub.renews_at = Some(self.now);
            self.sub.period = None;
            self.sub.free_time = None;
        }
        self.cover_free(until, EntryCause::FreeUntil);
        self.sub.free_until = Some(until);
        if let Some(trial) = self.sub.trial.as_mut().filter(|_| in_trial && !reopens) {
            trial.ends_at = until;
        }
        self.sub.status = self.covered_status();
        Ok(())
    }

    /// Starts a trial: free time up to `end`. The first period starts at its end.
    pub(super) fn start_trial(&mut self, start: Timestamp, end: Timestamp) {
        self.sub.starts_at = start;
        self.sub.renews_at = Some(start);
        self.sub.period = None;
        self.sub.free_time = None;
        self.cover_free(end, EntryCause::Trial);
        self.sub.trial = Some(Trial {
            plan: self.sub.plan.id,
            ends_at: end,
        });
        self.sub.status = SubscriptionStatus::OnTrial;
    }

    pub(super) fn end_trial(&mut self) {
        if let Some(trial) = &mut self.sub.trial {
            trial.ends_at = trial.ends_at.min(self.now);
        }
    }
}

impl BillingPeriod {
    /// Prolongs free time. What was paid in it is spread over the longer time.
    fn prolong(&mut self, until: Timestamp, now: Timestamp) {
        let amount = self.amount();
        let from = now.max(self.starts_at);
        let before = self.ends_at.map_or(0, |end| micros(from, end));
        let after = micros(from, until).max(1);
        let cost = i128::from(self.cost) * i128::from(before) / i128::from(after);
        self.cost = i64::try_from(cost).unwrap_or(0);
        self.given = amount - self.cost;
        self.waived = self.waived.min(self.given);
        self.ends_at = Some(until);
    }
}

/// Why a subscription cannot get free time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreeTimeError {
    /// The service does not charge its periods.
    NotManaged,
    /// The status allows none.
    Status(SubscriptionStatus),
    /// A lifetime has no end that could move.
    Lifetime,
    /// It costs nothing.
    NothingToPay,
    /// The billing cycle cannot change before the free time is over.
    CycleChange {
        /// The end of the free time.
        until: Timestamp,
    },
}

fn not_later_error(covered_until: Timestamp) -> FieldError {
    let message = format!("must be later than {covered_until}, the end of the covered time");
    let error = ValidationError::new(Rule::InconsistentDates, message);
    ("free_until", error)
}
