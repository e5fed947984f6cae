//! Movements of recurring revenue: why a user's annual value changed on a day.
//!
//! A day's changes are taken in three stages: corrections of mistakes, imports, and what the user did.
//! Only the last stage is classified by the user's value before and after it.

use std::collections::BTreeMap;

use super::sums::{MovementSums, Segment};

string_enum! {
    /// Why recurring revenue changed.
    pub enum MovementKind: "a movement" {
        /// The user pays for the first time.
        New = "new",
        /// The user pays more.
        Expansion = "expansion",
        /// The user pays less.
        Contraction = "contraction",
        /// The user pays no more.
        Churned = "churned",
        /// The user pays again.
        Reactivated = "reactivated",
        /// A subscription that had started long before was recorded.
        Imported = "imported",
        /// A subscription was deleted.
        Correction = "correction",
        /// The user moved from one plan or billing cycle to another. The sum over all is zero.
        Transferred = "transferred",
    }
}

impl MovementKind {
    /// Classifies a change of a user's annual value.
    pub(super) fn classify(before: i128, after: i128, has_paid: bool) -> Self {
        match (before, after) {
            _ if before == after => Self::Transferred,
            (0, _) if has_paid => Self::Reactivated,
            (0, _) => Self::New,
            (_, 0) => Self::Churned,
            _ if after > before => Self::Expansion,
            _ => Self::Contraction,
        }
    }
}

/// The counted subscriptions of a user in one segment: their number and annual value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SegmentLevel {
    pub subscriptions: i64,
    pub value: i128,
}

impl SegmentLevel {
    pub fn add(&mut self, other: Self) {
        self.subscriptions += other.subscriptions;
        self.value += other.value;
    }
}

/// The user's levels in one currency, by segment.
pub(super) type Levels = BTreeMap<Segment, SegmentLevel>;

pub(super) fn total(levels: &Levels) -> i128 {
    levels.values().map(|level| level.value).sum()
}

/// The movements of a stage: for all segments together (`None`) and for each.
pub(super) type Movements = Vec<(Option<Segment>, MovementKind, MovementSums)>;

/// Adds the changes of a stage to the levels and returns its movements.
pub(super) fn apply_stage(
    levels: &mut Levels,
    changes: &Levels,
    kind_of: impl Fn(i128, i128) -> MovementKind,
) -> Movements {
    let before = total(levels);
    let net = total(changes);
    let kind = kind_of(before, before + net);
    // What moves between segments: all that runs against the net change, and as much of what runs with it.
    let against: i128 = changes
        .values()
        .map(|change| change.value)
        .filter(|value| (*value < 0) == (net >= 0))
        .sum();
    let mut left = -against;
    let mut movements = Movements::new();
    let mut all = MovementSums {
        users: i64::from(before + net > 0) - i64::from(before > 0),
        changes: 1,
        subscriptions: 0,
        annual_value: net,
    };
    for (segment, change) in changes {
        let level = levels.entry(*segment).or_default();
        let had_value = level.value > 0;
        level.add(*change);
        all.subscriptions += change.subscriptions;
        let users = i64::from(level.value > 0) - i64::from(had_value);
        let runs_against = (change.value < 0) == (net >= 0) && change.value != 0;
        let transferred = if runs_against || kind == MovementKind::Transferred {
            change.value
        } else if net >= 0 {
            change.value.min(left)
        } else {
            change.value.max(left)
        };
        if !runs_against {
            left -= transferred;
        }
        let rest = change.value - transferred;
        // The user is counted once per segment: as transferred if any value came from or went to another one.
        let is_transfer =
            transferred != 0 || change.value == 0 || kind == MovementKind::Transferred;
        let sums = |annual_value, counts: bool| MovementSums {
            users: if counts { users } else { 0 },
            changes: 1,
            subscriptions: if counts { change.subscriptions } else { 0 },
            annual_value,
        };
        if is_transfer {
            let moved = sums(transferred, true);
            movements.push((Some(*segment), MovementKind::Transferred, moved));
        }
        if rest != 0 {
            movements.push((Some(*segment), kind, sums(rest, !is_transfer)));
        }
    }
    levels.retain(|_, level| *level != SegmentLevel::default());
    movements.push((None, kind, all));
    movements
}
