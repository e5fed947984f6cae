//! `GET /subscription-payments/{payment_id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::PaymentId;

use super::{no_such_payment, table, view::PaymentView};
use crate::{
    app::App,
    callers::{Caller, PaymentsRead},
    http::{
        answer::Found,
        path::PathParam,
        problem::{AnyEndpoint, Problem, ProblemBody},
    },
};

/// Read a payment
///
/// On behalf of a user, those for that user's subscriptions alone are found.
#[utoipa::path(
    get,
    path = "/subscription-payments/{payment_id}",
    tag = "Subscription payments",
    operation_id = "readPayment",
    params(("payment_id" = String, Path, description = "The payment's id.", example = "pay_0192f0c1a2b37c4d8e5f60718293a4b5",
        pattern = "^pay_[0-9a-f]{32}$")),
    responses(
        (status = 200, description = "The payment as it stands.", body = PaymentView,
            headers(("ETag" = String, description = "What the payment looks like, for If-Match."))),
        (status = 404, description = "There is no such payment (`payment_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentsRead>,
    PathParam(id): PathParam<PaymentId>,
) -> Result<Found<PaymentView>, Problem> {
    let id = id.map_err(|why| no_such_payment(Err(why)))?;
    let engine = app.engine_of(caller.tenant())?;
    let user = caller.user().map(|signed_in| signed_in.user.id);
    let payment = table::find(engine, caller.tenant().id, id, user).await?;
    payment
        .map(|payment| Found(PaymentView::from(&payment)))
        .ok_or_else(|| no_such_payment(Ok(id)))
}
