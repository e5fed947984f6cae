//! `GET /webhook-endpoints`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Id, TenantId, WebhookEndpoint};

use super::{table, view::WebhookEndpointView};
use crate::{
    app::App,
    auth::{Caller, WebhooksRead},
    db::{AgeKey, AgeOrder, Error, PooledConnection},
    http::{
        openapi::{CreatedAtSortParam, CursorParams},
        pagination::{BY_AGE, Page, PageRequest},
        problem::{CommonResponses, Problem},
        query::QueryParams,
    },
};

/// List webhook endpoints
///
/// Returns the tenant's endpoints, disabled ones included, without their secrets.
#[utoipa::path(
    get,
    path = "/webhook-endpoints",
    tag = "Webhooks",
    operation_id = "listWebhookEndpoints",
    params(
        CursorParams,
        CreatedAtSortParam,
    ),
    responses(
        (status = 200, description = "A page of endpoints.", body = Page<WebhookEndpointView>),
        CommonResponses,
    ),
)]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller<WebhooksRead>,
    mut params: QueryParams,
) -> Result<Page<WebhookEndpointView>, Problem> {
    let request = PageRequest::parse(&mut params, &BY_AGE);
    params.finish()?;
    let tenant = caller.tenant().id;
    let page = request.verify(&app.cursor_key, &[&"GET /webhook-endpoints", &tenant])?;
    let connection = app.database_for(caller.tenant())?.connection().await?;
    let start = (page.order, page.after);
    let endpoints = table::list(&connection, tenant, start, page.row_limit()).await?;
    Ok(page.finish(endpoints, age_key))
}

fn age_key(endpoint: &WebhookEndpoint) -> AgeKey {
    AgeKey {
        created_at: endpoint.created_at,
        id: endpoint.id.uuid(),
    }
}

/// The number of endpoints that [`list_all`] reads at a time.
const PAGE_ENDPOINTS: i64 = 500;

/// Returns all endpoints of a tenant, the newest first.
pub async fn list_all(
    connection: &PooledConnection,
    tenant: TenantId,
) -> Result<Vec<WebhookEndpoint>, Error> {
    let mut endpoints: Vec<WebhookEndpoint> = Vec::new();
    loop {
        let start = (AgeOrder::NewestFirst, endpoints.last().map(age_key));
        let page = table::list(connection, tenant, start, PAGE_ENDPOINTS).await?;
        if page.is_empty() {
            return Ok(endpoints);
        }
        endpoints.extend(page);
    }
}
