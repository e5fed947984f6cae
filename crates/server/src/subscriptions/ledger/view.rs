//! The JSON representation of a ledger entry.

use jiff::Timestamp;
use perennial_domain::{Currency, LedgerEntry, LedgerEntryId, PaymentId, PlanId, SignedMoney};
use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::{Ref, schema::Object},
};

use super::table::StoredEntry;
use crate::http::{
    response::{display, display_or_null, money_number, timestamp, timestamp_or_null},
    schema::{named, signed_amount_output},
};

/// An entry of a subscription's ledger.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LedgerEntry, example = json!({
    "id": "led_0192f0c1a2b37c4d8e5f60718293a4b5",
    "at": "2026-11-15T09:30:00.000000Z",
    "type": "period",
    "amount": -19.99,
    "credit_after": 0.00,
    "currency": "USD",
    "payment_id": null,
    "period_starts_at": "2026-11-15T09:30:00.000000Z",
    "period_ends_at": "2026-12-15T09:30:00.000000Z",
    "subscription_plan_id": "plan_0192f0c1a2b37c4d8e5f60718293a4b5",
    "quantity": 1,
    "cause": "start",
    "actor": "cli_0192f0c1a2b37c4d8e5f60718293a4b5",
    "request_id": "req_0192f0c1a2b37c4d8e5f60718293a4b5"
}))]
pub struct LedgerEntryView {
    /// The entry's id; null in a preview.
    #[serde(serialize_with = "display_or_null")]
    #[schema(value_type = Option<String>, required, example = "led_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: Option<LedgerEntryId>,
    /// When it was posted.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    at: Timestamp,
    #[serde(rename = "type")]
    #[schema(schema_with = entry_type)]
    entry_type: &'static str,
    #[serde(serialize_with = "money_number")]
    #[schema(schema_with = amount)]
    amount: SignedMoney,
    #[serde(serialize_with = "money_number")]
    #[schema(schema_with = credit_after)]
    credit_after: SignedMoney,
    /// The currency (ISO 4217).
    #[schema(example = "USD")]
    currency: &'static str,
    /// The payment that it belongs to.
    #[serde(serialize_with = "display_or_null")]
    #[schema(value_type = Option<String>, required, example = "pay_0192f0c1a2b37c4d8e5f60718293a4b5")]
    payment_id: Option<PaymentId>,
    /// Start of the period that it covers or changes.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    period_starts_at: Option<Timestamp>,
    /// End of that period; null for a lifetime.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = "2026-12-15T09:30:00.000000Z")]
    period_ends_at: Option<Timestamp>,
    /// The plan at that time.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "plan_0192f0c1a2b37c4d8e5f60718293a4b5")]
    subscription_plan_id: PlanId,
    /// The quantity at that time.
    #[schema(example = 1)]
    quantity: i32,
    #[schema(schema_with = cause)]
    cause: &'static str,
    /// The client or the user who caused it; null if time did.
    #[schema(required, example = "cli_0192f0c1a2b37c4d8e5f60718293a4b5")]
    actor: Option<String>,
    /// The request that caused it; null if time did.
    #[schema(required, example = "req_0192f0c1a2b37c4d8e5f60718293a4b5")]
    request_id: Option<String>,
}

fn entry_type() -> Ref {
    named::LEDGER_ENTRY_TYPE.reference(
        "The type: `payment` and `waiver` add to the credit, `refund` and `period` take from it, `change` does either, \
         `extension` covers time without charge.",
    )
}

fn cause() -> Ref {
    named::LEDGER_ENTRY_CAUSE.reference("Why the entry was posted.")
}

fn amount() -> Object {
    signed_amount_output("Added to the credit; negative if taken from it.")
}

fn credit_after() -> Object {
    signed_amount_output("The credit after this entry.")
}

impl LedgerEntryView {
    /// Returns the representation of an entry that was not posted.
    pub fn preview(entry: &LedgerEntry, currency: Currency) -> Self {
        let amount = |minor_units| SignedMoney {
            minor_units,
            currency,
        };
        Self {
            id: None,
            at: entry.at,
            entry_type: entry.entry_type.as_str(),
            amount: amount(entry.amount),
            credit_after: amount(entry.credit_after),
            currency: currency.code(),
            payment_id: entry.payment,
            period_starts_at: entry.period.map(|(start, _)| start),
            period_ends_at: entry.period.and_then(|(_, end)| end),
            subscription_plan_id: entry.plan,
            quantity: entry.quantity.get(),
            cause: entry.cause.as_str(),
            actor: None,
            request_id: None,
        }
    }
}

impl From<&StoredEntry> for LedgerEntryView {
    fn from(stored: &StoredEntry) -> Self {
        let user = stored.user.map(|user| user.to_string());
        let client = stored.client.map(|client| client.to_string());
        Self {
            id: Some(stored.id),
            actor: user.or(client),
            request_id: stored.request_id.clone(),
            ..Self::preview(&stored.entry, stored.currency)
        }
    }
}
