//! The JSON representation of a payment, in responses and events.

use jiff::Timestamp;
use perennial_domain::{
    ExternalId, FailureReason, Metadata, Money, Payment, PaymentId, SubscriptionId,
};
use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::{Ref, schema::Object},
};

use crate::http::{
    csv_list::CsvRecord,
    metadata_field,
    response::{display, money_number, money_number_or_null, timestamp, timestamp_or_null},
    schema::{amount_output, named, nullable},
};

/// Computed fields of responses, which requests may contain. They are ignored.
pub const COMPUTED: &[&str] = &["period_starts_at", "period_ends_at", "updated_at"];

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
    "paid_at": "2026-11-15T09:30:00.000000Z",
    "failure_reason": null,
    "period_starts_at": "2026-11-15T09:30:00.000000Z",
    "period_ends_at": "2026-12-15T09:30:00.000000Z",
    "metadata": {"order": "A-1042"},
    "created_at": "2026-11-15T09:30:00.000000Z",
    "updated_at": "2026-11-15T09:30:00.000000Z"
}))]
pub struct PaymentView {
    /// The payment's id.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "pay_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: PaymentId,
    /// The subscription it pays for.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5")]
    subscription_id: SubscriptionId,
    #[serde(serialize_with = "money_number")]
    #[schema(schema_with = amount)]
    amount: Money,
    /// The currency (ISO 4217).
    #[schema(example = "USD")]
    currency: &'static str,
    /// The payment provider's id.
    #[schema(required, example = "pi_42")]
    external_payment_id: Option<String>,
    #[schema(schema_with = status)]
    status: &'static str,
    #[serde(serialize_with = "money_number_or_null")]
    #[schema(required, schema_with = refunded_amount)]
    refunded_amount: Option<Money>,
    /// When the payer paid; null until the payment settles, unless a client set it.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    paid_at: Option<Timestamp>,
    /// Why the payment failed.
    #[schema(required, example = json!(null))]
    failure_reason: Option<String>,
    /// Start of the time that this payment paid for when it completed: `paid_until` of the subscription
    /// before, or the start of its first period. Null if the payment stayed credit or the service did
    /// not manage the subscription. Refunds do not change it.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    period_starts_at: Option<Timestamp>,
    /// End of the time that this payment paid for: `paid_until` of the subscription afterwards. Null if
    /// `period_starts_at` is null, and for a lifetime.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = "2026-12-15T09:30:00.000000Z")]
    period_ends_at: Option<Timestamp>,
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

fn amount() -> Object {
    amount_output("The amount, with all decimals of the currency.")
}

fn refunded_amount() -> Object {
    nullable(amount_output(
        "The refunded amount; null if a part of unknown size was refunded.",
    ))
}

fn status() -> Ref {
    named::PAYMENT_STATUS.reference("The status.")
}

impl CsvRecord for PaymentView {
    const COLUMNS: &'static [&'static str] = &[
        "id",
        "subscription_id",
        "amount",
        "currency",
        "external_payment_id",
        "status",
        "refunded_amount",
        "paid_at",
        "failure_reason",
        "period_starts_at",
        "period_ends_at",
        "metadata",
        "created_at",
        "updated_at",
    ];
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
            paid_at: payment.paid_at,
            failure_reason: payment
                .failure_reason
                .as_ref()
                .map(FailureReason::to_string),
            period_starts_at: payment.period.map(|(start, _)| start),
            period_ends_at: payment.period.and_then(|(_, end)| end),
            metadata: payment.metadata.clone(),
            created_at: payment.created_at,
            updated_at: payment.updated_at,
        }
    }
}
