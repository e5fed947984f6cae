//! `DELETE /payment-accounts/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Id, PaymentAccount, PaymentAccountId};

use super::{objects_sql, table, view::PaymentAccountEvent};
use crate::{
    app::App,
    auth::{Caller, PaymentAccountsWrite, notify_payment_account_changed},
    db::CellDatabase,
    http::{
        etag::IfMatch,
        openapi::{IfMatchParam, PaymentAccountIdPath},
        path_param::PathParam,
        problem::{CommonResponses, ConditionalResponses, Problem, ProblemBody},
        response::NoContent,
    },
    payment_commands,
    record::{ChangeOrigin, Locked, not_found},
};

/// Delete a payment account
///
/// No more notifications are accepted. Its API key and secrets are erased; subscriptions and payments stay. Pending
/// commands (`pending_commands`) are given up, because they cannot be sent without the API key.
#[utoipa::path(
    delete,
    path = "/payment-accounts/{id}",
    tag = "Payment accounts",
    operation_id = "deletePaymentAccount",
    params(
        PaymentAccountIdPath,
        IfMatchParam,
    ),
    responses(
        (status = 204, description = "Deleted."),
        (status = 404, description = "There is no such account (`payment_account_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        ConditionalResponses,
    ),
)]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentAccountsWrite>,
    PathParam(id): PathParam<PaymentAccountId>,
    if_match: IfMatch,
) -> Result<NoContent, Problem> {
    let id = id.map_err(not_found::<PaymentAccount>)?;
    let database = app.database_for(caller.tenant())?;
    let origin = ChangeOrigin::new(&caller, app.ids, app.clock);
    delete_account(database, &origin, id, &if_match).await?;
    app.payment_accounts.invalidate(&caller.tenant().cell);
    Ok(NoContent)
}

/// Deletes an account in a transaction.
pub async fn delete_account(
    database: &CellDatabase,
    origin: &ChangeOrigin<'_>,
    id: PaymentAccountId,
    if_match: &IfMatch,
) -> Result<(), Problem> {
    let tenant = origin.tenant.id;
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    // Objects first, as when a notification is received.
    objects_sql::forget_unresolved(&tx, tenant, id).await?;
    let row = table::lock(&tx, tenant, id).await?;
    let Locked { record, now, .. } =
        Locked::<PaymentAccount>::new(row, id, origin.clock, if_match)?;
    table::delete_secrets(&tx, tenant, id).await?;
    payment_commands::table::abandon(&tx, tenant.uuid(), id.uuid()).await?;
    notify_payment_account_changed(&tx, id).await?;
    let data = PaymentAccountEvent::from(&record);
    let context = origin.context(now, &tx);
    context.soft_delete_with(&record, &data).await?;
    tx.commit().await?;
    Ok(())
}
