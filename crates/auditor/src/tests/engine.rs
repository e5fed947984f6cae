//! A minimal billing engine for random histories, with errors that can be switched on.

mod calls;

use super::*;
use crate::calendar::period_end;

/// An error of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bug {
    FreeResume,
    UndoMovesRenewal,
    SentEndCovers,
    FreeChange,
    ReturnRoundedUp,
    WaiverNotDeducted,
    PauseStopsLateness,
    GracePastOpenPeriod,
    DisputeWonTwice,
    DueNotApplied,
    GraceAfterCancel,
    PaymentMovesAnchor,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    End,
    Expire,
    Renew,
}

pub(super) struct Engine {
    pub(super) recorder: Recorder,
    bug: Option<Bug>,
    pub(super) status: Status,
    start: i64,
    /// End of covered time, or start of the open period while late.
    renews_at: i64,
    anchor: i64,
    cost: i64,
    waived: i64,
    is_lapsed: bool,
    is_open: bool,
    pub(super) late_since: Option<i64>,
    grace_until: i64,
    now: i64,
}

impl Engine {
    pub(super) fn new(terms: Terms, bug: Option<Bug>) -> Self {
        let recorder = Recorder::pending(terms);
        let (start, now) = (day(0), day(0));
        Self {
            recorder,
            bug,
            status: Status::Pending,
            start,
            renews_at: start,
            anchor: start,
            cost: 0,
            waived: 0,
            is_lapsed: true,
            is_open: false,
            late_since: None,
            grace_until: start,
            now,
        }
    }

    fn amount(&self) -> i64 {
        self.recorder.terms.amount()
    }

    fn open_end(&self) -> i64 {
        period_end(self.anchor, self.renews_at, self.recorder.terms.cycle).unwrap()
    }

    fn next_due(&self) -> Option<(i64, Due)> {
        let expiry = 30 * DAY;
        match self.status {
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
    fn charge(&mut self, at: i64, start: i64, cost: i64) -> bool {
        if self.recorder.credit() < self.amount() {
            return false;
        }
        let end = period_end(self.anchor, start, self.recorder.terms.cycle).unwrap();
        self.recorder
            .entry(at, EntryKind::Period, -cost, Some((start, Some(end))));
        (self.start, self.renews_at, self.cost, self.waived) = (start, end, cost, 0);
        (self.is_lapsed, self.is_open, self.late_since) = (false, false, None);
        true
    }

    fn begin(&mut self, at: i64) {
        self.anchor = at;
        self.status = Status::Active;
        if !self.charge(at, at, self.amount()) {
            self.open(at, at);
        }
    }

    fn open(&mut self, start: i64, since: i64) {
        (self.renews_at, self.is_open, self.is_lapsed) = (start, true, false);
        if self.late_since.is_none() {
            self.late_since = Some(since);
            self.grace_until = since + 7 * DAY;
            if self.bug != Some(Bug::GracePastOpenPeriod) {
                self.grace_until = self.grace_until.min(self.open_end());
            }
        }
    }

    fn apply_due(&mut self, at: i64, due: Due) {
        let is_grace_error = self.bug == Some(Bug::GraceAfterCancel);
        match (due, self.status) {
            (Due::End, Status::Cancelled) if self.bug == Some(Bug::SentEndCovers) => {
                self.status = Status::Expired;
            }
            (Due::End | Due::Expire, _) => self.status = Status::Expired,
            (Due::Renew, Status::Paused) => self.is_lapsed = true,
            (Due::Renew, status) => {
                let end = self.renews_at;
                if self.charge(at, end, self.amount()) {
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
            self.apply_due(at, due);
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

    /// Probes unless an earlier probe or call is later.
    pub(super) fn probe(&mut self, at: i64) {
        let last_probe = self
            .recorder
            .history
            .probes
            .last()
            .map_or(i64::MIN, |probe| probe.at);
        if at <= last_probe || at < self.now {
            return;
        }
        let is_in_grace = self.late_since.is_none() || at < self.grace_until;
        let status = match self.status {
            Status::Active if self.late_since.is_none() => Status::Active,
            Status::Active if is_in_grace => Status::PastDue,
            Status::Active => Status::Unpaid,
            status => status,
        };
        let access = matches!(status, Status::Active | Status::PastDue | Status::Cancelled);
        self.recorder
            .probe(at, status, access, Some(self.renews_at));
    }

    /// Finishes a call that took effect at `at`: applies what is due then and probes.
    pub(super) fn finish(&mut self, at: i64) {
        self.now = self.now.max(at);
        self.advance(at);
        self.probe(at);
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
