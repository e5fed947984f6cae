//! A payment as we return it and as its events carry it.

use jiff::Timestamp;
use perennial_domain::{ExternalId, Money, Payment, PaymentId, PaymentStatus, SubscriptionId};
use serde::Serialize;
use utoipa::{ToSchema, openapi::schema::Object};

use crate::http::{
    answer::{exact_number, optional_number, shown},
    schema::{amount_out, or_null, words},
};

/// What a payment's answer carries beyond what can be said of it: a caller may send it back.
pub const READ_ONLY: &[&str] = &["id", "created_at", "updated_at"];

/// A payment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Payment, example = json!({
    "id": "pay_0192f0c1a2b37c4d8e5f60718293a4b5",
    "subscription_id": "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
    "amount": 19.99,
    "currency": "USD",
    "external_payment_id": "pi_42",
    "status": "completed",
    "refunded_amount": 0.00,
    "created_at": "2026-11-15T09:30:00Z",
    "updated_at": "2026-11-15T09:30:00Z"
}))]
pub struct PaymentView {
    /// The payment's identifier.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = String, example = "pay_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: PaymentId,
    /// What it is for.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = String, example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5")]
    subscription_id: SubscriptionId,
    #[serde(serialize_with = "exact_number")]
    #[schema(schema_with = amount)]
    amount: Money,
    /// The currency, ISO 4217.
    #[schema(example = "USD")]
    currency: &'static str,
    /// What the payment provider calls it.
    #[schema(required, example = "pi_42")]
    external_payment_id: Option<String>,
    #[schema(schema_with = status)]
    status: &'static str,
    #[serde(serialize_with = "optional_number")]
    #[schema(required, schema_with = refunded_amount)]
    refunded_amount: Option<Money>,
    /// When it was recorded.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00Z")]
    created_at: Timestamp,
    /// When it was last changed.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00Z")]
    updated_at: Timestamp,
}

fn amount() -> Object {
    amount_out("How much, at the currency's own decimals.")
}

fn refunded_amount() -> Object {
    or_null(amount_out(
        "How much of it was given back; null if some was and nobody said how much.",
    ))
}

fn status() -> Object {
    words(
        "Where it stands.",
        &PaymentStatus::ALL.map(PaymentStatus::as_str),
    )
}

impl From<&Payment> for PaymentView {
    fn from(payment: &Payment) -> Self {
        Self {
            id: payment.id,
            subscription_id: payment.subscription,
            amount: payment.amount,
            currency: payment.amount.currency().code(),
            external_payment_id: payment.external_id.as_ref().map(ExternalId::to_string),
            status: payment.status.as_str(),
            refunded_amount: payment.refunded,
            created_at: payment.created_at,
            updated_at: payment.updated_at,
        }
    }
}
