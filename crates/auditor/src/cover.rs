//! Stretches of covered time, open periods and lateness.

use crate::calendar::DAY;
use crate::{Cycle, Dunning, SLACK};

/// A stretch of covered time: one period, or free time that follows it.
#[derive(Debug, Clone)]
pub(crate) struct Cover {
    pub(crate) start: i64,
    /// `None` for a lifetime.
    pub(crate) end: Option<i64>,
    /// End of the charged part; equals `end` unless free time follows. In a stretch of free time its
    /// start, or the end of its first part if more free time follows.
    pub(crate) charged_until: Option<i64>,
    /// Amount of the terms that the stretch was bought or changed to.
    pub(crate) amount: i64,
    /// What the period took from credit, at full-period value.
    pub(crate) cost: i64,
    /// The part of `cost` that changes added while free time made up a part of the stretch.
    pub(crate) added_cost: i64,
    /// Waivers that fell into the period.
    pub(crate) waived: i64,
    /// The part of `waived` that an earlier return has deducted.
    pub(crate) deducted: i64,
    pub(crate) cycle: Cycle,
    pub(crate) is_trial: bool,
    /// Whether free time makes up a part of the stretch.
    pub(crate) is_extended: bool,
    /// Whether `end` has passed without renewal, which happens while paused.
    pub(crate) is_lapsed: bool,
}

impl Cover {
    /// Returns whether the stretch contains an instant.
    pub(crate) fn contains(&self, at: i64) -> bool {
        self.start <= at && self.is_in_force(at)
    }

    /// Returns whether a call at `at` finds the stretch running.
    ///
    /// The stretch may have started with an earlier call of the same instant, a few microseconds
    /// later.
    pub(crate) fn is_running(&self, at: i64) -> bool {
        !self.is_empty() && self.start <= at + SLACK && self.is_in_force(at)
    }

    /// Returns whether the stretch ends after an instant.
    pub(crate) fn is_in_force(&self, at: i64) -> bool {
        !self.is_lapsed && self.end.is_none_or(|end| at < end)
    }

    /// Returns whether the stretch only marks a future start.
    pub(crate) fn is_empty(&self) -> bool {
        self.end == Some(self.start)
    }
}

/// A period that is due and not paid.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) start: i64,
    pub(crate) end: Option<i64>,
}

/// Lateness, which starts once and ends by payment, won dispute, extension, change or expiry.
#[derive(Debug, Clone)]
pub(crate) struct Late {
    pub(crate) since: i64,
    pub(crate) grace_until: i64,
    /// Whether the grace has ended.
    pub(crate) is_unpaid: bool,
    /// Whether a dispute caused it.
    pub(crate) is_dispute: bool,
    /// Microseconds by which `since` may be later: changes of one instant move on by 1 µs each.
    pub(crate) fuzz: i64,
}

/// Returns the end of the grace: never past the end of the open period.
pub(crate) fn grace_end(since: i64, period_end: Option<i64>, dunning: Dunning) -> i64 {
    let grace = since + dunning.unpaid_after_days * DAY;
    period_end.map_or(grace, |end| grace.min(end))
}
