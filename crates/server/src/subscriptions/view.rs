//! A subscription as we return it and as its events carry it.

use jiff::Timestamp;
use perennial_domain::{
    BillingCycle, ExternalId, Money, PlanId, Status, Subscription, SubscriptionId, UserId,
};
use serde::Serialize;
use utoipa::{ToSchema, openapi::schema::Object};

use crate::http::{
    answer::{optional_number, shown, shown_or_null},
    schema::{amount_out, or_null, words},
};

/// What a subscription's answer carries beyond what can be said of it: a caller may send it back.
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
    /// The subscription's identifier.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = String, example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: SubscriptionId,
    /// Who has it.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = String, example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5")]
    user_id: UserId,
    /// The plan.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = String, example = "plan_0192f0c1a2b37c4d8e5f60718293a4b5")]
    subscription_plan_id: PlanId,
    /// What the payment provider calls it, if one runs it.
    #[schema(required, example = json!(null))]
    external_subscription_id: Option<String>,
    #[schema(schema_with = billing_cycle)]
    billing_cycle: &'static str,
    #[schema(schema_with = status)]
    status: &'static str,
    /// Whether its user has access now: it has begun and not ended, its status gives access, and it is not suspended.
    #[schema(example = true)]
    is_active: bool,
    /// When it is paid for next.
    #[serde(serialize_with = "shown_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = "2026-12-15T09:30:00Z")]
    renews_at: Option<Timestamp>,
    /// When it begins.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00Z")]
    starts_at: Timestamp,
    /// When it ends.
    #[serde(serialize_with = "shown_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    ends_at: Option<Timestamp>,
    #[serde(serialize_with = "optional_number")]
    #[schema(required, schema_with = price)]
    price: Option<Money>,
    /// The currency of the price, ISO 4217; null with it.
    #[schema(required, example = "USD")]
    currency: Option<&'static str>,
    /// When it was made.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00Z")]
    created_at: Timestamp,
    /// When it was last changed.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00Z")]
    updated_at: Timestamp,
}

fn price() -> Object {
    or_null(amount_out(
        "What one billing cycle costs: the plan's price when it was taken. Null if it is paid for in another cycle than \
         the plan's.",
    ))
}

fn billing_cycle() -> Object {
    words(
        "How often it is paid for.",
        &BillingCycle::ALL.map(BillingCycle::as_str),
    )
}

fn status() -> Object {
    words(
        "Where it stands; `expired` from the very instant of `ends_at`.",
        &Status::ALL.map(Status::as_str),
    )
}

impl SubscriptionView {
    /// What it looks like at `now`, or, if an instance whose clock is ahead has changed it, when it was changed.
    pub fn at(subscription: &Subscription, now: Timestamp) -> Self {
        let now = now.max(subscription.updated_at);
        let settled = subscription.settled(now);
        let price = settled.price();
        Self {
            id: settled.id,
            user_id: settled.user,
            subscription_plan_id: settled.terms.plan,
            external_subscription_id: settled.external_id.as_ref().map(ExternalId::to_string),
            billing_cycle: settled.billing_cycle.as_str(),
            status: settled.status.as_str(),
            is_active: settled.has_access(now),
            renews_at: settled.renews_at,
            starts_at: settled.starts_at,
            ends_at: settled.ends_at,
            price,
            currency: price.map(|price| price.currency().code()),
            created_at: settled.created_at,
            updated_at: settled.updated_at,
        }
    }
}

/// The same, for a page.
impl From<&(Subscription, Timestamp)> for SubscriptionView {
    fn from((subscription, now): &(Subscription, Timestamp)) -> Self {
        Self::at(subscription, *now)
    }
}
