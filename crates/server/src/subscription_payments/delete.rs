//! `DELETE /subscription-payments/{payment_id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::PaymentId;

use super::{apply::append_totals, lock};
use crate::{
    app::App,
    auth::{Caller, PaymentsWrite},
    http::{
        etag::IfMatch,
        openapi::{IfMatchParam, PaymentIdPath},
        path_param::PathParam,
        problem::{Code, CommonResponses, ConditionalResponses, Problem, ProblemBody},
        response::NoContent,
    },
    record::{ChangeContext, Locked},
};

/// Delete a payment
///
/// Only payments that have not settled can be deleted: `pending`, `failed` or `void`. They have no
/// ledger entries. The payment is no longer found; its events are kept.
#[utoipa::path(
    delete,
    path = "/subscription-payments/{payment_id}",
    tag = "Subscription payments",
    operation_id = "deletePayment",
    params(
        PaymentIdPath,
        IfMatchParam,
    ),
    responses(
        (status = 204, description = "Deleted."),
        (status = 404, description = "No payment has this id (`payment_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 409, description = "The payment has settled (`payment_settled`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        ConditionalResponses,
    ),
)]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentsWrite>,
    PathParam(id): PathParam<PaymentId>,
    if_match: IfMatch,
) -> Result<NoContent, Problem> {
    let tenant = caller.tenant();
    let mut connection = app.database_for(tenant)?.connection().await?;
    let tx = connection.begin();
    let Locked { record, view, now } =
        lock(app.billing_clock, &tx, tenant.id, id, &if_match).await?;
    // Settled means that money was received, even if it was refunded or disputed later.
    if record.status.is_settled() {
        let detail = format!(
            "cannot delete a settled payment; its status is {}",
            record.status
        );
        return Err(Problem::new(Code::PaymentSettled, detail));
    }
    let context = ChangeContext::new(&caller, app.ids, now, &tx);
    append_totals(&context, &record, &record.deleted_totals()).await?;
    context.soft_delete(&record, &view).await?;
    tx.commit().await?;
    Ok(NoContent)
}
