//! What one user adds to the reports, computed from the states of their subscriptions.
//!
//! The sums of all users are the reports. A change of a user's states is applied by subtracting the
//! earlier contribution and adding the later one, so a state that arrives late goes to its own day and
//! corrects the days after it.

use std::collections::BTreeMap;

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use super::{
    MovementKind, RevenueState, RevenueStatus, episodes,
    movements::{self, Levels, SegmentLevel},
    sums::{
        CohortKey, CohortSums, MovementKey, MovementSums, OutcomeKey, StatusKey, SubscriptionSums,
        Sums,
    },
};
use crate::{Currency, SubscriptionId};

/// What one user, or several, add to the reports.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contribution {
    /// Movements of recurring revenue.
    pub movements: BTreeMap<MovementKey, MovementSums>,
    /// Subscriptions by status, as changes from the day before.
    pub statuses: BTreeMap<StatusKey, SubscriptionSums>,
    /// Cohorts.
    pub cohorts: BTreeMap<CohortKey, CohortSums>,
    /// Outcomes of trials and late payments.
    pub outcomes: BTreeMap<OutcomeKey, SubscriptionSums>,
}

fn add<K: Ord, S: Sums>(sums: &mut BTreeMap<K, S>, key: K, value: S) {
    *sums.entry(key).or_default() += value;
}

fn add_all<K: Ord + Copy, S: Sums>(
    sums: &mut BTreeMap<K, S>,
    other: &BTreeMap<K, S>,
    sign: impl Fn(S) -> S,
) {
    for (key, value) in other {
        add(sums, *key, sign(*value));
    }
    sums.retain(|_, value| *value != S::default());
}

/// A recorded state. A later `sequence` replaces an earlier one from `at` on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordedState {
    /// From when on.
    pub at: Timestamp,
    /// The order in which states were recorded.
    pub sequence: i64,
    /// The subscription.
    pub subscription: SubscriptionId,
    /// The state.
    pub state: RevenueState,
    /// Whether the subscription was created with this state and is imported.
    pub imported: bool,
}

/// The states of one subscription in the order of time, without those that were replaced before they
/// began.
pub(super) type History = Vec<RecordedState>;

/// A subscription's state before and after a day.
struct DayChange {
    before: Option<RevenueState>,
    after: RevenueState,
    imported: bool,
}

/// Returns the day of an instant, in UTC.
pub(super) fn day_of(at: Timestamp) -> Date {
    TimeZone::UTC.to_datetime(at).date()
}

impl Contribution {
    /// Computes the contribution of one user from all states of their subscriptions, in any order.
    pub fn of_user(states: &[RecordedState]) -> Self {
        let mut by_subscription: BTreeMap<SubscriptionId, History> = BTreeMap::new();
        let mut states = states.to_vec();
        states.sort_by_key(|state| (state.at, state.sequence));
        for state in states {
            let history = by_subscription.entry(state.subscription).or_default();
            let is_replaced = |last: &RecordedState| last.sequence > state.sequence;
            if !history.last().is_some_and(is_replaced) {
                history.push(state);
            }
        }
        let mut contribution = Self::default();
        let mut days: BTreeMap<Date, Vec<DayChange>> = BTreeMap::new();
        for history in by_subscription.values() {
            contribution.add_outcomes(history);
            for (day, change) in day_changes(history) {
                days.entry(day).or_default().push(change);
            }
        }
        contribution.add_statuses(&days);
        contribution.add_movements(&days);
        contribution
    }

    /// Adds another contribution.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, false);
    }

    /// Subtracts another contribution.
    pub fn subtract(&mut self, other: &Self) {
        self.combine(other, true);
    }

    fn combine(&mut self, other: &Self, negate: bool) {
        fn sign<S: Sums>(negate: bool) -> impl Fn(S) -> S {
            move |sums| if negate { -sums } else { sums }
        }
        add_all(&mut self.movements, &other.movements, sign(negate));
        add_all(&mut self.statuses, &other.statuses, sign(negate));
        add_all(&mut self.cohorts, &other.cohorts, sign(negate));
        add_all(&mut self.outcomes, &other.outcomes, sign(negate));
    }

    fn add_outcomes(&mut self, history: &[RecordedState]) {
        for outcome in episodes::outcomes(history) {
            for segment in [None, Some(outcome.segment)] {
                let key = OutcomeKey {
                    day: day_of(outcome.at),
                    started_month: day_of(outcome.started_at).first_of_month(),
                    currency: outcome.currency,
                    segment,
                    kind: outcome.kind,
                };
                let sums = SubscriptionSums {
                    subscriptions: 1,
                    annual_value: outcome.annual_value,
                };
                add(&mut self.outcomes, key, sums);
            }
        }
    }

    fn add_statuses(&mut self, days: &BTreeMap<Date, Vec<DayChange>>) {
        for (day, changes) in days {
            for change in changes {
                if let Some(before) = change.before {
                    self.add_status(*day, before, -1);
                }
                self.add_status(*day, change.after, 1);
            }
        }
        self.statuses
            .retain(|_, sums| *sums != SubscriptionSums::default());
    }

    fn add_status(&mut self, day: Date, state: RevenueState, count: i64) {
        for segment in [None, Some((state.plan, state.billing_cycle))] {
            let key = StatusKey {
                day,
                currency: state.currency,
                segment,
                status: state.status,
                suspended: state.suspended,
                basis: state.basis,
            };
            let sums = SubscriptionSums {
                subscriptions: count,
                annual_value: i128::from(count) * state.annual_value,
            };
            add(&mut self.statuses, key, sums);
        }
    }

    fn add_movements(&mut self, days: &BTreeMap<Date, Vec<DayChange>>) {
        let states = days.values().flatten();
        let states = states.flat_map(|change| change.before.into_iter().chain([change.after]));
        let mut currencies: Vec<Currency> = states.map(|state| state.currency).collect();
        currencies.sort_unstable();
        currencies.dedup();
        for currency in currencies {
            self.add_movements_in(currency, days);
        }
    }

    fn add_movements_in(&mut self, currency: Currency, days: &BTreeMap<Date, Vec<DayChange>>) {
        let mut levels = Levels::new();
        let mut cohort: Option<Cohort> = None;
        for (day, changes) in days {
            for stage in Stage::ALL {
                let of_stage = changes.iter().filter(|change| Stage::of(change) == stage);
                let changes = sum_changes(currency, of_stage);
                if changes.is_empty() {
                    continue;
                }
                let has_paid = cohort.is_some() || movements::total(&levels) > 0;
                let kind_of = |before, after| match stage {
                    Stage::Correction => MovementKind::Correction,
                    Stage::Import => MovementKind::Imported,
                    Stage::Change => MovementKind::classify(before, after, has_paid),
                };
                for (segment, kind, sums) in movements::apply_stage(&mut levels, &changes, kind_of)
                {
                    let key = MovementKey {
                        day: *day,
                        currency,
                        segment,
                        kind,
                    };
                    add(&mut self.movements, key, sums);
                }
            }
            let value = movements::total(&levels);
            if value > 0 && cohort.is_none() {
                cohort = Some(Cohort::new(*day));
            }
            if let Some(cohort) = &mut cohort {
                cohort.set(*day, value);
            }
        }
        if let Some(cohort) = cohort {
            self.add_cohort(currency, &cohort);
        }
        self.movements
            .retain(|_, sums| *sums != MovementSums::default());
    }

    fn add_cohort(&mut self, currency: Currency, cohort: &Cohort) {
        let mut before = 0;
        for (month, value) in &cohort.values {
            let sums = CohortSums {
                joined: i64::from(*month == cohort.month),
                users: i64::from(*value > 0) - i64::from(before > 0),
                annual_value: value - before,
            };
            before = *value;
            let key = CohortKey {
                cohort: cohort.month,
                month: *month,
                currency,
            };
            add(&mut self.cohorts, key, sums);
        }
        self.cohorts
            .retain(|_, sums| *sums != CohortSums::default());
    }
}

/// A user's value at the end of each month in which it changed, from the first paid day on.
struct Cohort {
    month: Date,
    values: BTreeMap<Date, i128>,
}

impl Cohort {
    fn new(first_paid: Date) -> Self {
        Self {
            month: first_paid.first_of_month(),
            values: BTreeMap::new(),
        }
    }

    fn set(&mut self, day: Date, value: i128) {
        self.values.insert(day.first_of_month(), value);
    }
}

/// The stages in which a day's changes are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Correction,
    Import,
    Change,
}

impl Stage {
    const ALL: [Self; 3] = [Self::Correction, Self::Import, Self::Change];

    fn of(change: &DayChange) -> Self {
        match change.after.status {
            RevenueStatus::Deleted => Self::Correction,
            _ if change.imported => Self::Import,
            _ => Self::Change,
        }
    }
}

/// Sums the changes of counted subscriptions by segment.
fn sum_changes<'a>(currency: Currency, changes: impl Iterator<Item = &'a DayChange>) -> Levels {
    let mut sums = Levels::new();
    for change in changes {
        let sides = [(change.before, -1), (Some(change.after), 1)];
        for (state, sign) in sides {
            let counted = |state: &RevenueState| state.is_counted() && state.currency == currency;
            if let Some(state) = state.filter(counted) {
                let level = SegmentLevel {
                    subscriptions: sign,
                    value: i128::from(sign) * state.annual_value,
                };
                let segment = (state.plan, state.billing_cycle);
                sums.entry(segment).or_default().add(level);
            }
        }
    }
    sums.retain(|_, level| *level != SegmentLevel::default());
    sums
}

/// Returns the days on which a subscription's state changed, and its state before and after each.
fn day_changes(history: &[RecordedState]) -> BTreeMap<Date, DayChange> {
    let mut days: BTreeMap<Date, DayChange> = BTreeMap::new();
    let mut last: Option<RevenueState> = None;
    for recorded in history {
        let change = days.entry(day_of(recorded.at)).or_insert(DayChange {
            before: last,
            after: recorded.state,
            imported: false,
        });
        change.after = recorded.state;
        change.imported |= recorded.imported;
        last = Some(recorded.state);
    }
    days
}
