//! `GET /payment-accounts`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{PaymentAccount, TenantId};

use super::{age_key, table, view::PaymentAccountView};
use crate::{
    app::App,
    auth::{Caller, PaymentAccountsRead},
    db::{AgeOrder, Error, PooledConnection},
    http::{
        openapi::{CreatedAtSortParam, CursorParams},
        pagination::{BY_AGE, Page, PageRequest},
        problem::{CommonResponses, Problem},
        query::QueryParams,
    },
};

/// List payment accounts
///
/// Returns the tenant's accounts, without their API keys and secrets.
#[utoipa::path(
    get,
    path = "/payment-accounts",
    tag = "Payment accounts",
    operation_id = "listPaymentAccounts",
    params(
        CursorParams,
        CreatedAtSortParam,
    ),
    responses(
        (status = 200, description = "A page of accounts.", body = Page<PaymentAccountView>),
        CommonResponses,
    ),
)]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentAccountsRead>,
    mut params: QueryParams,
) -> Result<Page<PaymentAccountView>, Problem> {
    let request = PageRequest::parse(&mut params, &BY_AGE);
    params.finish()?;
    let tenant = caller.tenant().id;
    let page = request.verify(&app.cursor_key, &[&"GET /payment-accounts", &tenant])?;
    let connection = app.database_for(caller.tenant())?.connection().await?;
    let start = (page.order, page.after);
    let accounts = table::list(&connection, tenant, start, page.row_limit()).await?;
    Ok(page.finish(accounts, age_key))
}

/// The number of accounts that [`list_all`] reads at a time.
const PAGE_ACCOUNTS: i64 = 500;

/// Returns all accounts of a tenant, the newest first.
pub async fn list_all(
    connection: &PooledConnection,
    tenant: TenantId,
) -> Result<Vec<PaymentAccount>, Error> {
    let mut accounts: Vec<PaymentAccount> = Vec::new();
    loop {
        let start = (AgeOrder::NewestFirst, accounts.last().map(age_key));
        let page = table::list(connection, tenant, start, PAGE_ACCOUNTS).await?;
        if page.is_empty() {
            return Ok(accounts);
        }
        accounts.extend(page);
    }
}
