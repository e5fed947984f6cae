//! Levels of recurring revenue at the start and the end of each interval: running sums of movements.

use std::collections::BTreeMap;

use jiff::civil::Date;
use perennial_domain::{Currency, MovementKind};

use super::{
    figures_sql::{CancelledSum, MovementSum},
    report_query::ReportQuery,
};

/// Recurring revenue at an instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RevenueTotals {
    pub users: i64,
    pub subscriptions: i64,
    pub annual_value: i128,
    /// Without cancelled subscriptions.
    pub committed: i128,
}

/// The movements of one kind in an interval.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MovementTotals {
    pub users: i64,
    pub changes: i64,
    pub annual_value: i128,
}

/// The levels of an interval, and what changed them.
#[derive(Debug, Clone)]
pub(super) struct IntervalLevels {
    pub from: Date,
    pub to: Date,
    pub opening: RevenueTotals,
    pub closing: RevenueTotals,
    movements: BTreeMap<MovementKind, MovementTotals>,
}

impl IntervalLevels {
    /// Returns the movements of one kind.
    pub fn movement(&self, kind: MovementKind) -> MovementTotals {
        self.movements.get(&kind).copied().unwrap_or_default()
    }
}

/// The levels of each currency, by interval.
pub(super) struct RevenueLevels {
    pub by_currency: BTreeMap<Currency, Vec<IntervalLevels>>,
}

impl RevenueTotals {
    fn add_movement(&mut self, sum: &MovementSum) {
        self.users += sum.users;
        self.subscriptions += sum.subscriptions;
        self.annual_value += sum.annual_value;
        self.committed += sum.annual_value;
    }
}

/// What changed in an interval.
#[derive(Debug, Default)]
struct IntervalChanges {
    totals: RevenueTotals,
    movements: BTreeMap<MovementKind, MovementTotals>,
}

impl RevenueLevels {
    /// Adds sums up. `currencies` without sums have levels of zero.
    pub fn new(
        query: &ReportQuery,
        movements: &[MovementSum],
        cancelled: &[CancelledSum],
        currencies: impl Iterator<Item = Currency>,
    ) -> Self {
        // By interval; `None` is before the first one.
        let mut changes: BTreeMap<Currency, BTreeMap<Option<Date>, IntervalChanges>> = currencies
            .map(|currency| (currency, BTreeMap::new()))
            .collect();
        for sum in movements {
            let intervals = changes.entry(sum.currency).or_default();
            let interval = intervals
                .entry(query.interval_from(sum.bucket))
                .or_default();
            interval.totals.add_movement(sum);
            let of_kind = interval.movements.entry(sum.kind).or_default();
            of_kind.users += sum.users;
            of_kind.changes += sum.changes;
            of_kind.annual_value += sum.annual_value;
        }
        for sum in cancelled {
            let intervals = changes.entry(sum.currency).or_default();
            let interval = intervals
                .entry(query.interval_from(sum.bucket))
                .or_default();
            interval.totals.committed -= sum.annual_value;
        }
        let by_currency = changes.into_iter().map(|(currency, mut changes)| {
            let mut level = changes.remove(&None).unwrap_or_default().totals;
            let intervals = query.buckets().into_iter().map(|(from, to)| {
                let opening = level;
                let change = changes.remove(&Some(from)).unwrap_or_default();
                level.users += change.totals.users;
                level.subscriptions += change.totals.subscriptions;
                level.annual_value += change.totals.annual_value;
                level.committed += change.totals.committed;
                IntervalLevels {
                    from,
                    to,
                    opening,
                    closing: level,
                    movements: change.movements,
                }
            });
            (currency, intervals.collect())
        });
        Self {
            by_currency: by_currency.collect(),
        }
    }
}
