//! `DELETE /webhook-endpoints/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{WebhookEndpoint, WebhookEndpointId};

use super::{table, view::WebhookEndpointEvent};
use crate::{
    app::App,
    auth::{Caller, WebhooksWrite},
    db::CellDatabase,
    http::{
        etag::IfMatch,
        openapi::{IfMatchParam, WebhookEndpointIdPath},
        path_param::PathParam,
        problem::{CommonResponses, ConditionalResponses, Problem, ProblemBody},
        response::NoContent,
    },
    record::{ChangeOrigin, Locked, not_found},
};

/// Delete a webhook endpoint
///
/// No more events are sent, within seconds. To be able to continue later, set `status` to `disabled` instead.
#[utoipa::path(
    delete,
    path = "/webhook-endpoints/{id}",
    tag = "Webhooks",
    operation_id = "deleteWebhookEndpoint",
    params(
        WebhookEndpointIdPath,
        IfMatchParam,
    ),
    responses(
        (status = 204, description = "Deleted."),
        (status = 404, description = "There is no such endpoint (`webhook_endpoint_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        ConditionalResponses,
    ),
)]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller<WebhooksWrite>,
    PathParam(id): PathParam<WebhookEndpointId>,
    if_match: IfMatch,
) -> Result<NoContent, Problem> {
    let id = id.map_err(not_found::<WebhookEndpoint>)?;
    let database = app.database_for(caller.tenant())?;
    let origin = ChangeOrigin::new(&caller, app.ids, app.clock);
    delete_endpoint(database, &origin, id, &if_match).await?;
    Ok(NoContent)
}

/// Deletes an endpoint in a transaction.
pub async fn delete_endpoint(
    database: &CellDatabase,
    origin: &ChangeOrigin<'_>,
    id: WebhookEndpointId,
    if_match: &IfMatch,
) -> Result<(), Problem> {
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let row = table::lock(&tx, origin.tenant.id, id).await?;
    let Locked { record, now, .. } =
        Locked::<WebhookEndpoint>::new(row, id, origin.clock, if_match)?;
    let context = origin.context(now, &tx);
    context
        .soft_delete_with(&record, &WebhookEndpointEvent::from(&record))
        .await?;
    tx.commit().await?;
    Ok(())
}
