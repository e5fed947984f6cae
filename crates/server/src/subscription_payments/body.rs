//! Request fields of `POST /subscription-payments` and `PUT /subscription-payments/{payment_id}`:
//! their schema and parsing.

use perennial_domain::{Currency, Money, NewPayment, Payment, PaymentChanges, PaymentId};

use super::view::COMPUTED;
use crate::http::{
    json::{BodyFields, decimal, text, timestamp},
    metadata_field,
    problem::Problem,
    request_schema::{RequestField, request_body},
    schema::{self, named},
};

const FIELDS: &[RequestField] = &[
    RequestField::required("subscription_id", || {
        named::SUBSCRIPTION_ID
            .reference("The subscription it pays for.")
            .into()
    }),
    RequestField::required("amount", || {
        let description = "The amount. Must not have more decimals than the currency.";
        named::AMOUNT.reference(description).into()
    }),
    RequestField::required("currency", || {
        named::CURRENCY_CODE
            .reference("ISO 4217 code; case-insensitive.")
            .into()
    })
    .update_note(
        "A change keeps the number, which must not have more decimals than the new currency.",
    ),
    RequestField::nullable("external_payment_id", || {
        let description = "The payment provider's id of the payment. Must be unique within the tenant. Cannot be a card \
                           number.";
        named::EXTERNAL_ID.reference(description).into()
    }),
    RequestField::with_default("status", || {
        named::PAYMENT_STATUS_INPUT.reference("The status.").into()
    })
    .create_note("Default: `pending`."),
    RequestField::nullable("refunded_amount", || {
        let description = "The refunded amount. Only allowed with the status `partially_refunded`; must be more than 0 \
                           and less than the amount. In managed billing, that status requires it.";
        named::AMOUNT.reference(description).into()
    }),
    RequestField::nullable("paid_at", || {
        let description = "When the payer paid, for example in imports. Must not be in the future. It has no effect on \
                           the subscription. If it is null, the service sets it when the payment settles.";
        named::TIMESTAMP.reference(description).into()
    }),
    RequestField::nullable("failure_reason", || {
        let description = "Why the payment failed: a single line.";
        schema::single_line(description, 255, "insufficient_funds").into()
    }),
    metadata_field::FIELD,
    RequestField::generated("id", || {
        named::PAYMENT_ID
            .reference("The payment's id. Cannot change.")
            .into()
    }),
    RequestField::generated("created_at", || {
        named::TIMESTAMP
            .reference("Creation time. Cannot change.")
            .into()
    }),
];

request_body!(
    CreatePayment,
    create_schema(FIELDS, COMPUTED),
    "The payment to create.",
    {
        "subscription_id": "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
        "amount": 19.99,
        "currency": "USD",
        "status": "completed"
    }
);

request_body!(
    UpdatePayment,
    update_schema(FIELDS, COMPUTED),
    "The fields to change; others stay. Null clears a nullable field. A record that GET returned can be sent back.",
    {"status": "completed"}
);

/// Parses the body of a create request, or returns all field errors.
pub fn parse_create(mut fields: BodyFields) -> Result<NewPayment, Problem> {
    fields.read_only(COMPUTED);
    fields.read_only(&["id", "created_at"]);
    let subscription = fields.required("subscription_id", text);
    let currency: Option<Currency> = fields.required("currency", text);
    // Without a valid currency, still check that the amounts are numbers.
    let money = |raw: &_| match currency {
        Some(currency) => Ok(Some(Money::from_decimal(&decimal(raw)?, currency)?)),
        None => decimal(raw).map(|_| None),
    };
    let amount = fields.required("amount", money);
    let external_id = fields.optional("external_payment_id", text);
    let status = fields.optional("status", text);
    let refunded = fields.optional("refunded_amount", money);
    let paid_at = fields.optional("paid_at", timestamp);
    let failure_reason = fields.optional("failure_reason", text);
    let metadata = metadata_field::from_create(&mut fields);
    fields.finish(|| {
        Some(NewPayment {
            subscription: subscription?,
            amount: amount??,
            external_id: external_id?,
            status: status?,
            refunded: refunded?.flatten(),
            paid_at: paid_at?,
            failure_reason: failure_reason?,
            metadata: metadata?,
        })
    })
}

/// Parses the body of an update request, or returns all field errors.
pub(super) fn parse_update(
    mut fields: BodyFields,
    current: &Payment,
) -> Result<PaymentChanges, Problem> {
    fields.read_only(COMPUTED);
    fields.immutable::<PaymentId>("id", text, &current.id);
    fields.immutable("created_at", timestamp, &current.created_at);
    let subscription = fields.if_present("subscription_id", text);
    let amount = fields.if_present("amount", decimal);
    let currency = fields.if_present("currency", text);
    let external_id = fields.if_present_nullable("external_payment_id", text);
    let status = fields.if_present("status", text);
    let refunded = fields.if_present_nullable("refunded_amount", decimal);
    let paid_at = fields.if_present_nullable("paid_at", timestamp);
    let failure_reason = fields.if_present_nullable("failure_reason", text);
    let metadata = metadata_field::from_update(&mut fields, &current.metadata);
    fields.finish(|| {
        Some(PaymentChanges {
            subscription: subscription?,
            amount: amount?,
            currency: currency?,
            external_id: external_id?,
            status: status?,
            refunded: refunded?,
            paid_at: paid_at?,
            failure_reason: failure_reason?,
            metadata: Some(metadata?),
        })
    })
}
