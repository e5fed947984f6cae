//! `DELETE /subscription-payments/{payment_id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{EventKind, PaymentId};

use super::{Locked, lock, table};
use crate::{
    app::App,
    callers::{Caller, PaymentsWrite},
    events,
    http::{
        answer::Gone,
        etag::IfMatch,
        path::PathParam,
        problem::{AnyEndpoint, Code, Conditional, Problem, ProblemBody},
    },
};

/// Delete a payment
///
/// Only one that no money has come of: pending, failed or void. It is not found from then on; its history stays.
#[utoipa::path(
    delete,
    path = "/subscription-payments/{payment_id}",
    tag = "Subscription payments",
    operation_id = "deletePayment",
    params(
        ("payment_id" = String, Path, description = "The payment's id.", example = "pay_0192f0c1a2b37c4d8e5f60718293a4b5",
            pattern = "^pay_[0-9a-f]{32}$"),
        ("If-Match" = Option<String>, Header, example = "*",
            description = "The ETag of the payment that is meant."),
    ),
    responses(
        (status = 204, description = "It is deleted."),
        (status = 404, description = "There is no such payment (`payment_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 409, description = "Money has come (`payment_settled`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
        Conditional,
    ),
)]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentsWrite>,
    PathParam(id): PathParam<PaymentId>,
    if_match: IfMatch,
) -> Result<Gone, Problem> {
    let tenant = caller.tenant().id;
    let mut connection = app.engine_of(caller.tenant())?.connection().await?;
    let tx = connection.begin();
    let Locked { payment, view, now } = lock(&app, &tx, tenant, id, &if_match).await?;
    if payment.status.is_settled() {
        let status = payment.status;
        let detail = format!("money has come: a payment that is {status} stays on record");
        return Err(Problem::new(Code::PaymentSettled, detail));
    }
    table::bury(&tx, tenant, payment.id, now).await?;
    let event = caller.event(app.ids, now, EventKind::PaymentDeleted, payment.id, &view);
    events::record(&tx, &event).await?;
    tx.commit().await?;
    Ok(Gone)
}
