//! Levels of recurring revenue at the start and the end of each interval: running sums of movements.

use std::collections::BTreeMap;

use jiff::civil::Date;
use perennial_domain::{Currency, RevenueBasis, RevenueStatus};

use super::{
    figures_sql::{MovementSum, StatusSum},
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

/// The levels of an interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct IntervalLevels {
    pub from: Date,
    pub to: Date,
    pub opening: RevenueTotals,
    pub closing: RevenueTotals,
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

    fn add_status(&mut self, sum: &StatusSum) {
        if sum.status == RevenueStatus::Cancelled && sum.basis == RevenueBasis::Recurring {
            self.committed -= sum.annual_value;
        }
    }
}

impl RevenueLevels {
    pub fn new(query: &ReportQuery, movements: &[MovementSum], statuses: &[StatusSum]) -> Self {
        // What changed in each interval, and before the first one.
        let mut changes: BTreeMap<Currency, BTreeMap<Option<Date>, RevenueTotals>> =
            BTreeMap::new();
        for sum in movements {
            let buckets = changes.entry(sum.currency).or_default();
            buckets
                .entry(query.interval_from(sum.bucket))
                .or_default()
                .add_movement(sum);
        }
        for sum in statuses {
            let buckets = changes.entry(sum.currency).or_default();
            buckets
                .entry(query.interval_from(sum.bucket))
                .or_default()
                .add_status(sum);
        }
        let by_currency = changes.into_iter().map(|(currency, changes)| {
            let mut level = changes.get(&None).copied().unwrap_or_default();
            let intervals = query.buckets().into_iter().map(|(from, to)| {
                let opening = level;
                if let Some(change) = changes.get(&Some(from)) {
                    level.users += change.users;
                    level.subscriptions += change.subscriptions;
                    level.annual_value += change.annual_value;
                    level.committed += change.committed;
                }
                IntervalLevels {
                    from,
                    to,
                    opening,
                    closing: level,
                }
            });
            (currency, intervals.collect())
        });
        Self {
            by_currency: by_currency.collect(),
        }
    }
}
