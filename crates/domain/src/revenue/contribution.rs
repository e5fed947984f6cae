//! What one user adds to the reports, computed from the states of their subscriptions.
//!
//! The sums of all users are the reports. A change of a user's states is applied by subtracting the
//! earlier contribution and adding the later one, so a state that arrives late goes to its own day and
//! corrects the days after it.

use std::{
    collections::BTreeMap,
    ops::{AddAssign, Neg},
};

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use super::{
    MovementKind, RevenueBasis, RevenueState, RevenueStatus,
    episodes::{self, OutcomeKind},
    movements::{self, Level, Levels},
};
use crate::{BillingCycle, Currency, PlanId, SubscriptionId};

/// A plan and a billing cycle.
pub type Segment = (PlanId, BillingCycle);

/// What a movement belongs to. Without a segment: all plans and billing cycles together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MovementKey {
    /// The day, in UTC.
    pub day: Date,
    /// The currency.
    pub currency: Currency,
    /// The plan and billing cycle.
    pub segment: Option<Segment>,
    /// Why the revenue changed.
    pub kind: MovementKind,
}

/// The sums of movements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MovementSums {
    /// How many more users pay.
    pub users: i64,
    /// How many users had such a movement.
    pub changes: i64,
    /// How many more subscriptions are counted.
    pub subscriptions: i64,
    /// How much more is paid per year, in minor units.
    pub annual_value: i128,
}

/// What subscriptions with a status belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatusKey {
    /// The day, in UTC.
    pub day: Date,
    /// The currency.
    pub currency: Currency,
    /// The plan and billing cycle.
    pub segment: Option<Segment>,
    /// The status at the end of the day.
    pub status: RevenueStatus,
    /// Whether access is withheld.
    pub suspended: bool,
    /// What the price means.
    pub basis: RevenueBasis,
}

/// A number of subscriptions and their annual value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubscriptionSums {
    /// How many subscriptions.
    pub subscriptions: i64,
    /// Their annual value, in minor units.
    pub annual_value: i128,
}

/// What a cohort's month belongs to. Months are their first day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CohortKey {
    /// The month in which the users first paid.
    pub cohort: Date,
    /// The month that the sums are of.
    pub month: Date,
    /// The currency.
    pub currency: Currency,
}

/// The sums of a cohort, as changes from the month before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CohortSums {
    /// How many users the cohort has.
    pub joined: i64,
    /// How many more of them pay at the end of the month.
    pub users: i64,
    /// How much more they pay per year, in minor units.
    pub annual_value: i128,
}

/// What the outcome of a trial or of a late payment belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutcomeKey {
    /// The day of the outcome, in UTC.
    pub day: Date,
    /// The month in which the trial or the delay began.
    pub started_month: Date,
    /// The currency.
    pub currency: Currency,
    /// The plan and billing cycle at the start.
    pub segment: Option<Segment>,
    /// What happened.
    pub kind: OutcomeKind,
}

/// Sums that can be added and subtracted.
pub trait Sums: Copy + Default + PartialEq + AddAssign + Neg<Output = Self> {}

impl<T: Copy + Default + PartialEq + AddAssign + Neg<Output = Self>> Sums for T {}

macro_rules! sums {
    ($($name:ident { $($field:ident),+ })+) => {$(
        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)+
            }
        }

        impl Neg for $name {
            type Output = Self;

            fn neg(self) -> Self {
                Self { $($field: -self.$field),+ }
            }
        }
    )+};
}

sums! {
    MovementSums { users, changes, subscriptions, annual_value }
    SubscriptionSums { subscriptions, annual_value }
    CohortSums { joined, users, annual_value }
}

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
                let level = Level {
                    subscriptions: sign,
                    value: i128::from(sign) * state.annual_value,
                };
                let segment = (state.plan, state.billing_cycle);
                sums.entry(segment).or_default().add(level);
            }
        }
    }
    sums.retain(|_, level| *level != Level::default());
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
