//! Calls on the test engine.

use super::*;
use crate::calendar::add_cycles;

impl Engine {
    pub(in crate::tests) fn pay(&mut self, at: i64, payment: u128, amount: i64) {
        self.recorder.pay(at, payment, amount);
        self.use_credit(at);
    }

    fn use_credit(&mut self, at: i64) {
        if self.status == Status::Pending && self.recorder.credit() >= self.amount() {
            self.recorder.starts_at = at;
            self.begin(at);
        } else if self.status == Status::Cancelled || self.status == Status::Expired {
        } else if self.is_open {
            let start = self.renews_at;
            let is_moved = self.bug == Some(Bug::PaymentMovesAnchor)
                && self.recorder.credit() >= self.amount();
            if is_moved {
                let status = self.status;
                self.begin(at);
                self.status = status;
            } else if !self.charge(at, start, self.amount()) || self.renews_at > at {
            } else if self.status == Status::Paused {
                self.is_lapsed = true;
            } else {
                self.begin(at);
            }
        } else if self.recorder.credit() >= 0 {
            self.late_since = None;
        }
    }

    pub(in crate::tests) fn refund(&mut self, at: i64, payment: u128, amount: i64) {
        self.recorder.call(
            at,
            Verb::Refund {
                payment,
                refunded_total: amount,
            },
        );
        let before = self.recorder.credit().max(0);
        self.recorder.money(at, EntryKind::Refund, payment, -amount);
        if amount > before {
            self.recorder
                .entry(at, EntryKind::Waiver, amount - before, None);
            if !self.is_open && !self.is_lapsed && self.bug != Some(Bug::WaiverNotDeducted) {
                self.waived += amount - before;
            }
        }
    }

    pub(in crate::tests) fn dispute(&mut self, at: i64, payment: u128, amount: i64) {
        self.recorder.call(at, Verb::Dispute { payment });
        self.recorder.money(at, EntryKind::Refund, payment, -amount);
        if self.recorder.credit() >= 0 || matches!(self.status, Status::Pending | Status::Expired) {
        } else if self.status == Status::Cancelled {
            self.status = Status::Expired;
        } else if self.late_since.is_none() {
            self.late_since = Some(at);
            self.grace_until = at + 7 * DAY;
            if !self.is_lapsed {
                self.grace_until = self.grace_until.min(self.renews_at);
            }
        }
    }

    pub(in crate::tests) fn win(&mut self, at: i64, payment: u128, amount: i64) {
        self.recorder.call(at, Verb::WinDispute { payment });
        self.recorder.money(at, EntryKind::Payment, payment, amount);
        if self.bug == Some(Bug::DisputeWonTwice) {
            self.recorder.money(at, EntryKind::Payment, payment, amount);
        }
        self.use_credit(at);
    }

    pub(in crate::tests) fn pause(&mut self, at: i64) {
        if self.status == Status::Active {
            self.recorder.set_status(at, Status::Paused);
            self.status = Status::Paused;
        }
    }

    /// Resumes a paused subscription or undoes a cancellation.
    pub(in crate::tests) fn activate(&mut self, at: i64) {
        if !matches!(self.status, Status::Paused | Status::Cancelled) {
            return;
        }
        self.recorder.set_status(at, Status::Active);
        if self.status == Status::Cancelled {
            self.recorder.ends_at = None;
            if self.bug == Some(Bug::UndoMovesRenewal) {
                self.renews_at += DAY;
            }
        }
        self.status = Status::Active;
        if self.late_since.is_none() && self.is_lapsed {
            if self.bug == Some(Bug::FreeResume) {
                (self.start, self.anchor, self.cost, self.is_lapsed) = (at, at, 0, false);
                self.renews_at = add_cycles(at, self.recorder.terms.cycle, 1).unwrap();
            } else {
                self.begin(at);
            }
        } else if self.is_lapsed {
            self.anchor = at;
            self.grace_until = self.grace_until.min(at);
            self.open(at, at);
        } else if self.bug == Some(Bug::PauseStopsLateness) && self.late_since.is_some() {
            self.late_since = Some(at);
            self.grace_until = at + 7 * DAY;
        }
    }

    pub(in crate::tests) fn cancel(&mut self, at: i64, sent: Option<i64>) {
        if !matches!(self.status, Status::Active | Status::Paused) || self.is_lapsed {
            return;
        }
        let verb = Verb::SetStatus {
            status: Status::Cancelled,
            renews_at: None,
            ends_at: sent,
        };
        self.recorder.call(at, verb);
        self.status = Status::Cancelled;
        let mut paid_until = self.renews_at;
        for _ in 0..self.recorder.credit() / self.amount() {
            paid_until = period_end(self.anchor, paid_until, self.recorder.terms.cycle).unwrap();
        }
        self.recorder.ends_at = Some(sent.unwrap_or(paid_until));
        if self.late_since.is_some() {
            self.status = Status::Expired;
        }
    }

    /// Changes plan or quantity if credit pays for it.
    pub(in crate::tests) fn change(&mut self, at: i64, terms: Terms) {
        let old = self.recorder.terms;
        let credit = self.recorder.credit();
        if old == terms || self.status == Status::Cancelled {
            return;
        }
        if self.is_lapsed || matches!(self.status, Status::Pending | Status::Expired) {
            if self.status != Status::Pending && self.late_since.is_none() {
                self.recorder.change(at, terms);
            }
            return;
        }
        if self.is_open {
            if credit >= terms.amount() && self.status != Status::Paused {
                self.recorder.change(at, terms);
                self.use_credit(at);
            }
            return;
        }
        let (left, length) = (self.renews_at - at, self.renews_at - self.start);
        let days = length / DAY;
        let give_back = |value: i64| {
            let share = value.max(0) * (left / DAY);
            let up = i64::from(self.bug == Some(Bug::ReturnRoundedUp) && share % days > 0);
            (share / days + up - self.waived).max(0)
        };
        let is_in_place = old.cycle == terms.cycle;
        let difference = terms.amount() - old.amount();
        let mut amount = match (is_in_place, difference > 0) {
            (true, true) => -((difference * ((left + DAY - 1) / DAY) + days - 1) / days),
            (true, false) => give_back(self.cost - terms.amount()),
            (false, _) => give_back(self.cost),
        };
        if self.bug == Some(Bug::FreeChange) {
            amount = amount.max(0);
        }
        let price = if is_in_place { 0 } else { terms.amount() };
        if credit + amount < price || (!is_in_place && self.status == Status::Paused) {
            return;
        }
        self.recorder.change(at, terms);
        let bounds = Some((self.start, Some(self.renews_at)));
        self.recorder.entry(at, EntryKind::Change, amount, bounds);
        self.late_since = None;
        if is_in_place {
            let worth = (self.cost - terms.amount()).max(0) * (left / DAY) / days;
            self.waived -= if difference > 0 {
                0
            } else {
                worth.min(self.waived)
            };
            self.cost = if difference > 0 {
                self.cost + difference
            } else {
                self.cost.min(terms.amount())
            };
        } else {
            self.begin(at);
        }
    }
}
