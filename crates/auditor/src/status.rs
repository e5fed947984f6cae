//! Effects of calls that set the status.

use crate::calendar::period_end;
use crate::coverage::{Mode, Stage};
use crate::replay::{Replay, fail};
use crate::{EntryKind, Status, Violation};

/// Upper bound of the prepaid periods that a cancellation counts.
const MAX_PREPAID_PERIODS: i64 = 100_000;

impl Replay<'_> {
    /// Applies a call that sets the status, with the dates it sent.
    pub(crate) fn set_status(
        &mut self,
        at: i64,
        fuzz: i64,
        status: Status,
        renews_at: Option<i64>,
        ends_at: Option<i64>,
    ) -> Result<(), Violation> {
        let old_mode = self.state.mode;
        let is_undo = old_mode == Mode::Cancelled && status != Status::Cancelled;
        if is_undo && self.state.stage != Stage::Ended {
            self.state.ends_at = None;
            self.state.is_end_known = true;
        }
        if let Some(sent) = ends_at {
            self.state.ends_at = Some(sent);
            self.state.is_end_known = true;
        }
        let is_extension = self.peek().is_some_and(|entry| {
            matches!(entry.kind, EntryKind::Waiver | EntryKind::Extension) && entry.at >= at
        });
        match status {
            Status::Expired => {
                self.state.end();
                Ok(())
            }
            Status::Paused => {
                self.state.mode = Mode::Paused;
                self.extend_if(is_extension && renews_at.is_some(), at, fuzz, renews_at)
            }
            Status::Cancelled => {
                self.extend_if(is_extension && renews_at.is_some(), at, fuzz, renews_at)?;
                self.cancel(at, ends_at.is_some());
                Ok(())
            }
            Status::OnTrial => {
                self.state.mode = Mode::Normal;
                if self.state.stage == Stage::Ended {
                    self.state.ends_at = ends_at;
                    self.state.is_end_known = ends_at.is_some();
                }
                if is_extension {
                    self.grant(at, fuzz, renews_at, true)
                } else {
                    Ok(())
                }
            }
            _ => {
                self.state.mode = Mode::Normal;
                let until = renews_at.filter(|_| is_extension);
                if self.state.stage == Stage::Pending && until.is_none() {
                    self.state.first_end = renews_at.or(self.state.first_end);
                }
                self.activate(at, fuzz, old_mode, until, ends_at)
            }
        }
    }

    fn extend_if(
        &mut self,
        is_extension: bool,
        at: i64,
        fuzz: i64,
        until: Option<i64>,
    ) -> Result<(), Violation> {
        if is_extension {
            self.grant(at, fuzz, until, false)
        } else {
            Ok(())
        }
    }

    /// Resumes, undoes a cancellation, starts or reopens.
    fn activate(
        &mut self,
        at: i64,
        fuzz: i64,
        old_mode: Mode,
        until: Option<i64>,
        ends_at: Option<i64>,
    ) -> Result<(), Violation> {
        let stage = self.state.stage;
        if stage == Stage::Ended {
            self.state.ends_at = ends_at;
            self.state.is_end_known = ends_at.is_some();
            self.state.cover = None;
            self.state.first_end = None;
        }
        if until.is_some() {
            return self.grant(at, fuzz, until, false);
        }
        match stage {
            Stage::Ended => {
                let is_soft = self.state.is_soft_end;
                self.state.starts_at = self.state.starts_at.min(at);
                self.begin(at, fuzz)?;
                if self.state.late.is_some() && !is_soft {
                    return Err(fail(
                        at,
                        "an ended subscription was reopened without payment",
                    ));
                }
                Ok(())
            }
            Stage::Pending if old_mode == Mode::Cancelled => {
                let shown = self.probe_after_call().map(|probe| probe.status);
                if shown == Some(Status::Pending) {
                    Ok(())
                } else {
                    self.start_now(at, fuzz)
                }
            }
            Stage::Pending => self.start_now(at, fuzz),
            Stage::Running => self.resume(at, fuzz, old_mode),
            Stage::Unmanaged => Ok(()),
        }
    }

    /// Starts a pending subscription now, or at its future start.
    fn start_now(&mut self, at: i64, fuzz: i64) -> Result<(), Violation> {
        let starts_at = self.state.starts_at;
        if starts_at > at {
            self.state.stage = Stage::Running;
            let first_end = self.state.first_end;
            self.state.cover_period(starts_at, Some(starts_at));
            self.state.first_end = first_end;
            return Ok(());
        }
        self.state.starts_at = at;
        self.begin(at, fuzz)
    }

    fn resume(&mut self, at: i64, fuzz: i64, old_mode: Mode) -> Result<(), Violation> {
        if self.state.late.is_some() {
            // A dispute's lateness goes on; the period that was due during the pause is open.
            let lapsed = self.state.cover.as_ref().filter(|cover| cover.is_lapsed);
            if let Some(end) = lapsed.and_then(|cover| cover.end) {
                self.state.open_period(end, end, 0, self.history.dunning);
            }
            return Ok(());
        }
        let Some(cover) = &self.state.cover else {
            return self.begin(at, fuzz);
        };
        if cover.is_empty() && cover.start > at {
            return Ok(());
        }
        if !cover.is_in_force(at) {
            return self.begin(at, fuzz);
        }
        let shown = self.probe_after_call().map(|probe| probe.renews_at);
        let is_trial_kept = shown == Some(cover.end) && !self.is_period_next(at, fuzz);
        if cover.is_trial && old_mode == Mode::Normal && !is_trial_kept {
            return self.begin(at, fuzz);
        }
        Ok(())
    }

    /// Cancels: ends at the earlier of the existing end and the time that credit pays.
    fn cancel(&mut self, at: i64, is_end_sent: bool) {
        self.state.mode = Mode::Cancelled;
        if self.state.stage == Stage::Ended {
            return;
        }
        if self.state.late.is_some() || self.state.credit < 0 {
            self.state.end();
            return;
        }
        let cover = self.state.cover.as_ref();
        if cover.is_some_and(|cover| cover.is_lapsed) {
            self.state.end();
            self.state.is_soft_end = true;
            return;
        }
        if is_end_sent {
            return;
        }
        let end = cover
            .filter(|cover| cover.is_running(at))
            .and_then(|cover| cover.end);
        if let Some(end) = end.filter(|_| self.state.amount() > 0) {
            let paid_until = self.paid_until(end);
            let ends_at = self.state.ends_at;
            self.state.ends_at = paid_until.map(|paid| ends_at.map_or(paid, |end| end.min(paid)));
            self.state.is_end_known = paid_until.is_some();
        } else {
            self.state.ends_at = None;
            self.state.is_end_known = false;
        }
    }

    /// Returns `renews_at` plus each whole period that credit pays; `None` for a lifetime.
    fn paid_until(&self, renews_at: i64) -> Option<i64> {
        let periods = (self.state.credit / self.state.amount()).clamp(0, MAX_PREPAID_PERIODS);
        let mut end = renews_at;
        for _ in 0..periods {
            end = period_end(self.state.anchor, end, self.state.terms.cycle)?;
        }
        Some(end)
    }
}
