//! Effects of accepted calls.

use crate::cover::{Late, grace_end};
use crate::coverage::{Mode, Stage};
use crate::replay::Replay;
use crate::{Call, Cycle, EntryKind, Status, Terms, Verb, Violation};

impl Replay<'_> {
    /// Applies a call; `fuzz` is the number of microseconds by which its change may be later.
    pub(crate) fn apply(&mut self, call: &Call, fuzz: i64) -> Result<(), Violation> {
        let at = call.at;
        if self.state.stage == Stage::Unmanaged && self.apply_unmanaged(call) {
            return Ok(());
        }
        match call.verb {
            Verb::Create { .. } => self.create(call),
            Verb::Pay { .. } | Verb::WinDispute { .. } => {
                self.take(EntryKind::Payment, at);
                self.use_credit(at, fuzz)
            }
            Verb::Refund { .. } => {
                self.take(EntryKind::Refund, at);
                if let Some(waiver) = self.take(EntryKind::Waiver, at) {
                    self.state.record_waiver(waiver, at);
                }
                self.use_credit(at, fuzz)
            }
            Verb::Dispute { .. } => {
                self.take(EntryKind::Refund, at);
                self.start_dispute_lateness(at, fuzz);
                Ok(())
            }
            Verb::LoseDispute { .. } => Ok(()),
            Verb::SetStatus {
                status,
                renews_at,
                ends_at,
            } => self.set_status(at, fuzz, status, renews_at, ends_at),
            Verb::ChangeTerms { terms } => {
                let old = self.state.terms;
                if (old.plan, old.quantity) == (terms.plan, terms.quantity) {
                    self.set_price(at, fuzz, terms)
                } else {
                    self.state.is_end_known &= self.state.mode != Mode::Cancelled;
                    self.change_terms(at, fuzz, terms)
                }
            }
            Verb::SetPrice { terms } => self.set_price(at, fuzz, terms),
            Verb::Extend { renews_at } => self.grant(at, fuzz, Some(renews_at), false),
            Verb::SetEnd { ends_at } => {
                self.state.ends_at = ends_at;
                self.state.is_end_known = true;
                Ok(())
            }
            Verb::Suspend | Verb::Unsuspend => {
                self.state.is_suspended = matches!(call.verb, Verb::Suspend);
                Ok(())
            }
            Verb::EnterManaged { renews_at } => self.enter_managed(at, fuzz, renews_at),
        }
    }

    /// Applies a call before managed mode; returns whether nothing else is to be done.
    fn apply_unmanaged(&mut self, call: &Call) -> bool {
        let is_switching = self.history.has_switch();
        match call.verb {
            Verb::Create {
                status,
                starts_at,
                ends_at,
                terms,
                trial_days,
                ..
            } => {
                self.state.terms = terms;
                self.state.trial_days = trial_days;
                self.state.created_at = call.at;
                self.state.starts_at = starts_at.unwrap_or(call.at);
                self.state.ends_at = ends_at;
                self.state.mode = status.map_or(Mode::Normal, mode_of);
                return is_switching;
            }
            Verb::SetStatus { status, .. } => self.state.mode = mode_of(status),
            Verb::ChangeTerms { terms } | Verb::SetPrice { terms } => self.state.terms = terms,
            Verb::SetEnd { ends_at } => self.state.ends_at = ends_at,
            Verb::Suspend => self.state.is_suspended = true,
            Verb::Unsuspend => self.state.is_suspended = false,
            Verb::EnterManaged { .. } => return false,
            _ => {}
        }
        true
    }

    /// Pays what is open or pending after credit has grown.
    fn use_credit(&mut self, at: i64, fuzz: i64) -> Result<(), Violation> {
        if self.state.mode == Mode::Cancelled {
            return Ok(());
        }
        if self.state.stage == Stage::Pending && self.state.starts_at <= at {
            let is_funded = self.state.credit >= self.state.amount();
            if is_funded && self.state.mode == Mode::Normal || self.is_period_next(at, fuzz) {
                return self.start_pending(at, fuzz);
            }
        }
        if self.state.stage != Stage::Running {
            return Ok(());
        }
        let lapsed = self.state.cover.as_ref().filter(|cover| cover.is_lapsed);
        let lapsed_end = lapsed.and_then(|cover| cover.end);
        if let Some(end) =
            lapsed_end.filter(|end| self.state.late.is_some() && self.is_period_next(*end, 0))
        {
            self.state.open_period(end, end, 0, self.history.dunning);
        }
        if self.state.open.is_some() {
            return self.settle_open(at, fuzz);
        }
        if self.state.credit >= 0 {
            self.state.late = None;
        }
        Ok(())
    }

    /// Starts a pending subscription now.
    fn start_pending(&mut self, at: i64, fuzz: i64) -> Result<(), Violation> {
        self.state.starts_at = at;
        self.begin(at, fuzz)?;
        self.deadlines.push(at);
        Ok(())
    }

    /// Starts a pending subscription if the history shows that new terms made it start.
    pub(crate) fn start_pending_if_shown(&mut self, at: i64, fuzz: i64) -> Result<(), Violation> {
        let shown = self.probe_after_call().map(|probe| probe.status);
        let is_free_start = self.state.amount() == 0 && shown == Some(Status::Active);
        if is_free_start || self.is_period_next(at, fuzz) {
            return self.start_pending(at, fuzz);
        }
        Ok(())
    }

    /// Starts lateness if a dispute made credit negative.
    fn start_dispute_lateness(&mut self, at: i64, fuzz: i64) {
        if self.state.credit >= 0 || self.state.stage != Stage::Running {
            return;
        }
        if self.state.mode == Mode::Cancelled {
            self.state.end();
        } else if self.state.late.is_none() {
            let end = self.state.running_cover(at).and_then(|cover| cover.end);
            let since = if self.is_dispute_delayed {
                at + fuzz
            } else {
                at
            };
            let grace_until = grace_end(since, end, self.history.dunning);
            let late = Late {
                since,
                grace_until,
                is_unpaid: false,
                is_dispute: true,
                fuzz,
            };
            self.state.late = Some(late);
        }
    }

    fn set_price(&mut self, at: i64, fuzz: i64, terms: Terms) -> Result<(), Violation> {
        let old = self.state.terms;
        self.state.terms = terms;
        if self.state.mode == Mode::Cancelled {
            self.state.is_end_known = false;
        }
        if self.state.stage == Stage::Pending {
            return self.start_pending_if_shown(at, fuzz);
        }
        self.state.is_cycle_changed |= old.cycle != terms.cycle;
        self.reprice_open(old.cycle);
        self.settle_open(at, fuzz)
    }

    /// Recomputes the bounds of the open period after the terms changed.
    pub(crate) fn reprice_open(&mut self, old_cycle: Cycle) {
        if self.state.terms.cycle == old_cycle {
            return;
        }
        self.state.is_cycle_changed = true;
        let dunning = self.history.dunning;
        let Some(start) = self.state.open.as_ref().map(|open| open.start) else {
            return;
        };
        let end = self.state.end_from(start);
        if let Some(open) = &mut self.state.open {
            open.end = end;
        }
        if let Some(late) = self.state.late.as_mut().filter(|late| !late.is_dispute) {
            late.grace_until = grace_end(late.since, end, dunning);
            late.is_unpaid = false;
        }
    }
}

/// Returns the part of a status that calls decide.
pub(crate) fn mode_of(status: Status) -> Mode {
    match status {
        Status::Paused => Mode::Paused,
        Status::Cancelled => Mode::Cancelled,
        _ => Mode::Normal,
    }
}
