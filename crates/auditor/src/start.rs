//! Starts of covered time: creation, the switch to managed mode and free time.

use crate::calendar::{DAY, cycles_after, is_renewal, period_start};
use crate::coverage::{Mode, Stage};
use crate::replay::{Replay, fail};
use crate::{Call, Cycle, EntryKind, Status, Verb, Violation};

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
            Some(Status::OnTrial) => return self.grant(at, 0, renews_at, true),
            None if trial_days > 0 => return self.grant(at, 0, renews_at, true),
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
        let covered = self.state.cover.as_ref().and_then(|cover| cover.end);
        self.state.ends_at = self.state.ends_at.or(covered);
        if self.state.ends_at.is_none() {
            self.state.end();
        }
    }

    /// Starts a due period: charged, or open and late from `at`.
    fn start_due(&mut self, start: i64, at: i64, fuzz: i64) -> Result<(), Violation> {
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

    /// Applies the switch from recorded to managed.
    pub(crate) fn enter_managed(
        &mut self,
        at: i64,
        fuzz: i64,
        renews_at: Option<i64>,
    ) -> Result<(), Violation> {
        self.state.stage = Stage::Running;
        let reported = if self.state.ends_at.is_some_and(|end| end <= at) {
            Status::Expired
        } else {
            self.state.reported
        };
        let is_late = matches!(reported, Status::PastDue | Status::Unpaid);
        match (reported, renews_at) {
            (Status::Expired, _) => self.state.end(),
            (Status::Pending, _) => {
                self.state.stage = Stage::Pending;
                // Each change has its own instant: the start follows the switch.
                return self.start_pending_if_funded(at + 1, fuzz);
            }
            // The period that a client reported as unpaid is open, late from the switch.
            (_, Some(end)) if is_late && end > at => {
                let start = cycles_after(end, end, self.state.terms.cycle, -1);
                let start = start.unwrap_or(at).max(self.state.starts_at).min(at);
                self.state.anchor = end;
                self.state.first_end = Some(end);
                self.start_due(start, at, fuzz)?;
            }
            (_, None) if is_late => {
                self.state.anchor = at;
                self.start_due(at, at, fuzz)?;
            }
            (_, Some(end)) if end > at => {
                let anchor = self.state.anchor;
                self.grant(at, fuzz, Some(end), reported == Status::OnTrial)?;
                if is_renewal(anchor, end, self.state.terms.cycle) {
                    self.state.anchor = anchor;
                }
            }
            (_, Some(end)) if self.state.mode == Mode::Paused => {
                self.state.cover_free(end, Some(end), false);
            }
            (_, Some(_)) => {
                self.state.anchor = at;
                self.start_due(at, at, fuzz)?;
            }
            (_, None) if self.state.terms.cycle == Cycle::Lifetime => {
                self.take(EntryKind::Extension, at);
                self.state.cover_free(at, None, false);
            }
            (_, None) => self.state.end(),
        }
        if let Some(late) = self
            .state
            .late
            .as_mut()
            .filter(|_| reported == Status::Unpaid)
        {
            // The client has ended access already.
            late.grace_until = late.since;
        }
        Ok(())
    }

    /// Prolongs the covered time; a trial stays a trial.
    pub(crate) fn extend(&mut self, at: i64, fuzz: i64, until: i64) -> Result<(), Violation> {
        let covered = self.state.cover.as_ref();
        let is_trial = covered.is_some_and(|cover| cover.is_trial && cover.is_in_force(at));
        self.grant(at, fuzz, Some(until), false)?;
        if let Some(cover) = self.state.cover.as_mut().filter(|_| is_trial) {
            cover.is_trial = true;
        }
        Ok(())
    }

    /// Grants free time: a waiver of negative credit and an extension entry.
    pub(crate) fn grant(
        &mut self,
        at: i64,
        fuzz: i64,
        until: Option<i64>,
        is_trial: bool,
    ) -> Result<(), Violation> {
        if let Some(waiver) = self.take(EntryKind::Waiver, at) {
            self.state.record_waiver(waiver, at);
        }
        let Some(entry) = self.take(EntryKind::Extension, at) else {
            return Err(fail(
                at,
                "free time was granted, no extension entry says so",
            ));
        };
        let Some((start, Some(end))) = entry.period else {
            return Err(fail(at, "an extension without bounds"));
        };
        let covered = self
            .state
            .cover
            .as_ref()
            .filter(|cover| cover.is_in_force(at));
        let starts_at = self.state.starts_at;
        let from = match covered.and_then(|cover| cover.end) {
            Some(end) if !is_trial => end.max(at),
            _ if self.state.stage == Stage::Ended => at,
            _ => starts_at.max(at),
        };
        let is_start_right = (from..=from + fuzz).contains(&start);
        let days = i64::from(self.state.trial_days) * DAY;
        let trial_from = if self.state.stage == Stage::Pending {
            from
        } else {
            starts_at
        };
        let is_end_right = match until {
            Some(until) => end == until,
            None => is_trial && (trial_from..=trial_from + fuzz).contains(&(end - days)),
        };
        if !is_start_right || !is_end_right {
            let what = format!("an extension covers {start} to {end}, the call gives {until:?}");
            return Err(fail(at, what));
        }
        self.check_terms(entry)?;
        if self.state.credit < 0 {
            return Err(fail(at, "an extension leaves negative credit"));
        }
        match self.state.stage {
            Stage::Pending => self.state.starts_at = start,
            Stage::Ended => self.state.starts_at = starts_at.min(start),
            Stage::Unmanaged | Stage::Running => {}
        }
        self.state.cover_free(start, Some(end), is_trial);
        Ok(())
    }
}
