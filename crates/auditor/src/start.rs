//! Starts of covered time: creation, trials and `free_until`.

use crate::calendar::{DAY, period_start};
use crate::cover::Cover;
use crate::coverage::{Mode, Stage};
use crate::replay::{Replay, fail};
use crate::{Call, EntryKind, Status, Verb, Violation};

impl Replay<'_> {
    /// Applies the creation, whose fields the state already has.
    pub(crate) fn create(&mut self, call: &Call) -> Result<(), Violation> {
        let Verb::Create {
            status,
            renews_at,
            trial_days,
            ..
        } = call.verb
        else {
            return Ok(());
        };
        let at = call.at;
        let starts_at = self.state.starts_at;
        self.state.first_end = renews_at.filter(|end| *end > at);
        self.state.anchor = renews_at.filter(|end| *end <= at).unwrap_or(starts_at);
        match status {
            Some(Status::OnTrial) => return self.grant_trial(at, 0, renews_at),
            None if trial_days > 0 => return self.grant_trial(at, 0, renews_at),
            Some(Status::Expired) => {
                self.state.end();
                return Ok(());
            }
            None if self.state.amount() == 0 => {}
            None | Some(Status::Pending) => {
                self.state.stage = Stage::Pending;
                return self.start_pending_if_funded(at, 0);
            }
            Some(_) => {}
        }
        if self.state.mode == Mode::Paused || starts_at > at {
            self.state.schedule(starts_at);
            if let Some(cover) = &mut self.state.cover {
                cover.is_lapsed = starts_at <= at;
            }
        } else {
            let start = match self.state.first_end {
                Some(_) => starts_at,
                None => period_start(self.state.anchor, self.state.terms.cycle, at),
            };
            self.start_due(start, at, 0)?;
        }
        if self.state.mode == Mode::Cancelled {
            self.end_created_cancelled();
        }
        Ok(())
    }

    /// Derives the end of a subscription that was created as cancelled and did not end at once.
    fn end_created_cancelled(&mut self) {
        let covered = self.state.cover.as_ref().and_then(Cover::end);
        self.state.ends_at = self.state.ends_at.or(covered);
        if self.state.ends_at.is_none() {
            self.state.end();
        }
    }

    /// Starts a due period: charged, or open and late from `at`.
    pub(crate) fn start_due(&mut self, start: i64, at: i64, fuzz: i64) -> Result<(), Violation> {
        if self.charge(at, start, fuzz)? {
            return Ok(());
        }
        if self.state.mode == Mode::Cancelled {
            self.state.end();
        } else {
            self.state
                .open_period(start, at, fuzz, self.history.dunning);
        }
        Ok(())
    }

    /// Grants a trial until an instant, or of the plan's length.
    pub(crate) fn grant_trial(
        &mut self,
        at: i64,
        fuzz: i64,
        until: Option<i64>,
    ) -> Result<(), Violation> {
        self.waive_debt(at)?;
        let starts_at = self.state.starts_at;
        let from = starts_at.max(at);
        if self.state.stage == Stage::Pending {
            let start = self.extend(at, fuzz, from, from, until, true)?;
            self.state.starts_at = start;
            return Ok(());
        }
        self.extend(at, fuzz, from, starts_at, until, true)?;
        Ok(())
    }

    /// Gives free time after what is covered; an ended subscription is reopened.
    pub(crate) fn free_until(&mut self, at: i64, fuzz: i64, until: i64) -> Result<(), Violation> {
        if self.state.stage == Stage::Ended {
            self.state.starts_at = self.state.starts_at.min(at);
            self.state.ends_at = None;
            self.state.is_end_known = true;
            self.state.mode = Mode::Normal;
            self.state.cover = None;
        }
        self.waive_debt(at)?;
        let covered = self.state.cover_in_force(at);
        let is_trial = covered.is_some_and(|cover| cover.is_trial);
        let end = covered.and_then(Cover::end);
        let from = end.unwrap_or(at.max(self.state.starts_at));
        self.extend(at, fuzz, from, from, Some(until), is_trial)?;
        Ok(())
    }

    /// Waives negative credit, which ends a debt that disputes left.
    fn waive_debt(&mut self, at: i64) -> Result<(), Violation> {
        let debt = -self.state.credit;
        if debt <= 0 {
            return Ok(());
        }
        if self.take(EntryKind::Waiver, at).is_none() || self.state.credit != 0 {
            return Err(fail(
                at,
                format!("free time does not waive a debt of {debt}"),
            ));
        }
        self.state.waive(debt, self.state.last_change);
        self.state.waived_debt += debt;
        Ok(())
    }

    /// Covers free time from an instant; its entry must exist. Returns the start in the entry.
    ///
    /// Without `until` the trial's days count from `trial_from`.
    pub(crate) fn extend(
        &mut self,
        at: i64,
        fuzz: i64,
        from: i64,
        trial_from: i64,
        until: Option<i64>,
        is_trial: bool,
    ) -> Result<i64, Violation> {
        let Some(entry) = self.take(EntryKind::Extension, at) else {
            let what = "free time was granted, no extension entry says so";
            return Err(fail(at, what));
        };
        let Some((start, Some(end))) = entry.period else {
            return Err(fail(at, "an extension without bounds"));
        };
        let days = i64::from(self.state.trial_days) * DAY;
        let is_end_right = match until {
            Some(until) => end == until,
            None => (trial_from..=trial_from + fuzz).contains(&(end - days)),
        };
        if !(from..=from + fuzz).contains(&start) || !is_end_right {
            let what = format!("an extension covers {start} to {end}, the call gives {until:?}");
            return Err(fail(at, what));
        }
        self.check_terms(entry)?;
        self.state.cover_free(start, Some(end), is_trial, entry.at);
        Ok(start)
    }
}
