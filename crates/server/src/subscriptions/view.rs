//! The JSON representation of a subscription, in responses and events.

use jiff::Timestamp;
use perennial_domain::{
    BillingCycle, ExternalId, Money, PlanId, Subscription, SubscriptionId, SubscriptionStatus,
    UserId,
};
use serde::Serialize;
use utoipa::{ToSchema, openapi::schema::Object};

use crate::http::{
    response::{display, display_or_null, money_number_or_null},
    schema::{amount_output, nullable, string_enum},
};

/// Fields of responses that requests may contain but not change.
pub const READ_ONLY: &[&str] = &["id", "price", "currency", "created_at", "updated_at"];

/// A subscription.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Subscription, example = json!({
    "id": "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
    "user_id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
    "subscription_plan_id": "plan_0192f0c1a2b37c4d8e5f60718293a4b5",
    "external_subscription_id": null,
    "billing_cycle": "monthly",
    "status": "active",
    "is_active": true,
    "renews_at": "2026-12-15T09:30:00Z",
    "starts_at": "2026-11-15T09:30:00Z",
    "ends_at": null,
    "price": 19.99,
    "currency": "USD",
    "created_at": "2026-11-15T09:30:00Z",
    "updated_at": "2026-11-15T09:30:00Z"
}))]
pub struct SubscriptionView {
    /// The subscription's id.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: SubscriptionId,
    /// The subscriber.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5")]
    user_id: UserId,
    /// The plan.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "plan_0192f0c1a2b37c4d8e5f60718293a4b5")]
    subscription_plan_id: PlanId,
    /// The payment provider's id, if a provider manages the subscription.
    #[schema(required, example = json!(null))]
    external_subscription_id: Option<String>,
    #[schema(schema_with = billing_cycle)]
    billing_cycle: &'static str,
    #[schema(schema_with = status)]
    status: &'static str,
    /// Whether the user has access now: the status gives access, `starts_at` has passed, `ends_at`
    /// has not, and the subscription is not suspended.
    #[schema(example = true)]
    is_active: bool,
    /// The next renewal.
    #[serde(serialize_with = "display_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = "2026-12-15T09:30:00Z")]
    renews_at: Option<Timestamp>,
    /// Start of access.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00Z")]
    starts_at: Timestamp,
    /// End of access.
    #[serde(serialize_with = "display_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    ends_at: Option<Timestamp>,
    #[serde(serialize_with = "money_number_or_null")]
    #[schema(required, schema_with = price)]
    price: Option<Money>,
    /// The currency of the price (ISO 4217); null if the price is.
    #[schema(required, example = "USD")]
    currency: Option<&'static str>,
    /// Creation time.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00Z")]
    created_at: Timestamp,
    /// Time of the last change.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00Z")]
    updated_at: Timestamp,
}

fn price() -> Object {
    nullable(amount_output(
        "Price of one billing cycle: the plan's price when the subscription was created or switched to it. Null if the \
         billing cycle differs from the plan's.",
    ))
}

fn billing_cycle() -> Object {
    string_enum(
        "How often the subscription renews.",
        &BillingCycle::ALL.map(BillingCycle::as_str),
    )
}

fn status() -> Object {
    string_enum(
        "The current status; `expired` from `ends_at` on.",
        &SubscriptionStatus::ALL.map(SubscriptionStatus::as_str),
    )
}

impl SubscriptionView {
    /// Returns the view of a deleted subscription, which gives no access regardless of its status.
    #[must_use]
    pub fn without_access(self) -> Self {
        let is_active = false;
        Self { is_active, ..self }
    }

    /// Returns the representation at `now`, or at the last change if that was made by an instance
    /// whose clock is ahead.
    pub fn at(subscription: &Subscription, now: Timestamp) -> Self {
        let now = now.max(subscription.updated_at);
        let current = subscription.as_of(now);
        let price = current.price();
        Self {
            id: current.id,
            user_id: current.user,
            subscription_plan_id: current.plan.id,
            external_subscription_id: current.external_id.as_ref().map(ExternalId::to_string),
            billing_cycle: current.billing_cycle.as_str(),
            status: current.status.as_str(),
            is_active: current.has_access(now),
            renews_at: current.renews_at,
            starts_at: current.starts_at,
            ends_at: current.ends_at,
            price,
            currency: price.map(|price| price.currency().code()),
            created_at: current.created_at,
            updated_at: current.updated_at,
        }
    }
}

impl From<&(Subscription, Timestamp)> for SubscriptionView {
    fn from((subscription, now): &(Subscription, Timestamp)) -> Self {
        Self::at(subscription, *now)
    }
}
