//! The keys and values of sums: movements, subscriptions by status, cohorts and outcomes.

use std::ops::{AddAssign, Neg};

use jiff::civil::Date;

use super::{MovementKind, RevenueBasis, RevenueStatus, episodes::OutcomeKind};
use crate::{BillingCycle, Currency, PlanId};

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
