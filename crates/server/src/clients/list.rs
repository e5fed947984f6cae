//! `GET /clients`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::Id;

use super::{
    table::{self, ClientRow},
    view::ClientView,
};
use crate::{
    app::App,
    auth::{Caller, ClientsRead},
    db::AgeKey,
    http::{
        openapi::{CreatedAtSortParam, CursorParams},
        pagination::{BY_AGE, Page, PageRequest},
        problem::{CommonResponses, Problem},
        query::QueryParams,
    },
};

/// List clients
///
/// Returns the tenant's clients, disabled ones included, without their API keys.
#[utoipa::path(
    get,
    path = "/clients",
    tag = "Clients",
    operation_id = "listClients",
    params(
        CursorParams,
        CreatedAtSortParam,
    ),
    responses(
        (status = 200, description = "A page of clients.", body = Page<ClientView>),
        CommonResponses,
    ),
)]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller<ClientsRead>,
    mut params: QueryParams,
) -> Result<Page<ClientView>, Problem> {
    let request = PageRequest::parse(&mut params, &BY_AGE);
    params.finish()?;
    let tenant = caller.tenant().id;
    let page = request.verify(&app.cursor_key, &[&"GET /clients", &tenant])?;
    let home = app.db.home()?.connection().await?;
    let start = (page.order, page.after);
    let clients = table::page(&home, tenant, start, page.row_limit()).await?;
    Ok(page.finish(clients, |client: &ClientRow| AgeKey {
        created_at: client.created_at,
        id: client.id.uuid(),
    }))
}
