//! Transitions that time causes: renewal, end, expiry and the start of a pending subscription.

use crate::calendar::DAY;
use crate::coverage::{Mode, Stage, State};
use crate::replay::{Replay, fail};
use crate::{Dunning, Violation};

/// A transition that is due, in order of precedence at the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    End,
    Expire,
    PendingStart,
    Renew,
    GraceEnd,
}

impl State {
    /// Returns the next transition and its instant.
    pub(crate) fn next_due(&self, dunning: Dunning) -> Option<(i64, Due)> {
        let expired_after = dunning.expired_after_days * DAY;
        let mut dues = Vec::new();
        if matches!(self.stage, Stage::Pending | Stage::Running) {
            dues.extend(self.ends_at.map(|at| (at, Due::End)));
        }
        if self.stage == Stage::Pending {
            dues.push(if self.credit >= self.amount() {
                (self.starts_at, Due::PendingStart)
            } else {
                let since = self.starts_at.max(self.created_at);
                (since + expired_after, Due::Expire)
            });
        }
        if self.stage == Stage::Running {
            if let Some(late) = &self.late {
                dues.push((late.since + expired_after, Due::Expire));
                if !late.is_unpaid {
                    dues.push((late.grace_until, Due::GraceEnd));
                }
            }
            if let Some(cover) = self.cover.as_ref().filter(|cover| !cover.is_lapsed) {
                dues.extend(cover.end().map(|at| (at, Due::Renew)));
            }
        }
        dues.into_iter().min()
    }

    /// Returns the deadlines that follow from the state, a coming lateness included.
    pub(crate) fn deadlines(&self, dunning: Dunning) -> Vec<i64> {
        let mut deadlines: Vec<i64> = self.ends_at.into_iter().collect();
        if self.stage == Stage::Pending {
            let since = self.starts_at.max(self.created_at);
            deadlines.extend([self.starts_at, since + dunning.expired_after_days * DAY]);
        }
        if let Some(late) = &self.late {
            deadlines.extend([late.since, late.grace_until]);
            deadlines.push(late.since + dunning.expired_after_days * DAY);
        }
        if let Some(open) = &self.open {
            deadlines.push(open.start);
            deadlines.extend(open.end);
        }
        if let Some(cover) = &self.cover {
            deadlines.extend(cover.in_force(i64::MIN).map(|stretch| stretch.start));
            if let Some(end) = cover.end() {
                deadlines.extend([end, end + dunning.unpaid_after_days * DAY]);
                deadlines.push(end + dunning.expired_after_days * DAY);
                deadlines.extend(self.end_from(end));
            }
        }
        deadlines
    }
}

impl Replay<'_> {
    /// Applies every transition due at or before an instant.
    pub(crate) fn advance(&mut self, to: i64) -> Result<(), Violation> {
        while let Some((at, due)) = self.state.next_due(self.history.dunning) {
            if at > to {
                break;
            }
            let effective = at.max(self.state.last_change.saturating_add(1));
            let fuzz = match (&self.state.late, due) {
                (Some(late), Due::Expire | Due::GraceEnd) => late.fuzz,
                _ => self.state.fuzz,
            };
            if effective > at || fuzz > 0 {
                self.keep_snapshot((effective - 1).max(at + fuzz));
            }
            self.apply_due(at, due)?;
            let latest = effective.max(at + fuzz);
            self.state.last_change = self.state.last_change.max(latest);
            self.deadlines
                .extend(self.state.deadlines(self.history.dunning));
        }
        Ok(())
    }

    fn apply_due(&mut self, at: i64, due: Due) -> Result<(), Violation> {
        match due {
            Due::End | Due::Expire => self.state.end(),
            Due::GraceEnd => {
                if let Some(late) = &mut self.state.late {
                    late.is_unpaid = true;
                }
            }
            Due::PendingStart => {
                self.state.anchor = at;
                self.charge(at, at, 0)?;
            }
            Due::Renew => self.renew(at)?,
        }
        Ok(())
    }

    /// Renews at the end of covered time: charges the next period, or opens it, or ends.
    fn renew(&mut self, at: i64) -> Result<(), Violation> {
        let Some(cover) = &mut self.state.cover else {
            return Err(fail(at, "nothing to renew"));
        };
        let is_first = cover.is_empty();
        if self.state.mode == Mode::Paused {
            cover.is_lapsed = true;
            return Ok(());
        }
        if is_first {
            self.state.anchor = at;
        }
        if self.charge(at, at, 0)? {
            return Ok(());
        }
        if self.state.mode == Mode::Cancelled {
            self.state.end();
        } else {
            self.state.open_period(at, at, 0, self.history.dunning);
        }
        Ok(())
    }
}
