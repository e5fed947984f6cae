//! `GET /subscription-payments/{payment_id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Payment, PaymentId};

use super::{table, view::PaymentView};
use crate::{
    app::App,
    auth::{Caller, PaymentsRead},
    http::{
        openapi::PaymentIdPath,
        path_param::PathParam,
        problem::{CommonResponses, Problem, ProblemBody},
        response::OkJson,
    },
    record::not_found,
};

/// Get a payment
///
/// With a user's access token, only payments for that user's subscriptions are found.
#[utoipa::path(
    get,
    path = "/subscription-payments/{payment_id}",
    tag = "Subscription payments",
    operation_id = "readPayment",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(PaymentIdPath),
    responses(
        (status = 200, description = "The payment.", body = PaymentView),
        (status = 404, description = "No payment has this id (`payment_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentsRead>,
    PathParam(id): PathParam<PaymentId>,
) -> Result<OkJson<PaymentView>, Problem> {
    let id = id.map_err(not_found::<Payment>)?;
    let database = app.database_for(caller.tenant())?;
    let user = caller.user();
    let payment = table::find(database, caller.tenant().id, id, user).await?;
    payment
        .map(|payment| OkJson(PaymentView::from(&payment)))
        .ok_or_else(|| not_found::<Payment>(id))
}
