//! Effects of calls that set the status.

use crate::calendar::{DAY, cycles_after};
use crate::cover::Cover;
use crate::coverage::{Mode, Stage};
use crate::replay::{Replay, fail};
use crate::{Status, Violation};

/// Start of the year 9999. Later ends are known only to be later.
const LAST_KNOWN_END: i64 = 253_370_764_800_000_000;

/// Days that reach from any date in a history beyond the year 9999.
const MAX_DAYS: i64 = 4_000_000;

impl Replay<'_> {
    /// Applies a call that sets the status, with the end it sent.
    pub(crate) fn set_status(
        &mut self,
        at: i64,
        fuzz: i64,
        status: Status,
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
        match status {
            Status::Expired => {
                self.state.end();
                Ok(())
            }
            Status::Paused => {
                self.state.mode = Mode::Paused;
                Ok(())
            }
            Status::Cancelled => {
                if old_mode != Mode::Cancelled {
                    self.cancel(at, fuzz, ends_at.is_some());
                }
                Ok(())
            }
            Status::OnTrial => {
                self.state.mode = Mode::Normal;
                if self.state.stage == Stage::Pending {
                    return self.grant_trial(at, fuzz, None);
                }
                Ok(())
            }
            _ => {
                self.state.mode = Mode::Normal;
                self.activate(at, fuzz, old_mode, ends_at)
            }
        }
    }

    /// Resumes, undoes a cancellation, starts or reopens.
    fn activate(
        &mut self,
        at: i64,
        fuzz: i64,
        old_mode: Mode,
        ends_at: Option<i64>,
    ) -> Result<(), Violation> {
        let stage = self.state.stage;
        if stage == Stage::Ended {
            self.state.ends_at = ends_at;
            self.state.is_end_known = ends_at.is_some();
            self.state.cover = None;
            self.state.first_end = None;
        }
        match stage {
            Stage::Ended => {
                self.state.starts_at = self.state.starts_at.min(at);
                self.begin(at, fuzz)?;
                if self.state.late.is_some() {
                    return Err(fail(
                        at,
                        "an ended subscription was reopened without payment",
                    ));
                }
                Ok(())
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
            self.state.schedule(starts_at);
            return Ok(());
        }
        self.state.starts_at = at;
        self.begin(at, fuzz)
    }

    fn resume(&mut self, at: i64, fuzz: i64, old_mode: Mode) -> Result<(), Violation> {
        if self.state.late.is_some() {
            // A dispute's lateness goes on, without access to the period that starts now.
            let cover = self.state.cover.as_ref();
            if cover.is_some_and(|cover| cover.is_lapsed) {
                self.state.anchor = at;
                self.state.open_period(at, at, fuzz, self.history.dunning);
                if let Some(late) = &mut self.state.late {
                    late.grace_until = late.grace_until.min(at);
                }
            }
            return Ok(());
        }
        let Some(cover) = &self.state.cover else {
            return self.begin(at, fuzz);
        };
        if cover.is_empty() && cover.first.start > at {
            return Ok(());
        }
        if !cover.is_in_force(at) {
            self.state.first_end = None;
            return self.begin(at, fuzz);
        }
        if cover.is_trial && old_mode == Mode::Normal {
            // The trial ends, and the first period starts.
            let starts_at = self.state.starts_at;
            if starts_at <= at {
                return self.begin(at, fuzz);
            }
            self.state.anchor = starts_at;
            self.state.schedule(starts_at);
        }
        Ok(())
    }

    /// Cancels: ends at the earlier of the existing end and the time that credit pays.
    fn cancel(&mut self, at: i64, fuzz: i64, is_end_sent: bool) {
        self.state.mode = Mode::Cancelled;
        if self.state.stage == Stage::Ended {
            return;
        }
        // What is late, lapsed or not started has no time that the cancellation could leave.
        let is_late = self.state.late.is_some() || self.state.credit < 0;
        let has_started = self.state.stage == Stage::Running && self.state.starts_at <= at + fuzz;
        let end = self.state.cover_in_force(at).and_then(Cover::end);
        let Some(end) = end.filter(|_| has_started && !is_late) else {
            self.state.end();
            return;
        };
        if is_end_sent {
            return;
        }
        let paid_until = self.paid_until(end);
        let ends_at = self.state.ends_at;
        self.state.ends_at = Some(ends_at.map_or(paid_until, |end| end.min(paid_until)));
        self.state.is_end_known = self.state.ends_at < Some(LAST_KNOWN_END);
    }

    /// Returns `renews_at` plus each whole period that credit pays.
    fn paid_until(&self, renews_at: i64) -> i64 {
        let periods = self.state.credit.checked_div(self.state.amount());
        let periods = periods.unwrap_or(0).max(0);
        let (anchor, cycle) = (self.state.anchor, self.state.terms.cycle);
        let Some(next) = cycles_after(anchor, renews_at, cycle, 1) else {
            return renews_at;
        };
        if periods > MAX_DAYS / ((next - renews_at) / DAY).max(1) {
            return LAST_KNOWN_END;
        }
        cycles_after(anchor, renews_at, cycle, periods).unwrap_or(renews_at)
    }
}
