//! `GET /webhook-endpoints/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{WebhookEndpoint, WebhookEndpointId};

use super::{table, view::WebhookEndpointView};
use crate::{
    app::App,
    auth::{Caller, WebhooksRead},
    http::{
        openapi::WebhookEndpointIdPath,
        path_param::PathParam,
        problem::{CommonResponses, Problem, ProblemBody},
        response::OkJson,
    },
    record::not_found,
};

/// Get a webhook endpoint
///
/// `failing_since` and `disabled_reason` show why events do not arrive. The secret is not returned.
#[utoipa::path(
    get,
    path = "/webhook-endpoints/{id}",
    tag = "Webhooks",
    operation_id = "readWebhookEndpoint",
    params(WebhookEndpointIdPath),
    responses(
        (status = 200, description = "The endpoint.", body = WebhookEndpointView),
        (status = 404, description = "There is no such endpoint (`webhook_endpoint_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller<WebhooksRead>,
    PathParam(id): PathParam<WebhookEndpointId>,
) -> Result<OkJson<WebhookEndpointView>, Problem> {
    let id = id.map_err(not_found::<WebhookEndpoint>)?;
    let database = app.database_for(caller.tenant())?;
    let endpoint = table::find(database, caller.tenant().id, id).await?;
    let endpoint = endpoint.ok_or_else(|| not_found::<WebhookEndpoint>(id))?;
    Ok(OkJson(WebhookEndpointView::from(&endpoint)))
}
