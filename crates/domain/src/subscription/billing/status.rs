//! Status changes that a client requests: activate, pause, resume, cancel, undo, reopen and expire.

use jiff::Timestamp;

use super::{Account, EntryCause, Shortage};
use crate::{BillingCycle, subscription::SubscriptionStatus};

/// Why a status change was rejected.
pub(in crate::subscription) enum StatusError {
    /// The status cannot change this way.
    NotAllowed,
    /// A lifetime subscription cannot be canceled.
    Lifetime,
    /// A trial needs an end.
    TrialEndMissing,
    /// The credit does not pay for it.
    Shortage(Shortage),
}

/// The dates sent together with a status.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::subscription) struct StatusDates {
    /// A new `ends_at`; an inner `None` clears it.
    #[expect(clippy::option_option, reason = "as in `SubscriptionChanges`")]
    pub ends_at: Option<Option<Timestamp>>,
    /// The plan's trial, in days.
    pub trial_days: u16,
}

impl Account {
    /// Changes the status. Past due and unpaid are results and cannot be requested.
    pub(in crate::subscription) fn change_status(
        &mut self,
        to: SubscriptionStatus,
        dates: StatusDates,
    ) -> Result<(), StatusError> {
        let from = self.sub.status;
        if !from.allowed_transitions().contains(&to) {
            return Err(StatusError::NotAllowed);
        }
        match to {
            SubscriptionStatus::Active => self.activate()?,
            SubscriptionStatus::OnTrial => self.start_or_resume_trial(dates)?,
            SubscriptionStatus::Paused => self.sub.status = to,
            SubscriptionStatus::Cancelled => self.cancel(dates)?,
            SubscriptionStatus::Expired => {
                let end = dates.ends_at.flatten().unwrap_or(self.now);
                self.expire(end);
            }
            SubscriptionStatus::Pending
            | SubscriptionStatus::PastDue
            | SubscriptionStatus::Unpaid => return Err(StatusError::NotAllowed),
        }
        if to != SubscriptionStatus::Cancelled
            && to != SubscriptionStatus::Expired
            && let Some(end) = dates.ends_at
        {
            self.sub.ends_at = end;
        }
        Ok(())
    }

    fn activate(&mut self) -> Result<(), StatusError> {
        let shortage = |account: &Self| {
            let missing = account.missing();
            Err(StatusError::Shortage(Shortage { missing }))
        };
        let from = self.sub.status;
        if from == SubscriptionStatus::Cancelled {
            self.sub.ends_at = None;
            self.sub.status = self.covered_status();
        }
        match from {
            SubscriptionStatus::Pending | SubscriptionStatus::OnTrial => self.start_first_period(),
            SubscriptionStatus::Paused => self.resume(),
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => return shortage(self),
            SubscriptionStatus::Expired if !self.is_funded() => return shortage(self),
            SubscriptionStatus::Expired => {
                self.end_trial();
                self.sub.starts_at = self.sub.starts_at.min(self.now);
                self.sub.ends_at = None;
                self.sub.anchor = self.now;
                self.start_period(EntryCause::Reopen);
            }
            SubscriptionStatus::Active | SubscriptionStatus::Cancelled => {}
        }
        Ok(())
    }

    /// Starts the first period now, or at a `starts_at` in the future.
    fn start_first_period(&mut self) {
        let from_trial = self.sub.status == SubscriptionStatus::OnTrial;
        self.end_trial();
        if self.sub.starts_at > self.now {
            self.sub.status = SubscriptionStatus::Active;
            self.sub.renews_at = Some(self.sub.starts_at);
            if from_trial {
                self.sub.free_time = None;
                self.sub.anchor = self.sub.starts_at;
            }
        } else if from_trial {
            self.sub.anchor = self.now;
            self.start_period(EntryCause::Start);
        } else {
            self.start_pending();
        }
    }

    fn resume(&mut self) {
        if self.sub.late_since.is_some() {
            let is_over = !self.is_covered() && self.sub.starts_at <= self.now;
            if is_over && self.open_since().is_none() {
                // A dispute made it late after its time had lapsed: only the next period is open.
                self.sub.anchor = self.now;
                self.sub.renews_at = Some(self.now);
            }
            self.sub.status = self.late_status();
        } else if self.is_covered() || self.sub.starts_at > self.now {
            self.sub.status = self.covered_status();
        } else {
            self.sub.anchor = self.now;
            self.start_period(EntryCause::Resume);
        }
    }

    /// Returns the status of a late subscription: it has access until its grace ends.
    pub(super) fn late_status(&self) -> SubscriptionStatus {
        let grace_end = self.sub.grace_ends_at(&self.dunning);
        if grace_end.is_none_or(|end| end > self.now) {
            SubscriptionStatus::PastDue
        } else {
            SubscriptionStatus::Unpaid
        }
    }

    fn start_or_resume_trial(&mut self, dates: StatusDates) -> Result<(), StatusError> {
        match self.sub.status {
            SubscriptionStatus::Pending => {
                let from = self.now.max(self.sub.starts_at);
                let end = super::days_after(from, dates.trial_days)
                    .filter(|end| *end > from)
                    .ok_or(StatusError::TrialEndMissing)?;
                self.start_trial(from, end);
                Ok(())
            }
            SubscriptionStatus::Paused | SubscriptionStatus::Cancelled
                if self.sub.in_trial(self.now) =>
            {
                if self.sub.status == SubscriptionStatus::Cancelled {
                    self.sub.ends_at = None;
                }
                self.sub.status = SubscriptionStatus::OnTrial;
                Ok(())
            }
            _ => Err(StatusError::NotAllowed),
        }
    }

    /// Stops renewal. Access ends with the time that is covered or paid by credit, or earlier if a
    /// date is set.
    fn cancel(&mut self, dates: StatusDates) -> Result<(), StatusError> {
        if self.sub.billing_cycle == BillingCycle::Lifetime {
            return Err(StatusError::Lifetime);
        }
        let covered = self.is_covered()
            && self.sub.late_since.is_none()
            && self.sub.status != SubscriptionStatus::Pending
            && self.sub.starts_at <= self.now;
        if !covered {
            self.expire(self.now);
            return Ok(());
        }
        let paid_until = self.sub.paid_until().or(self.sub.renews_at);
        let existing = self.sub.ends_at;
        let earlier = match (existing, paid_until) {
            (Some(existing), Some(paid)) => Some(existing.min(paid)),
            (existing, paid) => existing.or(paid),
        };
        self.sub.ends_at = dates.ends_at.flatten().or(earlier).or(Some(self.now));
        self.sub.status = SubscriptionStatus::Cancelled;
        if self.sub.ends_at.is_some_and(|end| end <= self.now) {
            self.sub.status = SubscriptionStatus::Expired;
        }
        Ok(())
    }

    /// Returns the status of a subscription whose covered time has not ended.
    pub(super) fn covered_status(&self) -> SubscriptionStatus {
        if self.sub.in_trial(self.now) {
            SubscriptionStatus::OnTrial
        } else {
            SubscriptionStatus::Active
        }
    }

    /// Returns the minor units that are missing to be active.
    pub(super) fn missing(&self) -> i64 {
        self.sub.amount_due(self.now).unwrap_or(0)
    }
}
