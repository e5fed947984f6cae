//! Changes of plan and quantity on the test engine.

use super::*;

/// Divides and rounds down.
pub(super) fn floor(numerator: i128, denominator: i128) -> i64 {
    i64::try_from(numerator.div_euclid(denominator)).unwrap()
}

impl Engine {
    /// Returns the parts that end after an instant.
    pub(super) fn parts_left(&self, at: i64) -> Vec<Part> {
        let parts = self.parts.iter().filter(|part| part.end > at);
        parts.cloned().collect()
    }

    /// Returns what a sum of values, each of one part, is worth for the time left.
    pub(super) fn worth(&self, parts: &[Part], values: &[i64], at: i64) -> i64 {
        let hour = DAY / 24;
        let (mut sum, mut common) = (0, 1);
        for (part, value) in parts.iter().zip(values) {
            let mut rest = part.end - at.max(part.start);
            match self.bug {
                Some(Bug::HoursRoundedDown) => rest -= rest.rem_euclid(hour),
                Some(Bug::HoursRoundedUp) => rest += (-rest).rem_euclid(hour),
                _ => {}
            }
            let mut length = if part.is_free {
                add_cycles(part.start, part.cycle, 1).unwrap() - part.start
            } else {
                part.end - part.start
            };
            if self.bug == Some(Bug::StartedDaysCharged) && *value < 0 {
                rest += (-rest).rem_euclid(DAY);
                length -= length.rem_euclid(DAY);
            }
            let length = i128::from(length.max(1));
            sum = sum * length + i128::from(*value) * i128::from(rest) * common;
            common *= length;
        }
        let down = floor(sum, common);
        let is_up = self.bug == Some(Bug::ReturnRoundedUp) && sum.rem_euclid(common) > 0;
        down + i64::from(is_up)
    }

    /// Changes plan or quantity if credit pays for it.
    pub(in crate::tests) fn change(&mut self, at: i64, terms: Terms, trial_days: u16) {
        let old = self.recorder.terms;
        if self.status == Status::Cancelled || !self.is_managed {
            return;
        }
        let record = |engine: &mut Self| {
            engine.recorder.change_with_trial(at, terms, trial_days);
        };
        if matches!(self.status, Status::Pending | Status::Expired) || self.is_lapsed {
            record(self);
            self.recorder.terms = terms;
            self.use_credit(at);
        } else if self.is_open {
            self.change_open(at, terms, record);
        } else if self.is_trial {
            self.change_trial(at, terms, trial_days, record);
        } else {
            let is_same_cycle = old.cycle == terms.cycle;
            let parts = self.parts_left(at);
            if is_same_cycle || parts.iter().all(|part| !part.is_free) {
                self.change_covered(at, terms, 0, record);
            }
        }
    }

    fn change_trial(&mut self, at: i64, terms: Terms, trial_days: u16, record: impl Fn(&mut Self)) {
        let is_kept = terms.plan == self.recorder.terms.plan || trial_days > 0;
        let is_paused = self.status == Status::Paused;
        if is_kept || self.bug == Some(Bug::TrialOfAnyPlan) {
            record(self);
            self.recorder.terms = terms;
            let part = &mut self.parts[0];
            (part.given, part.cycle) = (terms.amount(), terms.cycle);
        } else if is_paused {
            record(self);
            self.recorder.terms = terms;
            self.parts.clear();
            (self.renews_at, self.is_lapsed, self.is_trial) = (at, true, false);
        } else if self.recorder.credit() >= terms.amount() {
            record(self);
            self.recorder.terms = terms;
            self.late_since = None;
            self.begin(at);
        }
    }

    /// Changes a late subscription: the open period counts at the old amount.
    fn change_open(&mut self, at: i64, terms: Terms, record: impl Fn(&mut Self)) {
        let (credit, old) = (self.recorder.credit(), self.recorder.terms);
        if self.bug == Some(Bug::LateAtNewAmount) {
            if credit >= terms.amount() && old.cycle == terms.cycle {
                record(self);
                self.recorder.terms = terms;
                self.use_credit(at);
            }
            return;
        }
        let part = Part {
            start: self.renews_at,
            end: self.open_end,
            cycle: old.cycle,
            cost: old.amount(),
            given: 0,
            waived: 0,
            is_free: false,
        };
        if part.end > at {
            let backup = self.parts.clone();
            self.parts = vec![part];
            let charged = old.amount();
            let is_done = self.change_covered(at, terms, charged, |engine| {
                record(engine);
                engine.post_period(at, engine.renews_at);
            });
            if !is_done {
                self.parts = backup;
            }
            return;
        }
        let is_paused = self.status == Status::Paused;
        let price = if is_paused { 0 } else { terms.amount() };
        if credit < old.amount() + price {
            return;
        }
        record(self);
        self.post_period(at, self.renews_at);
        self.recorder.terms = terms;
        if is_paused {
            self.is_lapsed = true;
        } else {
            self.begin(at);
        }
    }

    /// Changes covered time if credit pays for it and for `charged` before. Returns whether it did.
    fn change_covered(
        &mut self,
        at: i64,
        terms: Terms,
        charged: i64,
        record: impl Fn(&mut Self),
    ) -> bool {
        let old = self.recorder.terms;
        let credit = self.recorder.credit() - charged;
        let (is_in_place, amount) = (old.cycle == terms.cycle, terms.amount());
        let mut parts = self.parts_left(at);
        let returned = |part: &Part| {
            let difference = if is_in_place {
                part.cost + part.given - amount
            } else {
                part.cost
            };
            part.cost.min(difference)
        };
        let values: Vec<i64> = parts.iter().map(returned).collect();
        let mut effect = self.worth(&parts, &values, at);
        if self.bug == Some(Bug::FreeChange) {
            effect = effect.max(0);
        }
        let price = if is_in_place { 0 } else { amount };
        if parts.is_empty() || credit + effect < price {
            return false;
        }
        let start = parts[0].start;
        record(self);
        self.recorder.terms = terms;
        let bounds = Some((start, Some(self.renews_at)));
        self.recorder.entry(at, EntryKind::Change, effect, bounds);
        self.late_since = None;
        if is_in_place {
            for (part, value) in parts.iter_mut().zip(values) {
                part.cost -= value;
                part.given = amount - part.cost;
                part.waived = part.waived.min(part.given);
            }
            self.parts = parts;
        } else {
            self.begin(at);
        }
        true
    }
}
