//! Creating a managed subscription.

use jiff::Timestamp;

use super::{Account, EntryCause, days_after};
use crate::{
    FieldError, Rule, ValidationError,
    subscription::{NewSubscription, SubscriptionStatus, create::future_end_error},
};

impl Account {
    /// Gives a new subscription its first status and dates. `self.sub` has the fields of the request
    /// and nothing is covered yet.
    pub(in crate::subscription) fn open(
        &mut self,
        new: &NewSubscription,
        trial_days: u16,
    ) -> Result<(), FieldError> {
        self.sub.managed_since = Some(self.dunning.since);
        self.sub.anchor = new.renews_at.unwrap_or(self.sub.starts_at);
        let starts_at = self.sub.starts_at;
        let status = new
            .status
            .unwrap_or_else(|| self.default_status(trial_days));
        match status {
            SubscriptionStatus::Pending => {
                self.sub.status = SubscriptionStatus::Pending;
                self.sub.renews_at = new.renews_at;
                self.settle();
            }
            SubscriptionStatus::OnTrial => {
                let end = new
                    .renews_at
                    .or_else(|| days_after(starts_at, trial_days).filter(|_| trial_days > 0))
                    .filter(|end| *end > self.now.max(starts_at))
                    .ok_or_else(trial_end_error)?;
                self.start_trial(starts_at, end);
            }
            SubscriptionStatus::Active => self.open_active(),
            SubscriptionStatus::Paused if new.renews_at.is_some() => {
                return Err(paused_renewal_error());
            }
            SubscriptionStatus::Paused => {
                self.sub.status = SubscriptionStatus::Paused;
                self.sub.renews_at = Some(starts_at);
            }
            SubscriptionStatus::Cancelled => {
                self.open_active();
                // Nothing is paid, and a canceled subscription gets no grace.
                let is_late = self.sub.late_since.is_some();
                let end = self.sub.ends_at.or(self.sub.renews_at);
                if let Some(end) = end.filter(|end| *end > self.now && !is_late) {
                    self.sub.status = SubscriptionStatus::Cancelled;
                    self.sub.ends_at = Some(end);
                } else {
                    let sent = new.ends_at.filter(|end| *end <= self.now);
                    self.expire(sent.unwrap_or(self.now));
                }
            }
            SubscriptionStatus::Expired if self.sub.ends_at.is_some_and(|end| end > self.now) => {
                return Err(future_end_error());
            }
            SubscriptionStatus::Expired => {
                let end = self.sub.ends_at.unwrap_or(self.now);
                self.sub.renews_at = None;
                self.expire(end);
            }
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => {
                return Err(result_status_error(status));
            }
        }
        Ok(())
    }

    fn default_status(&self, trial_days: u16) -> SubscriptionStatus {
        if trial_days > 0 {
            SubscriptionStatus::OnTrial
        } else if self.amount() == 0 {
            SubscriptionStatus::Active
        } else {
            SubscriptionStatus::Pending
        }
    }

    /// Makes the period that contains now due, or the first one at a `starts_at` in the future.
    fn open_active(&mut self) {
        let starts_at = self.sub.starts_at;
        self.sub.status = SubscriptionStatus::Active;
        if starts_at > self.now {
            self.sub.renews_at = Some(starts_at);
            return;
        }
        let due = self.period_start(starts_at);
        if self.is_funded() {
            self.charge_period(due, EntryCause::Start);
        } else {
            self.sub.renews_at = Some(due);
            self.sub.late_since = Some(self.now);
            self.sub.status = SubscriptionStatus::PastDue;
        }
    }

    /// Returns the start of the period that contains now, for a subscription that started at
    /// `starts_at`.
    fn period_start(&self, starts_at: Timestamp) -> Timestamp {
        let (cycle, anchor) = (self.sub.billing_cycle, self.sub.anchor);
        let Some(end) = cycle.next_renewal(anchor, self.now) else {
            return starts_at;
        };
        let index = cycle.index_of(anchor, end).unwrap_or(0);
        let previous = (index > 0).then(|| cycle.nth_renewal(anchor, index - 1));
        previous.flatten().unwrap_or(starts_at)
    }
}

pub(super) fn trial_end_error() -> FieldError {
    let message = "must be in the future when status is on_trial, unless the plan has trial_days";
    let error = ValidationError::new(Rule::InconsistentDates, message);
    ("renews_at", error)
}

fn paused_renewal_error() -> FieldError {
    let message = "cannot be sent with status paused: nothing is covered before it is resumed";
    let error = ValidationError::new(Rule::InconsistentDates, message);
    ("renews_at", error)
}

fn result_status_error(status: SubscriptionStatus) -> FieldError {
    let message = format!(
        "cannot be {status}: it follows from missing payments; send active, or leave status out"
    );
    let error = ValidationError::new(Rule::InconsistentStatus, message);
    ("status", error)
}
