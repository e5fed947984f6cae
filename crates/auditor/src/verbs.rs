//! Effects of accepted calls.

use crate::cover::{Cover, Late, grace_end};
use crate::coverage::{Mode, Stage};
use crate::replay::{Replay, fail};
use crate::{Call, Cycle, Status, Terms, Verb, Violation};

impl Replay<'_> {
    /// Applies a call; `fuzz` is the number of microseconds by which its change may be later.
    pub(crate) fn apply(&mut self, call: &Call, fuzz: i64) -> Result<(), Violation> {
        let at = call.at;
        if self.state.stage == Stage::Unmanaged && !matches!(call.verb, Verb::Create { .. }) {
            return self.apply_unmanaged(call, fuzz);
        }
        match call.verb {
            Verb::Create { .. } => {
                self.set_created(call);
                if self.history.starts_unmanaged() {
                    return Ok(());
                }
                self.create(call)
            }
            Verb::Pay { .. }
            | Verb::Refund { .. }
            | Verb::Dispute { .. }
            | Verb::WinDispute { .. }
            | Verb::LoseDispute { .. }
            | Verb::PayDisputed { .. } => {
                self.move_money(call)?;
                if matches!(call.verb, Verb::Dispute { .. }) {
                    self.start_dispute_lateness(at, fuzz);
                    return Ok(());
                }
                self.use_credit(at, fuzz)
            }
            Verb::SetStatus { status, ends_at } => self.set_status(at, fuzz, status, ends_at),
            Verb::ChangeTerms { terms, trial_days } => {
                let old = self.state.terms;
                if (old.plan, old.quantity) == (terms.plan, terms.quantity) {
                    self.set_price(at, fuzz, terms)
                } else {
                    self.change_terms(at, fuzz, terms, trial_days)
                }
            }
            Verb::SetPrice { terms } => self.set_price(at, fuzz, terms),
            Verb::FreeUntil { until } => self.free_until(at, fuzz, until),
            Verb::SetEnd { ends_at } => {
                self.state.ends_at = ends_at;
                self.state.is_end_known = true;
                Ok(())
            }
            Verb::SetStart { starts_at } => self.set_start(at, fuzz, starts_at),
            Verb::Suspend | Verb::Unsuspend => {
                self.state.is_suspended = matches!(call.verb, Verb::Suspend);
                Ok(())
            }
            Verb::LeaveManaged => {
                self.state.left = Some(self.state.stage);
                self.state.stage = Stage::Unmanaged;
                Ok(())
            }
            Verb::EnterManaged { shown } => self.enter_managed(at, fuzz, &shown),
        }
    }

    /// Applies a call in recorded mode. Terms, status and dates follow from the next switch.
    fn apply_unmanaged(&mut self, call: &Call, fuzz: i64) -> Result<(), Violation> {
        match call.verb {
            Verb::EnterManaged { shown } => self.enter_managed(call.at, fuzz, &shown)?,
            Verb::Suspend | Verb::Unsuspend => {
                self.state.is_suspended = matches!(call.verb, Verb::Suspend);
            }
            Verb::ChangeTerms { terms, trial_days } => {
                if terms.plan != self.state.terms.plan {
                    self.state.trial_days = trial_days;
                }
                self.state.is_repriced = true;
            }
            Verb::SetPrice { .. } => self.state.is_repriced = true,
            _ => self.move_money(call)?,
        }
        Ok(())
    }

    /// Takes over what the creation states.
    fn set_created(&mut self, call: &Call) {
        let Verb::Create {
            status,
            starts_at,
            ends_at,
            terms,
            trial_days,
            renews_at,
        } = call.verb
        else {
            return;
        };
        self.state.terms = terms;
        self.state.trial_days = trial_days;
        self.state.created_at = call.at;
        let dates = [ends_at, renews_at].into_iter().flatten();
        let earliest = dates.fold(call.at, i64::min);
        self.state.starts_at = starts_at.unwrap_or(earliest);
        self.state.ends_at = ends_at;
        self.state.anchor = renews_at.unwrap_or(self.state.starts_at);
        self.state.mode = status.map_or(Mode::Normal, mode_of);
    }

    /// Pays what is open or pending after credit has grown.
    pub(crate) fn use_credit(&mut self, at: i64, fuzz: i64) -> Result<(), Violation> {
        if self.state.mode == Mode::Cancelled {
            return Ok(());
        }
        if self.state.stage == Stage::Pending && self.state.starts_at <= at {
            return self.start_pending_if_funded(at, fuzz);
        }
        if self.state.stage != Stage::Running {
            return Ok(());
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

    /// Starts a pending subscription if it may start and credit pays its first period.
    pub(crate) fn start_pending_if_funded(&mut self, at: i64, fuzz: i64) -> Result<(), Violation> {
        if self.state.starts_at <= at && self.state.credit >= self.state.amount() {
            return self.start_pending(at, fuzz);
        }
        Ok(())
    }

    /// Starts lateness if a dispute made credit negative.
    pub(crate) fn start_dispute_lateness(&mut self, at: i64, fuzz: i64) {
        if self.state.credit >= 0 || self.state.stage != Stage::Running {
            return;
        }
        if self.state.mode == Mode::Cancelled {
            self.state.end();
        } else if self.state.late.is_none() {
            let end = self.state.cover_in_force(at).and_then(Cover::end);
            let since = if self.is_dispute_delayed {
                at + fuzz
            } else {
                at
            };
            let lapsed = self.state.cover.as_ref().filter(|cover| cover.is_lapsed);
            if lapsed.is_some_and(|cover| cover.end() == Some(since) && !cover.is_empty()) {
                // The period that was due at this very instant is the open one.
                self.state
                    .open_period(since, since, 0, self.history.dunning);
                return;
            }
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

    /// Moves a start that has not come.
    fn set_start(&mut self, at: i64, fuzz: i64, starts_at: i64) -> Result<(), Violation> {
        self.state.starts_at = starts_at;
        self.state.first_end = self.state.first_end.filter(|end| *end > starts_at);
        if self.state.stage == Stage::Pending {
            return self.start_pending_if_funded(at, fuzz);
        }
        if self
            .state
            .cover
            .as_ref()
            .is_none_or(|cover| !cover.is_empty())
        {
            return Err(fail(at, "starts_at moved after the start"));
        }
        self.state.schedule(starts_at);
        Ok(())
    }

    fn set_price(&mut self, at: i64, fuzz: i64, terms: Terms) -> Result<(), Violation> {
        let old = self.state.terms;
        self.state.terms = terms;
        if self.state.stage == Stage::Pending {
            if old.cycle != terms.cycle {
                self.state.first_end = None;
            }
            return self.start_pending_if_funded(at, fuzz);
        }
        self.reprice_open(old.cycle);
        self.settle_open(at, fuzz)
    }

    /// Recomputes the bounds of the open period after the terms changed.
    pub(crate) fn reprice_open(&mut self, old_cycle: Cycle) {
        if self.state.terms.cycle == old_cycle {
            return;
        }
        self.state.align_anchor();
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
