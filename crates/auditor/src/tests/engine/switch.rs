//! Switches between recorded and managed mode on the test engine.

use super::*;
use crate::calendar::is_renewal;

/// What a client changes in recorded mode.
#[derive(Clone, Copy)]
pub(in crate::tests) enum Edit {
    None,
    LaterRenewal(i64),
    Terms(Terms),
}

impl Engine {
    pub(in crate::tests) fn leave(&mut self, at: i64) {
        self.recorder.call(at, Verb::LeaveManaged);
        self.frozen = self.status_at(at);
        self.is_managed = false;
    }

    pub(in crate::tests) fn enter(&mut self, at: i64, edit: Edit) {
        let ends_at = self.recorder.ends_at;
        let status = match self.frozen {
            _ if ends_at.is_some_and(|end| end <= at) => Status::Expired,
            frozen => frozen,
        };
        let is_covered = matches!(status, Status::Active | Status::OnTrial | Status::Paused);
        let is_edited = is_covered
            && self.renews_at > at
            && self.late_since.is_none()
            && !self.is_lapsed
            && match edit {
                Edit::None => false,
                Edit::LaterRenewal(_) => true,
                Edit::Terms(terms) => {
                    let old = self.recorder.terms;
                    (old.quantity, old.cycle) != (terms.quantity, terms.cycle)
                }
            };
        let (mut terms, mut renews_at) = (self.recorder.terms, self.renews_at);
        match edit {
            Edit::LaterRenewal(time) if is_edited => renews_at += time,
            Edit::Terms(edited) if is_edited => terms = edited,
            _ => {}
        }
        let shown = Shown {
            status,
            terms,
            starts_at: self.recorder.starts_at,
            renews_at: (status != Status::Pending).then_some(renews_at),
            ends_at,
            late_since: self.late_since,
        };
        self.recorder.call(at, Verb::EnterManaged { shown });
        self.recorder.terms = terms;
        self.is_managed = true;
        match status {
            Status::Expired => self.status = Status::Expired,
            Status::Pending => {
                // The start follows the switch.
                if self.recorder.credit() >= self.amount() {
                    self.now = at + 1;
                    self.use_credit(at + 1);
                }
            }
            Status::PastDue | Status::Unpaid => self.enter_late(at, status),
            _ if is_edited => self.enter_edited(at, renews_at, edit),
            _ => self.enter_same(at),
        }
        if self.bug == Some(Bug::SwitchWipesCost) && !self.is_open && self.renews_at > at {
            for part in &mut self.parts {
                (part.given, part.cost) = (part.given + part.cost, 0);
            }
        }
        if self.bug == Some(Bug::SwitchStartsGrace) && self.late_since.is_some() {
            (self.late_since, self.grace_until) = (Some(at), at + 7 * DAY);
        }
        if self.status != Status::Pending {
            self.use_credit(at);
        }
        self.start_lateness(at);
    }

    fn enter_edited(&mut self, at: i64, renews_at: i64, edit: Edit) {
        let anchor = self.anchor;
        let mut from = self.renews_at;
        if let Edit::Terms(_) = edit {
            self.parts.clear();
            from = at;
        }
        self.cover_free(at, from, renews_at);
        if is_renewal(anchor, renews_at, self.recorder.terms.cycle) {
            self.anchor = anchor;
        }
        self.is_trial &= self.frozen == Status::OnTrial;
    }

    /// Enters with the record that the engine left.
    fn enter_same(&mut self, at: i64) {
        if self.renews_at > at {
        } else if self.status == Status::Paused {
            if self.late_since.is_some_and(|since| since + 30 * DAY <= at) {
                (self.late_since, self.is_open) = (None, false);
            }
            self.is_lapsed |= !self.is_open;
        } else {
            self.anchor = at;
            self.parts.clear();
            if self.charge(at, at) {
            } else if self.status == Status::Cancelled {
                self.status = Status::Expired;
            } else {
                self.open(at, at);
            }
        }
    }

    fn enter_late(&mut self, at: i64, status: Status) {
        let since = self.late_since.unwrap();
        let is_dunned =
            since + 30 * DAY > at && (status == Status::Unpaid || self.grace_until > at);
        if !self.is_open && self.renews_at > at {
            if self.recorder.credit() >= 0 {
                self.late_since = None;
            } else if !is_dunned {
                let grace_end = (at + 7 * DAY).min(self.renews_at);
                let has_grace = status == Status::PastDue;
                self.late_since = Some(at);
                self.grace_until = if has_grace { grace_end } else { at };
            }
            return;
        }
        if is_dunned && self.is_open {
            return;
        }
        let end = self.renews_at;
        self.late_since = None;
        self.parts.clear();
        let mut start = at;
        if end > at {
            start = add_cycles(end, self.recorder.terms.cycle, -1).unwrap();
            start = start.max(self.recorder.starts_at).min(at);
            (self.anchor, self.open_end) = (end, end);
        } else {
            self.anchor = at;
            self.open_end = add_cycles(at, self.recorder.terms.cycle, 1).unwrap();
        }
        self.open_until(start, at);
        let late = (self.late_since, self.grace_until);
        if !self.charge(at, start) {
            (self.late_since, self.grace_until) = late;
            if status == Status::Unpaid {
                self.grace_until = at;
            }
        }
    }
}
