//! `POST /subscription-payments`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use perennial_domain::{NewPayment, Payment};

use super::{
    body::{CreatePayment, parse_create},
    check_refund, insert_and_apply,
    view::PaymentView,
};
use crate::{
    app::App,
    auth::{Caller, PaymentsWrite},
    db::{CellDatabase, Transaction},
    http::{
        idempotency::{IdempotencyKey, IdempotencyOutcome},
        json::BodyFields,
        openapi::IdempotencyKeyParam,
        problem::{BodyResponses, CommonResponses, Problem, ProblemBody},
    },
    record::{ChangeOrigin, duplicate_external_id},
    subscriptions,
};

/// Create a payment
///
/// Required: `subscription_id`, `amount` and `currency`. A `paid_at` in the future is rejected with 422
/// (`inconsistent_dates`).
///
/// In managed billing, a completed payment in the subscription's currency adds its amount, less
/// `refunded_amount`, to the credit. The credit then pays what is open or pending: an unpaid period, or
/// the first period of a pending subscription. The rest stays credit for later periods.
///
/// Outside managed billing, a completed payment of more than 0 in the subscription's currency activates
/// a past due or unpaid subscription, unless a payment provider manages it
/// (`external_subscription_id`).
#[utoipa::path(
    post,
    path = "/subscription-payments",
    tag = "Subscription payments",
    operation_id = "createPayment",
    params(IdempotencyKeyParam),
    request_body(content = CreatePayment, description = "The payment to create."),
    responses(
        (status = 201, description = "The created payment.", body = PaymentView),
        (status = 409, description = "Another payment has this external id (`duplicate_external_id`), or a request with the same key is in progress (`idempotency_in_progress`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentsWrite>,
    idempotency_key: IdempotencyKey,
    fields: BodyFields,
) -> Result<Response, Problem> {
    let tenant = caller.tenant();
    let fingerprint = fields.fingerprint();
    // Invalid bodies are rejected before a connection is taken from the pool.
    let new = parse_create(fields)?;
    let database = app.database_for(tenant)?;
    let mut connection = database.connection().await?;
    let tx = match idempotency_key
        .begin(&mut connection, &caller.idempotency_scope(), fingerprint)
        .await?
    {
        IdempotencyOutcome::Replayed(response) => return Ok(response),
        IdempotencyOutcome::Proceed(tx) => tx,
    };
    let origin = ChangeOrigin::new(&caller, app.ids, app.billing_clock);
    let created = { record_payment(&tx, database, &origin, new).await }.map(|payment| {
        let location = format!("/subscription-payments/{}", payment.id);
        (location, PaymentView::from(&payment))
    });
    tx.respond(created).await
}

/// Creates a payment and applies it to its subscription. The caller commits.
pub async fn record_payment(
    tx: &Transaction<'_>,
    database: &CellDatabase,
    origin: &ChangeOrigin<'_>,
    new: NewPayment,
) -> Result<Payment, Problem> {
    let tenant = origin.tenant;
    let scope = (tenant.id, tenant.lifecycle);
    let subscription = subscriptions::table::lock(tx, scope, new.subscription)
        .await?
        .ok_or_else(|| Problem::unknown_reference("subscription_id", new.subscription))?;
    let now = origin.clock.now_after(subscription.updated_at);
    let payment =
        Payment::create(new, origin.ids.generate(now), now).map_err(Problem::from_field_errors)?;
    check_refund(&payment, &subscription)?;
    let external_id = payment.external_id.clone();
    let mut context = origin.context(now, tx);
    match insert_and_apply(&mut context, payment, &subscription).await? {
        Some(payment) => Ok(payment),
        None => {
            Err(duplicate_external_id::<Payment>(database, tenant.id, external_id.as_ref()).await?)
        }
    }
}
