//! `POST /subscription-payments`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use perennial_domain::{Currency, Money, NewPayment, Payment};
use utoipa::ToSchema;

use super::{
    add, duplicate, shape,
    view::{PaymentView, READ_ONLY},
};
use crate::{
    app::App,
    callers::{Caller, PaymentsWrite},
    http::{
        idempotency::{Begun, Once},
        json::{Fields, decimal, text},
        problem::{AnyEndpoint, Problem, ProblemBody, WithBody},
    },
    subscriptions::{self, Change},
};

/// What is said of a payment when it is recorded.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreatePayment, example = json!({
    "subscription_id": "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
    "amount": 19.99,
    "currency": "USD",
    "status": "completed"
}))]
#[expect(dead_code, reason = "describes the body; `parse` reads it")]
pub struct CreatePayment {
    #[schema(schema_with = shape::subscription_id)]
    subscription_id: (),
    #[schema(schema_with = shape::amount)]
    amount: (),
    /// ISO 4217, in any case.
    #[schema(pattern = "^[A-Za-z]{3}$", example = "USD")]
    currency: String,
    #[schema(schema_with = shape::external_payment_id)]
    external_payment_id: Option<String>,
    /// Default: pending.
    #[schema(schema_with = shape::status_or_null)]
    status: Option<()>,
    #[schema(schema_with = shape::refunded_amount)]
    refunded_amount: Option<()>,
}

/// Record a payment
///
/// Required: `subscription_id`, `amount` and `currency`. A completed one makes a past due or unpaid subscription active at
/// once, unless a payment provider runs it (`external_subscription_id`).
#[utoipa::path(
    post,
    path = "/subscription-payments",
    tag = "Subscription payments",
    operation_id = "createPayment",
    params(("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$",
        example = "5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11",
        description = "Names this request: sent again with the same key within 24 hours, it gets the same answer \
                       (with `Idempotency-Replayed: true`) and is not done twice.")),
    request_body(content = CreatePayment, description = "What is said of the payment."),
    responses(
        (status = 201, description = "The payment as it now stands.", body = PaymentView,
            headers(("Location" = String, description = "The path of the payment."),
                ("ETag" = String, description = "What the payment looks like, for If-Match."),
                ("Idempotency-Replayed" = String, description = "`true` if this is the answer to an earlier request with the same key."))),
        (status = 409, description = "Another payment has this external id (`duplicate_external_id`), or a request with the same key is still running (`idempotency_in_progress`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
        WithBody,
    ),
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentsWrite>,
    once: Once,
    fields: Fields,
) -> Result<Response, Problem> {
    let tenant = caller.tenant();
    let fingerprint = fields.fingerprint();
    // What is wrong with the body costs no connection.
    let new = parse(fields)?;
    let engine = app.engine_of(tenant)?;
    let mut connection = engine.connection().await?;
    let tx = match once
        .begin(&mut connection, &caller.scope(), fingerprint)
        .await?
    {
        Begun::Before(answer) => return Ok(answer),
        Begun::Now(tx) => tx,
    };
    let found = subscriptions::table::lock(&tx, tenant.id, new.subscription).await?;
    let unknown = || Problem::unknown_reference("subscription_id", new.subscription);
    let subscription = found.ok_or_else(unknown)?;
    let now = app.billing.after(subscription.updated_at);
    let payment = Payment::make(new, app.ids.next(now), now).map_err(Problem::wrong)?;
    let (id, external_id) = (payment.id, payment.external_id.clone());
    let mut change = Change {
        tenant: tenant.id,
        by: caller.by(),
        ids: app.ids,
        now,
        tx: &tx,
    };
    let added = add(&mut change, payment, subscription, &tenant.lifecycle).await?;
    let Some(view) = added else {
        return Err(duplicate(engine, tenant.id, external_id.as_ref()).await?);
    };
    tx.created(format!("/subscription-payments/{id}"), &view)
        .await
}

/// Reads the body, or says everything that is wrong with it.
fn parse(mut fields: Fields) -> Result<NewPayment, Problem> {
    fields.read_only(READ_ONLY);
    let subscription = fields.required("subscription_id", text);
    let currency: Option<Currency> = fields.required("currency", text);
    // Without a currency it can still be checked that it is a number.
    let money = |raw: &_| match currency {
        Some(currency) => Ok(Some(Money::exact(&decimal(raw)?, currency)?)),
        None => decimal(raw).map(|_| None),
    };
    let amount = fields.required("amount", money);
    let external_id = fields.optional("external_payment_id", text);
    let status = fields.optional("status", text);
    let refunded = fields.optional("refunded_amount", money);
    fields.finish(|| {
        Some(NewPayment {
            subscription: subscription?,
            amount: amount??,
            external_id: external_id?,
            status: status?,
            refunded: refunded?.flatten(),
        })
    })
}
