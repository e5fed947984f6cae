//! Recurring revenue: what a subscription is worth per year, and how that changes.
//!
//! A [`RevenueState`] is what reports contain about a subscription at an instant. It changes only
//! when the subscription is changed or a transition becomes due, and when its start passes. So each
//! change yields the states after it ([`RevenueFacts::changes`]), and the list of these states is
//! all that reports need of a subscription's history. [`Contribution`] computes what one user adds to
//! the reports from such lists.
//!
//! Amounts are annual and in minor units. A year is a whole number of each billing cycle, so no amount
//! is rounded before it is shown.

use jiff::{SignedDuration, Timestamp};

use crate::{
    BillingCycle, Currency, Money, PlanId, Subscription, SubscriptionId, SubscriptionStatus, UserId,
};

mod contribution;
mod episodes;
mod movements;
mod payment_totals;
mod sums;

pub use contribution::{Contribution, RecordedState};
pub use episodes::OutcomeKind;
pub use movements::MovementKind;
pub use payment_totals::{DayPayments, PaymentTotalKind};
pub use sums::{
    CohortKey, CohortSums, MovementKey, MovementSums, OutcomeKey, Segment, StatusKey,
    SubscriptionSums,
};

/// A subscription that is older than this when it is created was sold elsewhere and is imported.
const IMPORT_AGE: SignedDuration = SignedDuration::from_hours(7 * 24);

string_enum! {
    /// The status of a subscription in reports.
    pub enum RevenueStatus: "a status" {
        /// It has not started yet.
        Scheduled = "scheduled",
        /// It waits for its first payment.
        Pending = "pending",
        /// In a free trial.
        OnTrial = "on_trial",
        /// Paid, or free.
        Active = "active",
        /// A payment is late; access continues.
        PastDue = "past_due",
        /// A payment is late; access has ended.
        Unpaid = "unpaid",
        /// On hold.
        Paused = "paused",
        /// It does not renew, but has not ended.
        Cancelled = "cancelled",
        /// It has ended.
        Expired = "expired",
        /// The record was deleted.
        Deleted = "deleted",
    }
}

impl From<SubscriptionStatus> for RevenueStatus {
    fn from(status: SubscriptionStatus) -> Self {
        match status {
            SubscriptionStatus::Pending => Self::Pending,
            SubscriptionStatus::OnTrial => Self::OnTrial,
            SubscriptionStatus::Active => Self::Active,
            SubscriptionStatus::PastDue => Self::PastDue,
            SubscriptionStatus::Unpaid => Self::Unpaid,
            SubscriptionStatus::Paused => Self::Paused,
            SubscriptionStatus::Cancelled => Self::Cancelled,
            SubscriptionStatus::Expired => Self::Expired,
        }
    }
}

impl RevenueStatus {
    /// Returns whether a subscription with this status and a price counts as recurring revenue.
    pub const fn is_counted(self) -> bool {
        match self {
            Self::Active | Self::PastDue | Self::Cancelled => true,
            Self::Scheduled
            | Self::Pending
            | Self::OnTrial
            | Self::Unpaid
            | Self::Paused
            | Self::Expired
            | Self::Deleted => false,
        }
    }
}

string_enum! {
    /// What a subscription's price means for recurring revenue.
    pub enum RevenueBasis: "a basis" {
        /// It is paid again and again.
        Recurring = "recurring",
        /// It is in its trial, or was cancelled in it.
        Trial = "trial",
        /// Its price is zero.
        Free = "free",
        /// It is paid once.
        Lifetime = "lifetime",
        /// Its billing cycle differs from the plan's and no price was set.
        UnknownPrice = "unknown_price",
    }
}

/// What reports contain about a subscription at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevenueState {
    /// The plan.
    pub plan: PlanId,
    /// The subscription's billing cycle.
    pub billing_cycle: BillingCycle,
    /// The currency of the price.
    pub currency: Currency,
    /// The status.
    pub status: RevenueStatus,
    /// Whether access is withheld.
    pub suspended: bool,
    /// What the price means.
    pub basis: RevenueBasis,
    /// Price × quantity of a year, in minor units. Zero unless the basis is recurring or trial.
    pub annual_value: i128,
}

impl RevenueState {
    /// Returns whether the subscription is part of recurring revenue.
    pub fn is_counted(&self) -> bool {
        self.basis == RevenueBasis::Recurring && self.status.is_counted()
    }

    /// Returns the annual value if it is part of recurring revenue, and otherwise zero.
    pub fn counted_value(&self) -> i128 {
        if self.is_counted() {
            self.annual_value
        } else {
            0
        }
    }
}

/// A state that a subscription has from an instant on, until another one replaces it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RevenueChange {
    /// From when on.
    pub at: Timestamp,
    /// The subscriber.
    pub user: UserId,
    /// The subscription.
    pub subscription: SubscriptionId,
    /// The state.
    pub state: RevenueState,
    /// Whether the subscription was created with this state and is imported.
    pub imported: bool,
}

/// Returns a month's part of an annual value, rounded half away from zero. Only for figures that are shown.
pub const fn monthly_value(annual_value: i128) -> i128 {
    let half = if annual_value < 0 { -6 } else { 6 };
    (annual_value + half) / 12
}

impl BillingCycle {
    /// Returns how many of these cycles a year has; `None` for a lifetime.
    pub const fn per_year(self) -> Option<i128> {
        Some(match self {
            Self::Daily => 365,
            Self::Weekly => 52,
            Self::Monthly => 12,
            Self::Quarterly => 4,
            Self::Semiannual => 2,
            Self::Yearly => 1,
            Self::Lifetime => return None,
        })
    }
}

/// The facts about a subscription that its states follow from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RevenueFacts {
    /// The subscription.
    pub subscription: SubscriptionId,
    /// The subscriber.
    pub user: UserId,
    /// The plan.
    pub plan: PlanId,
    /// The subscription's billing cycle.
    pub billing_cycle: BillingCycle,
    /// The currency of the price.
    pub currency: Currency,
    /// Price of one unit for one billing cycle, in minor units; `None` if it is unknown.
    pub price: Option<i64>,
    /// How many units.
    pub quantity: i32,
    /// The status, once the subscription has started.
    pub status: SubscriptionStatus,
    /// Whether access is withheld.
    pub suspended: bool,
    /// Start of access.
    pub starts_at: Timestamp,
    /// End of access.
    pub ends_at: Option<Timestamp>,
    /// End of the trial, if there was one.
    pub trial_ends_at: Option<Timestamp>,
    /// Creation time.
    pub created_at: Timestamp,
}

impl From<&Subscription> for RevenueFacts {
    fn from(subscription: &Subscription) -> Self {
        Self {
            subscription: subscription.id,
            user: subscription.user,
            plan: subscription.plan.id,
            billing_cycle: subscription.billing_cycle,
            currency: subscription.plan.price.currency(),
            price: subscription.price().map(Money::minor_units),
            quantity: subscription.quantity.get(),
            status: subscription.status,
            suspended: subscription.suspended,
            starts_at: subscription.starts_at,
            ends_at: subscription.ends_at,
            trial_ends_at: subscription.trial.map(|trial| trial.ends_at),
            created_at: subscription.created_at,
        }
    }
}

impl RevenueFacts {
    /// Returns the state from `starts_at` on.
    pub fn started_state(&self) -> RevenueState {
        let (basis, annual_value) = match (self.billing_cycle.per_year(), self.price) {
            (None, _) => (RevenueBasis::Lifetime, 0),
            (Some(_), None) => (RevenueBasis::UnknownPrice, 0),
            (Some(_), Some(0)) => (RevenueBasis::Free, 0),
            (Some(cycles), Some(price)) => {
                let basis = if self.is_only_trial() {
                    RevenueBasis::Trial
                } else {
                    RevenueBasis::Recurring
                };
                let amount = i128::from(price) * i128::from(self.quantity);
                (basis, amount * cycles)
            }
        };
        RevenueState {
            plan: self.plan,
            billing_cycle: self.billing_cycle,
            currency: self.currency,
            status: self.status.into(),
            suspended: self.suspended,
            basis,
            annual_value,
        }
    }

    /// Returns whether nothing but a trial was agreed: it runs, or it was cancelled before its end.
    fn is_only_trial(&self) -> bool {
        match (self.status, self.ends_at, self.trial_ends_at) {
            (SubscriptionStatus::OnTrial, ..) => true,
            (SubscriptionStatus::Cancelled, Some(end), Some(trial_end)) => end <= trial_end,
            _ => false,
        }
    }

    /// Returns the state at `at`, and the one from `starts_at` on if that is later.
    fn states(&self, at: Timestamp) -> (RevenueState, Option<(Timestamp, RevenueState)>) {
        let started = self.started_state();
        let waits = !matches!(
            self.status,
            SubscriptionStatus::Pending | SubscriptionStatus::Expired
        );
        if waits && self.starts_at > at {
            let scheduled = RevenueState {
                status: RevenueStatus::Scheduled,
                ..started
            };
            return (scheduled, Some((self.starts_at, started)));
        }
        (started, None)
    }

    /// Returns the states that a change from `before` at `at` leads to; none if they stay the same.
    /// `before` is `None` when the subscription is created.
    pub fn changes(&self, before: Option<&Self>, at: Timestamp) -> Vec<RevenueChange> {
        let (now, later) = self.states(at);
        if before.is_some_and(|before| before.states(at) == (now, later)) {
            return Vec::new();
        }
        let age = self.created_at.duration_since(self.starts_at);
        let imported = before.is_none() && age > IMPORT_AGE;
        let later = later.map(|(at, state)| self.change(at, state, imported));
        let now = self.change(at, now, imported);
        std::iter::once(now).chain(later).collect()
    }

    /// Returns the state after the subscription is deleted at `at`.
    pub fn deletion(&self, at: Timestamp) -> RevenueChange {
        let deleted = RevenueState {
            status: RevenueStatus::Deleted,
            ..self.started_state()
        };
        self.change(at, deleted, false)
    }

    fn change(&self, at: Timestamp, state: RevenueState, imported: bool) -> RevenueChange {
        RevenueChange {
            at,
            user: self.user,
            subscription: self.subscription,
            state,
            imported,
        }
    }
}

#[cfg(test)]
mod tests;
