//! The JSON representation of a subscription, in responses and events.

use jiff::Timestamp;
use perennial_domain::{
    ExternalId, Metadata, Money, PlanId, SignedMoney, Slug, Subscription, SubscriptionId, UserId,
};
use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::{Ref, schema::Object},
};

use crate::http::{
    csv_list::CsvRecord,
    metadata_field,
    response::{display, money_number_or_null, timestamp, timestamp_or_null},
    schema::{amount_output, named, nullable, signed_amount_output},
};

/// Computed fields of responses, which requests may contain. They are ignored, because time alone may
/// have changed them since the client read them.
pub const COMPUTED: &[&str] = &[
    "updated_at",
    "lifecycle",
    "paid_until",
    "credit",
    "amount_due",
    "current_period_starts_at",
    "current_period_ends_at",
    "suspended",
];

/// A subscription.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Subscription, example = json!({
    "id": "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
    "user_id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
    "external_user_id": "customer-1042",
    "subscription_plan_id": "plan_0192f0c1a2b37c4d8e5f60718293a4b5",
    "subscription_plan_slug": "pro",
    "external_subscription_id": null,
    "billing_cycle": "monthly",
    "quantity": 1,
    "status": "active",
    "is_active": true,
    "suspended": false,
    "lifecycle": "managed",
    "renews_at": "2026-12-15T09:30:00.000000Z",
    "starts_at": "2026-11-15T09:30:00.000000Z",
    "ends_at": null,
    "current_period_starts_at": "2026-11-15T09:30:00.000000Z",
    "current_period_ends_at": "2026-12-15T09:30:00.000000Z",
    "free_until": null,
    "paid_until": "2026-12-15T09:30:00.000000Z",
    "credit": 0.00,
    "amount_due": 0.00,
    "price": 19.99,
    "currency": "USD",
    "metadata": {"order": "A-1042"},
    "created_at": "2026-11-15T09:30:00.000000Z",
    "updated_at": "2026-11-15T09:30:00.000000Z"
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
    /// The subscriber's id in your system, if the user has one.
    #[schema(required, example = "customer-1042")]
    external_user_id: Option<String>,
    /// The plan.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "plan_0192f0c1a2b37c4d8e5f60718293a4b5")]
    subscription_plan_id: PlanId,
    /// The plan's slug.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "pro")]
    subscription_plan_slug: Slug,
    /// The payment provider's id, if a provider manages the subscription.
    #[schema(required, example = json!(null))]
    external_subscription_id: Option<String>,
    #[schema(schema_with = billing_cycle)]
    billing_cycle: &'static str,
    /// How many units of the plan, such as seats.
    #[schema(example = 1, minimum = 1, maximum = 100_000)]
    quantity: i32,
    #[schema(schema_with = status)]
    status: &'static str,
    /// Whether the user has access now: the status gives access, `starts_at` has passed, `ends_at`
    /// has not, and the subscription is not suspended.
    #[schema(example = true)]
    is_active: bool,
    /// Whether access is withheld regardless of the status; set by `is_active: false`.
    #[schema(example = false)]
    suspended: bool,
    #[schema(schema_with = lifecycle)]
    lifecycle: &'static str,
    /// The next renewal. In managed billing, the end of the covered time: an unpaid period starts here.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = "2026-12-15T09:30:00.000000Z")]
    renews_at: Option<Timestamp>,
    /// Start of access.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    starts_at: Timestamp,
    /// End of access.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    ends_at: Option<Timestamp>,
    /// Managed billing: start of the running period, whether paid, free or unpaid.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    current_period_starts_at: Option<Timestamp>,
    /// Managed billing: end of the running period.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = "2026-12-15T09:30:00.000000Z")]
    current_period_ends_at: Option<Timestamp>,
    /// Managed billing: until when free time was given last.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    free_until: Option<Timestamp>,
    /// Managed billing: `renews_at` plus each whole period that the credit pays at the current price. Null
    /// while pending, for free subscriptions and for paid lifetimes.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = "2026-12-15T09:30:00.000000Z")]
    paid_until: Option<Timestamp>,
    #[serde(serialize_with = "money_number_or_null")]
    #[schema(required, schema_with = credit)]
    credit: Option<SignedMoney>,
    #[serde(serialize_with = "money_number_or_null")]
    #[schema(required, schema_with = amount_due)]
    amount_due: Option<SignedMoney>,
    #[serde(serialize_with = "money_number_or_null")]
    #[schema(required, schema_with = price)]
    price: Option<Money>,
    /// The currency of the price (ISO 4217); null if the price is.
    #[schema(required, example = "USD")]
    currency: Option<&'static str>,
    #[serde(serialize_with = "metadata_field::serialize")]
    #[schema(schema_with = metadata_field::response_schema)]
    metadata: Metadata,
    /// Creation time.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    created_at: Timestamp,
    /// Time of the last change.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    updated_at: Timestamp,
}

fn price() -> Object {
    nullable(amount_output(
        "Price of one unit for one billing cycle: the plan's price when the subscription was created or switched to it, \
         or a price that was set. Null if the billing cycle differs from the plan's and no price was set.",
    ))
}

fn credit() -> Object {
    nullable(signed_amount_output(
        "Managed billing: money received and not used. Negative only while a payment is disputed.",
    ))
}

fn amount_due() -> Object {
    nullable(amount_output("Managed billing: to pay now to be active."))
}

fn lifecycle() -> Ref {
    named::LIFECYCLE.reference(
        "What changes the subscription over time: the client's requests (`recorded`), this service (`managed`), or the \
         payment provider of `external_subscription_id` (`provider`).",
    )
}

fn billing_cycle() -> Ref {
    named::BILLING_CYCLE.reference("How often the subscription renews.")
}

fn status() -> Ref {
    named::SUBSCRIPTION_STATUS.reference("The current status; `expired` from `ends_at` on.")
}

impl CsvRecord for SubscriptionView {
    const COLUMNS: &'static [&'static str] = &[
        "id",
        "user_id",
        "external_user_id",
        "subscription_plan_id",
        "subscription_plan_slug",
        "external_subscription_id",
        "billing_cycle",
        "quantity",
        "status",
        "is_active",
        "suspended",
        "lifecycle",
        "renews_at",
        "starts_at",
        "ends_at",
        "current_period_starts_at",
        "current_period_ends_at",
        "free_until",
        "paid_until",
        "credit",
        "amount_due",
        "price",
        "currency",
        "metadata",
        "created_at",
        "updated_at",
    ];
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
        let currency = current.plan.price.currency();
        let billing = current.billing_summary(now);
        let amount = |minor_units| SignedMoney {
            minor_units,
            currency,
        };
        Self {
            id: current.id,
            user_id: current.user,
            external_user_id: current.external_user_id.as_ref().map(ExternalId::to_string),
            subscription_plan_id: current.plan.id,
            subscription_plan_slug: current.plan.slug,
            external_subscription_id: current.external_id.as_ref().map(ExternalId::to_string),
            billing_cycle: current.billing_cycle.as_str(),
            quantity: current.quantity.get(),
            status: current.status.as_str(),
            is_active: current.has_access(now),
            suspended: current.suspended,
            lifecycle: current.lifecycle_kind().as_str(),
            renews_at: current.renews_at,
            starts_at: current.starts_at,
            ends_at: current.ends_at,
            current_period_starts_at: billing.and_then(|billing| billing.period_starts_at),
            current_period_ends_at: billing.and_then(|billing| billing.period_ends_at),
            free_until: current.free_until.filter(|_| billing.is_some()),
            paid_until: billing.and_then(|billing| billing.paid_until),
            credit: billing.map(|billing| amount(billing.credit)),
            amount_due: billing.map(|billing| amount(billing.amount_due)),
            price,
            currency: price.map(|price| price.currency().code()),
            metadata: current.metadata.clone(),
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
