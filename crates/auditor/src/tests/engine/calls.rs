//! Calls on the test engine.

use super::*;

impl Engine {
    pub(in crate::tests) fn pay(&mut self, at: i64, id: u128, amount: i64, is_disputed: bool) {
        let is_posted = self.is_managed;
        self.payments.push(Paid {
            id,
            amount,
            refunded: 0,
            is_disputed,
            taken: 0,
            is_posted,
        });
        let payment = id;
        if is_disputed {
            self.recorder
                .call(at, Verb::PayDisputed { payment, amount });
        } else if is_posted || self.bug == Some(Bug::RecordedPaymentPosted) {
            self.recorder.pay(at, id, amount);
            self.use_credit(at);
        } else {
            self.recorder.call(at, Verb::Pay { payment, amount });
        }
    }

    pub(super) fn use_credit(&mut self, at: i64) {
        if !self.is_managed {
            return;
        }
        if self.status == Status::Pending && self.recorder.credit() >= self.amount() {
            self.recorder.starts_at = at;
            self.status = Status::Active;
            self.begin(at);
        } else if matches!(
            self.status,
            Status::Pending | Status::Cancelled | Status::Expired
        ) {
        } else if self.is_open {
            let start = self.renews_at;
            let is_moved = self.bug == Some(Bug::PaymentMovesAnchor)
                && self.recorder.credit() >= self.amount();
            if is_moved {
                self.begin(at);
            } else if !self.charge(at, start) || self.renews_at > at {
            } else if self.status == Status::Paused {
                self.is_lapsed = true;
            } else {
                self.begin(at);
            }
        } else if self.recorder.credit() >= 0 {
            self.late_since = None;
        }
    }

    /// Moves what is worth a waived amount from cost to given, or back if it is negative.
    fn waive(&mut self, at: i64, mut amount: i64) {
        if self.bug == Some(Bug::WaiverNotDeducted) || self.is_lapsed {
            return;
        }
        for index in 0..self.parts.len() {
            let part = self.parts[index].clone();
            if part.end <= at {
                continue;
            }
            let most = if amount > 0 { part.cost } else { part.waived };
            let worth = -self.worth(std::slice::from_ref(&part), &[-most], at);
            let sign = amount.signum();
            let moved = if amount.abs() >= worth {
                amount -= worth * sign;
                most * sign
            } else {
                let rest = i128::from(part.end - at.max(part.start));
                let whole = if part.is_free {
                    add_cycles(part.start, part.cycle, 1).unwrap() - part.start
                } else {
                    part.end - part.start
                };
                let moved = -super::change::floor(-i128::from(amount) * i128::from(whole), rest);
                amount = 0;
                moved
            };
            let part = &mut self.parts[index];
            part.cost -= moved;
            part.given += moved;
            part.waived += moved;
        }
    }

    fn last_entry(&self) -> i64 {
        self.recorder.history.entries.last().unwrap().at
    }

    fn take_waiver_back(&mut self, at: i64, amount: i64) {
        if amount > 0 && self.bug != Some(Bug::WaiverKept) {
            let now = self.last_entry();
            self.recorder.entry(at, EntryKind::Waiver, -amount, None);
            self.waive(now, -amount);
        }
    }

    /// Sets the refunded amount of a payment that is not disputed.
    pub(in crate::tests) fn refund(&mut self, at: i64, index: usize, total: i64) {
        let paid = self.payments[index];
        let taken = total - paid.refunded;
        if paid.is_disputed || taken == 0 {
            return;
        }
        self.payments[index].refunded = total;
        self.recorder.refund(at, paid.id, total);
        if !paid.is_posted {
            return;
        }
        let before = self.recorder.credit();
        if taken > 0 {
            self.recorder.money(at, EntryKind::Refund, paid.id, -taken);
            let waiver = taken - before.max(0);
            if waiver > 0 {
                let now = self.last_entry();
                self.recorder.entry(at, EntryKind::Waiver, waiver, None);
                self.waive(now, waiver);
                *self.waivers.entry(paid.id).or_default() += waiver;
            }
        } else {
            self.recorder.money(at, EntryKind::Payment, paid.id, -taken);
            let waivers = self.waivers.entry(paid.id).or_default();
            let returned = (-taken).min(*waivers);
            *waivers -= returned;
            self.take_waiver_back(at, returned);
        }
        self.use_credit(at);
    }

    pub(in crate::tests) fn dispute(&mut self, at: i64, index: usize) {
        let paid = &mut self.payments[index];
        let payment = paid.id;
        paid.is_disputed = true;
        paid.taken = if paid.is_posted {
            paid.amount - paid.refunded
        } else {
            0
        };
        let taken = paid.taken;
        self.recorder.call(at, Verb::Dispute { payment });
        if taken > 0 {
            self.recorder.money(at, EntryKind::Refund, payment, -taken);
        }
        if self.is_managed {
            self.start_lateness(at);
        }
    }

    /// Starts lateness if credit is negative.
    pub(super) fn start_lateness(&mut self, at: i64) {
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

    pub(in crate::tests) fn win(&mut self, at: i64, index: usize) {
        let paid = &mut self.payments[index];
        (paid.is_disputed, paid.taken) = (false, 0);
        let paid = *paid;
        let payment = paid.id;
        self.recorder.call(at, Verb::WinDispute { payment });
        let amount = paid.amount - paid.refunded;
        if paid.is_posted && amount > 0 {
            self.recorder.money(at, EntryKind::Payment, payment, amount);
            if self.bug == Some(Bug::DisputeWonTwice) {
                self.recorder.money(at, EntryKind::Payment, payment, amount);
            }
            let waiver = amount.min(self.waived_debt);
            self.waived_debt -= waiver;
            self.take_waiver_back(at, waiver);
        }
        self.use_credit(at);
    }

    pub(in crate::tests) fn lose(&mut self, at: i64, index: usize) {
        let paid = &mut self.payments[index];
        let payment = paid.id;
        (paid.is_disputed, paid.refunded) = (false, paid.amount);
        self.waived_debt -= paid.taken.min(self.waived_debt);
        self.recorder.call(at, Verb::LoseDispute { payment });
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
                (self.anchor, self.is_lapsed) = (at, false);
                self.renews_at = add_cycles(at, self.recorder.terms.cycle, 1).unwrap();
                self.parts = vec![Part {
                    start: at,
                    end: self.renews_at,
                    cycle: self.recorder.terms.cycle,
                    cost: 0,
                    given: self.amount(),
                    waived: 0,
                    is_free: false,
                }];
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
        let (status, ends_at) = (Status::Cancelled, sent);
        self.recorder.call(at, Verb::SetStatus { status, ends_at });
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

    /// Gives free time that ends some time after the covered time.
    pub(in crate::tests) fn free_until(&mut self, at: i64, time: i64) {
        let is_expired = self.status == Status::Expired;
        if !is_expired && self.status != Status::Active {
            return;
        }
        if is_expired {
            self.recorder.ends_at = None;
            self.recorder.starts_at = self.recorder.starts_at.min(at);
            self.parts.clear();
            self.is_trial = false;
        }
        let from = match self.parts.last() {
            Some(part) => part.end,
            None => at,
        };
        let until = from + time;
        self.recorder.call(at, Verb::FreeUntil { until });
        let debt = -self.recorder.credit();
        if debt > 0 {
            self.recorder.entry(at, EntryKind::Waiver, debt, None);
            self.waive(self.last_entry(), debt);
            self.waived_debt += debt;
        }
        self.status = Status::Active;
        self.cover_free(at, from, until);
    }
}
