//! `GET /webhook-endpoints/{id}/attempts`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{WebhookEndpoint, WebhookEndpointId};

use super::{
    attempts_sql::{self, WebhookAttempt},
    retries_sql::EndpointKey,
    table,
    view::WebhookAttemptView,
};
use crate::{
    app::App,
    auth::{Caller, WebhooksRead},
    db::{AgeKey, AgeOrder},
    http::{
        openapi::{CursorParams, WebhookEndpointIdPath},
        pagination::{Page, PageRequest},
        path_param::PathParamWithQuery,
        problem::{CommonResponses, Problem, ProblemBody},
        query::QueryParams,
    },
    record::not_found,
};

/// List attempts
///
/// The attempts to deliver events to an endpoint, the newest first. They are kept for 30 days.
#[utoipa::path(
    get,
    path = "/webhook-endpoints/{id}/attempts",
    tag = "Webhooks",
    operation_id = "listWebhookAttempts",
    params(
        WebhookEndpointIdPath,
        CursorParams,
    ),
    responses(
        (status = 200, description = "A page of attempts.", body = Page<WebhookAttemptView>),
        (status = 404, description = "There is no such endpoint (`webhook_endpoint_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn list_attempts(
    State(app): State<Arc<App>>,
    caller: Caller<WebhooksRead>,
    PathParamWithQuery(id): PathParamWithQuery<WebhookEndpointId>,
    mut params: QueryParams,
) -> Result<Page<WebhookAttemptView>, Problem> {
    let id = id.map_err(not_found::<WebhookEndpoint>)?;
    let request = PageRequest::parse_unsorted(&mut params, AgeOrder::NewestFirst);
    params.finish()?;
    let tenant = caller.tenant().id;
    let identity = "GET /webhook-endpoints/{id}/attempts";
    let page = request.verify(&app.cursor_key, &[&identity, &tenant, &id])?;
    let database = app.database_for(caller.tenant())?;
    let endpoint = table::find(database, tenant, id).await?;
    endpoint.ok_or_else(|| not_found::<WebhookEndpoint>(id))?;
    let connection = database.connection().await?;
    let (start, limit) = ((page.order, page.after), page.row_limit());
    let key = EndpointKey {
        tenant,
        endpoint: id,
    };
    let attempts = attempts_sql::list(&connection, key, start, limit).await?;
    Ok(page.finish(attempts, |attempt: &WebhookAttempt| AgeKey {
        created_at: attempt.created_at,
        id: attempt.id,
    }))
}
