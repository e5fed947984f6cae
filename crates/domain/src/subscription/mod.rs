//! Subscriptions: a user's plan over time.
//!
//! Access at an instant depends on the [status](SubscriptionStatus), on the dates (`starts_at` has
//! passed, `ends_at` has not) and on the `suspended` flag. The flag is separate from the status, so
//! lifting a suspension restores the status. Expiry follows from `ends_at`; the stored status may
//! lag, and [`Subscription::as_of`] corrects it.
//!
//! This file defines the types. `create.rs` and `update.rs` apply requests, `lifecycle.rs` what
//! becomes due over time. `recorded.rs` has the update rules for subscriptions that a client or a
//! payment provider reports on, and `billing` the rules for those that the service manages.
//! `self_service.rs` has what users can change themselves, and `follow_subscription.rs` how a record
//! follows a payment provider.

use jiff::Timestamp;

use crate::{
    BillingCycle, Decimal, FieldError, Metadata, Money, PlanId, SingleLine, Slug, SubscriptionId,
    UserId,
};

mod billing;
mod create;
mod follow_subscription;
mod lifecycle;
mod quantity;
mod recorded;
mod self_service;
mod subscription_status;
mod update;

pub use billing::{
    BillingChange, BillingPeriod, BillingSummary, EntryCause, EntryType, FreeTimeError,
    LedgerEntry, PaymentPosting, Preview, Trial,
};
pub use follow_subscription::FollowedSubscription;
pub use lifecycle::{DueTransition, Dunning, Lifecycle, LifecycleKind, Transition};
pub use quantity::Quantity;
pub use self_service::{Cancellation, SelfServiceError};
pub use subscription_status::SubscriptionStatus;
pub use update::{AppliedChange, SubscriptionUpdateError};

/// An identifier that another system has given: a payment provider's of a subscription or a payment, or
/// the client's of a user.
pub type ExternalId = SingleLine<255>;

/// A plan's current terms for new subscriptions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offer {
    /// The plan.
    pub plan: PlanId,
    /// The plan's name in URLs.
    pub slug: Slug,
    /// Price of one billing cycle.
    pub price: Money,
    /// The plan's billing cycle.
    pub billing_cycle: BillingCycle,
    /// Length of the free trial in days; 0 for none.
    pub trial_days: u16,
    /// Whether new subscriptions are allowed.
    pub is_active: bool,
}

/// The plan's terms when the subscription was created or switched to it. Later price changes do not
/// affect it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanSnapshot {
    /// The plan.
    pub id: PlanId,
    /// The plan's name in URLs, which never changes. Not stored with the subscription.
    pub slug: Slug,
    /// Price of one of the plan's billing cycles.
    pub price: Money,
    /// The plan's billing cycle.
    pub billing_cycle: BillingCycle,
}

impl From<&Offer> for PlanSnapshot {
    fn from(offer: &Offer) -> Self {
        Self {
            id: offer.plan,
            slug: offer.slug,
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
    /// The subscriber's identifier in the client's system. Not stored with the subscription.
    pub external_user_id: Option<ExternalId>,
    /// The plan's terms for this subscription.
    pub plan: PlanSnapshot,
    /// The payment provider's identifier, if a provider manages it.
    pub external_id: Option<ExternalId>,
    /// The subscription's billing cycle; it may differ from the plan's.
    pub billing_cycle: BillingCycle,
    /// A price of one billing cycle that replaces the plan's.
    pub custom_price: Option<Money>,
    /// How many units of the plan.
    pub quantity: Quantity,
    /// The stored status; see [`Subscription::status_at`].
    pub status: SubscriptionStatus,
    /// Withholds access regardless of the status.
    pub suspended: bool,
    /// Start of access.
    pub starts_at: Timestamp,
    /// The next renewal. `None` for a lifetime, and in managed billing while it is pending. In managed
    /// billing, the end of the covered time: a period that is due and not paid starts here.
    pub renews_at: Option<Timestamp>,
    /// End of access; always set when the status is cancelled or expired.
    pub ends_at: Option<Timestamp>,
    /// Renewal dates are whole billing cycles from here: the last explicit `renews_at`, or
    /// `starts_at`.
    pub anchor: Timestamp,
    /// Since when a payment is late. Set while the status is past due or unpaid; in managed billing
    /// also while a late subscription is paused.
    pub late_since: Option<Timestamp>,
    /// The trial, also after its end.
    pub trial: Option<Trial>,
    /// Money received and not used, in minor units. Negative only through a dispute.
    pub credit: i64,
    /// What free time forgave of the debt of disputes that are not decided, in minor units.
    pub waived_debt: i64,
    /// The last period that was charged, in managed billing.
    pub period: Option<BillingPeriod>,
    /// The last free time, in managed billing: alone, or after the period.
    pub free_time: Option<BillingPeriod>,
    /// Until when a client gave free time last.
    pub free_until: Option<Timestamp>,
    /// The start of managed mode since which the ledger is kept; `None` if it is not.
    pub managed_since: Option<Timestamp>,
    /// The tenant's setting. Not stored with the subscription.
    pub lifecycle: Lifecycle,
    /// Pairs that the client attached.
    pub metadata: Metadata,
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
    /// The identifier that the subscriber has in the client's system.
    pub external_user_id: Option<ExternalId>,
    /// The payment provider's identifier.
    pub external_id: Option<ExternalId>,
    /// Default: the plan's.
    pub billing_cycle: Option<BillingCycle>,
    /// Price of one billing cycle, in the plan's currency. Default: the plan's.
    pub price: Option<Decimal>,
    /// Default: 1.
    pub quantity: Option<Quantity>,
    /// Default: on trial if the plan has a trial; otherwise active. In managed billing, pending
    /// unless it is free.
    pub status: Option<SubscriptionStatus>,
    /// `false` creates it suspended, if it gives access.
    pub is_active: Option<bool>,
    /// Default: now, or `ends_at` or `renews_at` if earlier.
    pub starts_at: Option<Timestamp>,
    /// Default: one billing cycle after `starts_at`.
    pub renews_at: Option<Timestamp>,
    /// Default: no end.
    pub ends_at: Option<Timestamp>,
    /// Pairs to attach.
    pub metadata: Metadata,
}

impl NewSubscription {
    /// Creates a subscription of `user` with defaults for all other fields.
    pub fn new(user: UserId) -> Self {
        Self {
            user,
            external_user_id: None,
            external_id: None,
            billing_cycle: None,
            price: None,
            quantity: None,
            status: None,
            is_active: None,
            starts_at: None,
            renews_at: None,
            ends_at: None,
            metadata: Metadata::default(),
        }
    }

    /// Copies the fields and fills in defaults. `create.rs` applies the rules afterwards.
    fn to_subscription(&self, context: &CreateContext<'_>) -> Subscription {
        let CreateContext { offer, id, now, .. } = *context;
        let billing_cycle = self.billing_cycle.unwrap_or(offer.billing_cycle);
        let dates = [self.ends_at, self.renews_at];
        let earliest = dates.into_iter().flatten().fold(now, Timestamp::min);
        let starts_at = self.starts_at.unwrap_or(earliest);
        Subscription {
            id,
            user: self.user,
            external_user_id: self.external_user_id.clone(),
            plan: offer.into(),
            external_id: self.external_id.clone(),
            billing_cycle,
            custom_price: None,
            quantity: self.quantity.unwrap_or_default(),
            status: self.status.unwrap_or(SubscriptionStatus::Active),
            suspended: false,
            starts_at,
            renews_at: self
                .renews_at
                .or_else(|| billing_cycle.nth_renewal(starts_at, 1)),
            ends_at: self.ends_at,
            anchor: self.renews_at.unwrap_or(starts_at),
            late_since: None,
            trial: None,
            credit: 0,
            waived_debt: 0,
            period: None,
            free_time: None,
            free_until: None,
            managed_since: None,
            lifecycle: context.lifecycle,
            metadata: self.metadata.clone(),
            created_at: now,
            updated_at: now,
        }
    }
}

/// What creating a subscription depends on, besides the request.
#[derive(Debug, Clone, Copy)]
pub struct CreateContext<'a> {
    /// The plan's current terms.
    pub offer: &'a Offer,
    /// The tenant's setting.
    pub lifecycle: Lifecycle,
    /// Whether the user has had a trial of this plan, also with a deleted subscription.
    pub had_trial: bool,
    /// The new subscription's identifier.
    pub id: SubscriptionId,
    /// The time of creation.
    pub now: Timestamp,
}

/// Requested changes: `None` keeps a field, an inner `None` clears it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SubscriptionChanges {
    /// The current offer of the requested plan. Required for another plan, for a `price` of null and
    /// for the status on trial.
    pub offer: Option<Offer>,
    /// The payment provider's identifier.
    pub external_id: Option<Option<ExternalId>>,
    /// The billing cycle.
    pub billing_cycle: Option<BillingCycle>,
    /// Price of one billing cycle, in the plan's currency; an inner `None` takes the plan's current
    /// price.
    pub price: Option<Option<Decimal>>,
    /// The quantity.
    pub quantity: Option<Quantity>,
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
    /// The end of free time, in managed billing.
    pub free_until: Option<Option<Timestamp>>,
    /// Whether the user has had a trial of the requested plan.
    pub had_trial: bool,
    /// All pairs after the change.
    pub metadata: Option<Metadata>,
}

impl SubscriptionChanges {
    /// Copies the fields that have no rules of their own.
    fn copy_plain_fields(&self, next: &mut Subscription) {
        if let Some(external_id) = &self.external_id {
            next.external_id.clone_from(external_id);
        }
        if let Some(metadata) = &self.metadata {
            next.metadata.clone_from(metadata);
        }
    }

    /// Returns the changes without the fields that equal the subscription as shown at `now`.
    pub(super) fn differing_from(&self, shown: &Subscription, now: Timestamp) -> Self {
        let price = self.price.clone().filter(|price| {
            let currency = shown.plan.price.currency();
            match (price, shown.price()) {
                (Some(price), Some(current)) => {
                    Money::from_decimal(price, currency).ok() != Some(current)
                }
                (None, None) => false,
                _ => true,
            }
        });
        let gets_provider = matches!(self.external_id, Some(Some(_)));
        let is_managed = shown.dunning().is_some() && !gets_provider;
        // A client that sends the whole record states the next renewal, which the service computes itself. Its
        // active cannot pay what is late.
        let restates_active = is_managed
            && self.status == Some(SubscriptionStatus::Active)
            && self.renews_at.is_some()
            && shown.late_since.is_some();
        let status = self
            .status
            .filter(|status| *status != shown.status && !restates_active);
        // Outside managed billing, a future date that is sent again reopens an expired subscription.
        let reopens = status == Some(SubscriptionStatus::Active)
            && shown.status == SubscriptionStatus::Expired
            && shown.dunning().is_none();
        let plan_differs = |offer: &Offer| offer.plan != shown.plan.id;
        let needs_offer = price == Some(None) || status == Some(SubscriptionStatus::OnTrial);
        let offer = self
            .offer
            .filter(|offer| plan_differs(offer) || needs_offer);
        Self {
            offer,
            had_trial: self.had_trial && offer.is_some(),
            external_id: self
                .external_id
                .clone()
                .filter(|external_id| *external_id != shown.external_id),
            billing_cycle: self
                .billing_cycle
                .filter(|cycle| *cycle != shown.billing_cycle),
            price,
            quantity: self.quantity.filter(|quantity| *quantity != shown.quantity),
            status,
            is_active: self
                .is_active
                .filter(|is_active| *is_active != shown.has_access(now)),
            starts_at: self.starts_at.filter(|start| *start != shown.starts_at),
            renews_at: self
                .renews_at
                .filter(|renewal| *renewal != shown.renews_at || (reopens && *renewal > Some(now)))
                .filter(|_| !is_managed),
            ends_at: self.ends_at.filter(|end| *end != shown.ends_at),
            free_until: self.free_until.filter(|until| *until != shown.free_until),
            metadata: self
                .metadata
                .clone()
                .filter(|metadata| *metadata != shown.metadata),
        }
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
            current.late_since = None;
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

    /// Returns the price of one billing cycle, or `None` if the cycle differs from the plan's and no
    /// price was set.
    pub fn price(&self) -> Option<Money> {
        self.terms().price()
    }
}

#[cfg(test)]
pub(crate) mod random;
#[cfg(test)]
mod tests;
