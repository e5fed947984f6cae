//! Starts of covered time: creation, the switch to managed mode and free time.

use crate::calendar::{DAY, period_start};
use crate::coverage::{Mode, Stage};
use crate::replay::{Replay, fail};
use crate::verbs::mode_of;
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
        let is_trial_next = self
            .peek()
            .is_some_and(|entry| entry.kind == EntryKind::Extension);
        self.state.first_end = renews_at.filter(|end| *end > at);
        self.state.anchor = starts_at;
        match status {
            Some(Status::OnTrial) => return self.grant(at, 0, renews_at, true),
            None if trial_days > 0 && is_trial_next => {
                return self.grant(at, 0, renews_at, true);
            }
            Some(Status::Expired) => {
                self.state.end();
                return Ok(());
            }
            None if self.state.amount() == 0 => {}
            None | Some(Status::Pending) => {
                self.state.stage = Stage::Pending;
                self.state.is_start_tried = starts_at <= at;
                return if starts_at > at {
                    Ok(())
                } else {
                    self.start_pending_if_shown(at, 0)
                };
            }
            Some(_) => {}
        }
        if self.state.mode == Mode::Paused || starts_at > at {
            self.state.cover_period(starts_at, Some(starts_at));
            self.state.first_end = renews_at.filter(|end| *end > at);
            if let Some(cover) = &mut self.state.cover {
                cover.is_lapsed = starts_at <= at;
            }
            return Ok(());
        }
        let start = match self.state.first_end {
            Some(_) => self.shown_start(starts_at, at).unwrap_or(starts_at),
            None => period_start(starts_at, self.state.terms.cycle, at),
        };
        self.start_due(start, at)
    }

    /// Returns the open period's start that a probe shows, if it lies in the range.
    fn shown_start(&self, from: i64, to: i64) -> Option<i64> {
        let shown = self.probe_after_call()?.renews_at?;
        (from..=to).contains(&shown).then_some(shown)
    }

    /// Starts a due period: charged, or open and late from `at`.
    fn start_due(&mut self, start: i64, at: i64) -> Result<(), Violation> {
        if self.charge(at, start, 0)? {
            return Ok(());
        }
        if self.state.mode == Mode::Cancelled {
            self.state.end();
        } else {
            self.state.open_period(start, at, 0, self.history.dunning);
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
        let shown = self.probe_after_call().map(|probe| probe.status);
        self.state.mode = shown.map_or(self.state.mode, mode_of);
        self.state.is_end_known = false;
        self.state.is_start_tried = true;
        self.state.stage = Stage::Running;
        let is_future = renews_at.is_some_and(|end| end > at);
        match (shown, renews_at) {
            (Some(Status::Expired), _) => self.state.end(),
            (Some(Status::Pending), _) => self.state.stage = Stage::Pending,
            (_, Some(end)) if is_future => {
                return self.grant(at, fuzz, Some(end), shown == Some(Status::OnTrial));
            }
            (_, Some(end)) if self.state.mode == Mode::Paused => {
                self.state.cover_free(end, Some(end), false);
            }
            (_, Some(end)) => {
                let charged = self
                    .peek()
                    .and_then(|entry| entry.period)
                    .map(|(start, _)| start);
                let start = charged
                    .or_else(|| self.shown_start(end, at + fuzz))
                    .unwrap_or(at);
                self.state.anchor = start;
                return self.start_due(start, at);
            }
            (_, None) if self.state.terms.cycle == Cycle::Lifetime => {
                self.take(EntryKind::Extension, at);
                self.state.cover_free(at, None, false);
            }
            (_, None) => self.state.end(),
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
        let from = covered.and_then(|cover| cover.end).unwrap_or(at).max(at);
        let starts_at = self.state.starts_at;
        let is_start_right = (from..=from + fuzz).contains(&start)
            || is_trial && ((at..=at + fuzz).contains(&start) || start == starts_at);
        let days = i64::from(self.state.trial_days) * DAY;
        let is_end_right = match until {
            Some(until) => end == until,
            None => is_trial && end == start + days,
        };
        if !is_start_right || !is_end_right {
            let what = format!("an extension covers {start} to {end}, the call gives {until:?}");
            return Err(fail(at, what));
        }
        self.check_terms(entry)?;
        if self.state.credit < 0 {
            return Err(fail(at, "an extension leaves negative credit"));
        }
        if self.state.stage == Stage::Pending || self.state.stage == Stage::Ended {
            self.state.starts_at = self.state.starts_at.min(start);
        }
        self.state.cover_free(start, Some(end), is_trial);
        Ok(())
    }
}
