//! `GET /payment-accounts/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{PaymentAccount, PaymentAccountId};

use super::{table, view::PaymentAccountView};
use crate::{
    app::App,
    auth::{Caller, PaymentAccountsRead},
    http::{
        openapi::PaymentAccountIdPath,
        path_param::PathParam,
        problem::{CommonResponses, Problem, ProblemBody},
        response::OkJson,
    },
    record::not_found,
};

/// Get a payment account
///
/// The API key and the secret are not returned.
#[utoipa::path(
    get,
    path = "/payment-accounts/{id}",
    tag = "Payment accounts",
    operation_id = "readPaymentAccount",
    params(PaymentAccountIdPath),
    responses(
        (status = 200, description = "The account.", body = PaymentAccountView),
        (status = 404, description = "There is no such account (`payment_account_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentAccountsRead>,
    PathParam(id): PathParam<PaymentAccountId>,
) -> Result<OkJson<PaymentAccountView>, Problem> {
    let id = id.map_err(not_found::<PaymentAccount>)?;
    let database = app.database_for(caller.tenant())?;
    let account = table::find(database, caller.tenant().id, id).await?;
    let account = account.ok_or_else(|| not_found::<PaymentAccount>(id))?;
    Ok(OkJson(PaymentAccountView::from(&account)))
}
