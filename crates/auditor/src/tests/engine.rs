//! A minimal billing engine for random histories, with errors that can be switched on.

mod calls;
mod change;
mod switch;

use std::collections::BTreeMap;

pub(super) use switch::Edit;

use super::*;
use crate::calendar::{add_cycles, period_end};

/// An error of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bug {
    FreeResume,
    UndoMovesRenewal,
    SentEndCovers,
    FreeChange,
    ReturnRoundedUp,
    WaiverNotDeducted,
    WaiverKept,
    PauseStopsLateness,
    GracePastOpenPeriod,
    DisputeWonTwice,
    DueNotApplied,
    GraceAfterCancel,
    PaymentMovesAnchor,
    StartedDaysCharged,
    HoursRoundedUp,
    HoursRoundedDown,
    LateAtNewAmount,
    FreeTimeReturned,
    FreeTimeNotSpread,
    TrialOfAnyPlan,
    SwitchWipesCost,
    SwitchStartsGrace,
    RecordedPaymentPosted,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    End,
    Expire,
    Renew,
}

/// A paid period or free time.
#[derive(Clone)]
struct Part {
    start: i64,
    end: i64,
    cycle: Cycle,
    cost: i64,
    given: i64,
    waived: i64,
    is_free: bool,
}

/// A payment of the engine.
#[derive(Clone, Copy)]
pub(super) struct Paid {
    pub(super) id: u128,
    pub(super) amount: i64,
    pub(super) refunded: i64,
    pub(super) is_disputed: bool,
    /// What the dispute took.
    taken: i64,
    is_posted: bool,
}

#[expect(clippy::struct_excessive_bools, reason = "a state of a test")]
pub(super) struct Engine {
    pub(super) recorder: Recorder,
    pub(super) payments: Vec<Paid>,
    bug: Option<Bug>,
    pub(super) status: Status,
    pub(super) is_managed: bool,
    /// The status shown in recorded mode.
    frozen: Status,
    is_trial: bool,
    parts: Vec<Part>,
    /// End of covered time, or start of the open period while late.
    renews_at: i64,
    open_end: i64,
    anchor: i64,
    waivers: BTreeMap<u128, i64>,
    waived_debt: i64,
    is_lapsed: bool,
    is_open: bool,
    pub(super) late_since: Option<i64>,
    grace_until: i64,
    pub(super) now: i64,
}

impl Engine {
    pub(super) fn new(terms: Terms, bug: Option<Bug>, trial_days: u16) -> Self {
        let mut recorder = Recorder::new(terms);
        recorder.create(None, None, None, trial_days);
        let start = day(0);
        let mut engine = Self {
            recorder,
            payments: Vec::new(),
            bug,
            status: Status::Pending,
            is_managed: true,
            frozen: Status::Pending,
            is_trial: trial_days > 0,
            parts: Vec::new(),
            renews_at: start,
            open_end: start,
            anchor: start,
            waivers: BTreeMap::new(),
            waived_debt: 0,
            is_lapsed: true,
            is_open: false,
            late_since: None,
            grace_until: start,
            now: start,
        };
        if engine.is_trial {
            engine.status = Status::Active;
            engine.cover_free(start, start, start + i64::from(trial_days) * DAY);
        }
        engine
    }

    fn amount(&self) -> i64 {
        self.recorder.terms.amount()
    }

    fn next_due(&self) -> Option<(i64, Due)> {
        let expiry = 30 * DAY;
        match self.status {
            _ if !self.is_managed => return None,
            Status::Expired => return None,
            Status::Pending => return Some((day(0) + expiry, Due::Expire)),
            _ => {}
        }
        let is_paused = self.status == Status::Paused;
        let is_frozen = is_paused && self.bug == Some(Bug::PauseStopsLateness);
        let ends_at = self.recorder.ends_at.map(|at| (at, Due::End));
        let expires = self
            .late_since
            .filter(|_| !is_frozen)
            .map(|at| (at + expiry, Due::Expire));
        let renews = (!self.is_open && !self.is_lapsed).then_some((self.renews_at, Due::Renew));
        [ends_at, expires, renews]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }

    /// Returns the instant of the next transition.
    pub(super) fn next_instant(&self) -> Option<i64> {
        self.next_due().map(|(at, _)| at)
    }

    /// Charges the period that starts at `start` if credit allows.
    fn charge(&mut self, at: i64, start: i64) -> bool {
        let is_funded = self.recorder.credit() >= self.amount();
        if is_funded {
            self.post_period(at, start);
        }
        is_funded
    }

    fn post_period(&mut self, at: i64, start: i64) {
        let Terms { cycle, .. } = self.recorder.terms;
        let end = if self.is_open && start == self.renews_at {
            self.open_end
        } else {
            period_end(self.anchor, start, cycle).unwrap()
        };
        let cost = self.amount();
        self.recorder
            .entry(at, EntryKind::Period, -cost, Some((start, Some(end))));
        self.parts = vec![Part {
            start,
            end,
            cycle,
            cost,
            given: 0,
            waived: 0,
            is_free: false,
        }];
        self.renews_at = end;
        (self.is_lapsed, self.is_open, self.late_since) = (false, false, None);
        self.is_trial = false;
    }

    /// Grants free time that follows the covered time, or stands alone.
    fn cover_free(&mut self, at: i64, start: i64, end: i64) {
        self.recorder
            .entry(at, EntryKind::Extension, 0, Some((start, Some(end))));
        let amount = self.amount();
        let is_cost = self.bug == Some(Bug::FreeTimeReturned);
        match self.parts.last_mut() {
            Some(part) if part.end == start && part.is_free => {
                let rest = |end: i64| i128::from(end - at.max(part.start));
                if self.bug != Some(Bug::FreeTimeNotSpread) {
                    let spread = i128::from(part.cost) * rest(part.end) / rest(end);
                    part.cost = i64::try_from(spread).unwrap();
                }
                (part.given, part.end) = (amount - part.cost, end);
            }
            _ => self.parts.push(Part {
                start,
                end,
                cycle: self.recorder.terms.cycle,
                cost: if is_cost { amount } else { 0 },
                given: if is_cost { 0 } else { amount },
                waived: 0,
                is_free: true,
            }),
        }
        (self.renews_at, self.anchor) = (end, end);
        (self.is_lapsed, self.is_open, self.late_since) = (false, false, None);
    }

    fn begin(&mut self, at: i64) {
        self.anchor = at;
        self.is_open = false;
        if !self.charge(at, at) {
            self.open(at, at);
        }
    }

    fn open(&mut self, start: i64, since: i64) {
        self.open_end = period_end(self.anchor, start, self.recorder.terms.cycle).unwrap();
        self.open_until(start, since);
    }

    /// Opens a period up to `open_end`.
    fn open_until(&mut self, start: i64, since: i64) {
        (self.renews_at, self.is_open, self.is_lapsed) = (start, true, false);
        self.is_trial = false;
        self.parts.clear();
        if self.late_since.is_none() {
            self.late_since = Some(since);
            self.grace_until = since + 7 * DAY;
            if self.bug != Some(Bug::GracePastOpenPeriod) {
                self.grace_until = self.grace_until.min(self.open_end);
            }
        }
    }

    fn apply_due(&mut self, due: Due) {
        let is_grace_error = self.bug == Some(Bug::GraceAfterCancel);
        match (due, self.status) {
            (Due::End | Due::Expire, _) => self.status = Status::Expired,
            (Due::Renew, Status::Paused) => self.is_lapsed = true,
            (Due::Renew, status) => {
                let end = self.renews_at;
                if self.charge(end, end) {
                } else if status == Status::Cancelled && self.bug == Some(Bug::SentEndCovers) {
                    self.renews_at = self.recorder.ends_at.unwrap_or(end) + 1;
                } else if status == Status::Cancelled && !is_grace_error {
                    self.status = Status::Expired;
                } else {
                    self.status = Status::Active;
                    self.open(end, end);
                }
            }
        }
    }

    /// Applies what is due up to an instant and probes around each transition.
    pub(super) fn advance(&mut self, to: i64) {
        while let Some((at, due)) = self.next_due().filter(|(at, _)| *at <= to) {
            self.probe_grace(at);
            self.probe(at - 1);
            self.apply_due(due);
            self.probe(at);
        }
        self.probe_grace(to);
        self.probe(to - 1);
        self.now = self.now.max(to);
    }

    fn probe_grace(&mut self, before: i64) {
        if self.late_since.is_some() && self.grace_until < before {
            self.probe(self.grace_until - 1);
            self.probe(self.grace_until);
        }
    }

    fn status_at(&self, at: i64) -> Status {
        let is_in_grace = self.late_since.is_none() || at < self.grace_until;
        match self.status {
            Status::Active if self.late_since.is_none() && self.is_trial => Status::OnTrial,
            Status::Active if self.late_since.is_none() => Status::Active,
            Status::Active if is_in_grace => Status::PastDue,
            Status::Active => Status::Unpaid,
            status => status,
        }
    }

    /// Probes unless an earlier probe or call is later.
    pub(super) fn probe(&mut self, at: i64) {
        let last_probe = self
            .recorder
            .history
            .probes
            .last()
            .map_or(i64::MIN, |probe| probe.at);
        if at <= last_probe || at < self.now || !self.is_managed {
            return;
        }
        let status = self.status_at(at);
        let access = matches!(
            status,
            Status::Active | Status::OnTrial | Status::PastDue | Status::Cancelled
        );
        self.recorder
            .probe(at, status, access, Some(self.renews_at));
    }

    /// Finishes a call that took effect at `at`: applies what is due then and probes.
    pub(super) fn finish(&mut self, at: i64) {
        self.now = self.now.max(at);
        self.advance(self.now);
        self.probe(self.now);
    }

    /// Prepares a call: applies what is due.
    pub(super) fn prepare(&mut self, at: i64, is_put: bool) {
        if is_put && self.bug == Some(Bug::DueNotApplied) {
            let due = self.next_due().map_or(at, |(due, _)| due);
            self.advance(at.min(due - 1).max(self.now));
            self.now = self.now.max(at);
        } else {
            self.advance(at);
        }
    }
}
