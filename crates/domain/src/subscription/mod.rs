//! Subscriptions: a user's plan over time.
//!
//! Access at an instant depends on the [status](SubscriptionStatus), on the dates (`starts_at` has
//! passed, `ends_at` has not) and on the `suspended` flag. The flag is separate from the status, so
//! lifting a suspension restores the status. Expiry follows from `ends_at`; the stored status may
//! lag, and [`Subscription::as_of`] corrects it.
//!
//! This file defines the types and copies fields between them. The rules are in `create.rs` and
//! `update.rs`; `lifecycle.rs` has the transitions that become due over time and the effect of
//! payments.

use jiff::Timestamp;

use crate::{BillingCycle, FieldError, Money, PlanId, SingleLine, SubscriptionId, UserId};

mod create;
mod lifecycle;
mod subscription_status;
mod update;

pub use lifecycle::{DueTransition, Dunning, Lifecycle, PaymentEffect, Transition};
pub use subscription_status::SubscriptionStatus;
pub use update::SubscriptionUpdateError;

/// The payment provider's identifier of a subscription or a payment.
pub type ExternalId = SingleLine<255>;

/// A plan's current terms for new subscriptions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offer {
    /// The plan.
    pub plan: PlanId,
    /// Price of one billing cycle.
    pub price: Money,
    /// The plan's billing cycle.
    pub billing_cycle: BillingCycle,
    /// Whether new subscriptions are allowed.
    pub is_active: bool,
}

/// The plan's terms when the subscription was created or switched to it. Later price changes do not
/// affect it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanSnapshot {
    /// The plan.
    pub id: PlanId,
    /// Price of one of the plan's billing cycles.
    pub price: Money,
    /// The plan's billing cycle.
    pub billing_cycle: BillingCycle,
}

impl From<&Offer> for PlanSnapshot {
    fn from(offer: &Offer) -> Self {
        Self {
            id: offer.plan,
            price: offer.price,
            billing_cycle: offer.billing_cycle,
        }
    }
}

/// A subscription as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscription {
    /// The identifier.
    pub id: SubscriptionId,
    /// The subscriber.
    pub user: UserId,
    /// The plan's terms for this subscription.
    pub plan: PlanSnapshot,
    /// The payment provider's identifier, if a provider manages it.
    pub external_id: Option<ExternalId>,
    /// The subscription's billing cycle; it may differ from the plan's.
    pub billing_cycle: BillingCycle,
    /// The stored status; see [`Subscription::status_at`].
    pub status: SubscriptionStatus,
    /// Withholds access regardless of the status.
    pub suspended: bool,
    /// Start of access.
    pub starts_at: Timestamp,
    /// The next renewal; `None` for lifetime subscriptions.
    pub renews_at: Option<Timestamp>,
    /// End of access; always set when the status is cancelled or expired.
    pub ends_at: Option<Timestamp>,
    /// Renewal dates are whole billing cycles from here: the last explicit `renews_at`, or
    /// `starts_at`.
    pub anchor: Timestamp,
    /// Number of periods paid in advance, counted from `renews_at`.
    pub prepaid: u32,
    /// Set only while the status is past due or unpaid.
    pub past_due_since: Option<Timestamp>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// The fields of a subscription to create; `None` selects the default.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSubscription {
    /// The subscriber.
    pub user: UserId,
    /// The payment provider's identifier.
    pub external_id: Option<ExternalId>,
    /// Default: the plan's.
    pub billing_cycle: Option<BillingCycle>,
    /// Default: active.
    pub status: Option<SubscriptionStatus>,
    /// `false` creates it suspended; `true` requires that it gives access.
    pub is_active: Option<bool>,
    /// Default: now, or `ends_at` or `renews_at` if earlier.
    pub starts_at: Option<Timestamp>,
    /// Default: one billing cycle after `starts_at`.
    pub renews_at: Option<Timestamp>,
    /// Default: no end.
    pub ends_at: Option<Timestamp>,
}

impl NewSubscription {
    /// Creates a subscription of `user` with defaults for all other fields.
    pub fn new(user: UserId) -> Self {
        Self {
            user,
            external_id: None,
            billing_cycle: None,
            status: None,
            is_active: None,
            starts_at: None,
            renews_at: None,
            ends_at: None,
        }
    }

    /// Copies the fields and fills in defaults. `create.rs` applies the rules afterwards.
    fn into_subscription(self, offer: &Offer, id: SubscriptionId, now: Timestamp) -> Subscription {
        let billing_cycle = self.billing_cycle.unwrap_or(offer.billing_cycle);
        let dates = [self.ends_at, self.renews_at];
        let earliest = dates.into_iter().flatten().fold(now, Timestamp::min);
        let starts_at = self.starts_at.unwrap_or(earliest);
        Subscription {
            id,
            user: self.user,
            plan: offer.into(),
            external_id: self.external_id,
            billing_cycle,
            status: self.status.unwrap_or(SubscriptionStatus::Active),
            suspended: false,
            starts_at,
            renews_at: self
                .renews_at
                .or_else(|| billing_cycle.nth_renewal(starts_at, 1)),
            ends_at: self.ends_at,
            anchor: self.renews_at.unwrap_or(starts_at),
            prepaid: 0,
            past_due_since: None,
            created_at: now,
            updated_at: now,
        }
    }
}

/// Requested changes: `None` keeps a field, an inner `None` clears it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SubscriptionChanges {
    /// The offer of the requested plan, if it differs from the current plan.
    pub offer: Option<Offer>,
    /// The payment provider's identifier.
    pub external_id: Option<Option<ExternalId>>,
    /// The billing cycle.
    pub billing_cycle: Option<BillingCycle>,
    /// The status.
    pub status: Option<SubscriptionStatus>,
    /// `false` suspends, `true` lifts a suspension.
    pub is_active: Option<bool>,
    /// Start of access.
    pub starts_at: Option<Timestamp>,
    /// The next renewal.
    pub renews_at: Option<Option<Timestamp>>,
    /// End of access.
    pub ends_at: Option<Option<Timestamp>>,
}

impl SubscriptionChanges {
    /// Copies the fields that have no rules of their own. `update.rs` applies the other fields.
    fn copy_plain_fields(&self, next: &mut Subscription) {
        if let Some(external_id) = &self.external_id {
            next.external_id.clone_from(external_id);
        }
        // The anchor stays: paid periods keep their dates.
        next.starts_at = self.starts_at.unwrap_or(next.starts_at);
    }
}

impl Subscription {
    /// Returns the subscription at `now`: expired if `ends_at` has passed, even if that is not
    /// stored yet.
    #[must_use]
    pub fn as_of(&self, now: Timestamp) -> Self {
        let mut current = self.clone();
        if let Some(end) = self.ends_at.filter(|end| *end <= now)
            && self.status != SubscriptionStatus::Expired
        {
            current.status = SubscriptionStatus::Expired;
            current.past_due_since = None;
            current.updated_at = self.updated_at.max(end);
        }
        current
    }

    /// Returns the status at `now`.
    pub fn status_at(&self, now: Timestamp) -> SubscriptionStatus {
        match self.ends_at {
            Some(end) if end <= now => SubscriptionStatus::Expired,
            _ => self.status,
        }
    }

    /// Returns whether the user has access at `now`.
    pub fn has_access(&self, now: Timestamp) -> bool {
        self.starts_at <= now && !self.suspended && self.status_at(now).gives_access()
    }

    /// Returns the price of one billing cycle, or `None` if the cycle differs from the plan's.
    pub fn price(&self) -> Option<Money> {
        (self.billing_cycle == self.plan.billing_cycle).then_some(self.plan.price)
    }

    /// Expires the subscription at `now`. Returns `None` if it has already expired.
    pub fn expire(&self, now: Timestamp) -> Option<Self> {
        (self.status_at(now) != SubscriptionStatus::Expired).then(|| Self {
            status: SubscriptionStatus::Expired,
            ends_at: Some(now.max(self.starts_at)),
            past_due_since: None,
            updated_at: now,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests;
