//! `PUT /webhook-endpoints/{id}` and `POST /webhook-endpoints/{id}/enable`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{
    EndpointStatus, EventKind, WebhookEndpoint, WebhookEndpointDetails, WebhookEndpointId,
};

use super::{
    body::{UpdateWebhookEndpoint, parse_update},
    check_target, lease_sql,
    retries_sql::{self, EndpointKey},
    table,
    view::{WebhookEndpointEvent, WebhookEndpointView},
};
use crate::{
    app::App,
    auth::{Caller, WebhooksWrite},
    db::CellDatabase,
    events,
    http::{
        etag::IfMatch,
        json::{BodyFields, NoBody},
        openapi::{IfMatchParam, WebhookEndpointIdPath},
        outbound::AddressGuard,
        path_param::PathParam,
        problem::{
            BodyResponses, CommonResponses, ConditionalResponses, EmptyBodyResponses, Problem,
            ProblemBody,
        },
        response::OkJson,
    },
    record::{ChangeContext, ChangeOrigin, Locked, not_found},
};

/// Update a webhook endpoint
///
/// Changes only the fields in the request, within seconds. A disabled endpoint keeps its position in the event log: when it
/// is enabled, it continues where it stopped.
#[utoipa::path(
    put,
    path = "/webhook-endpoints/{id}",
    tag = "Webhooks",
    operation_id = "updateWebhookEndpoint",
    params(
        WebhookEndpointIdPath,
        IfMatchParam,
    ),
    request_body(content = UpdateWebhookEndpoint, description = "The fields to change."),
    responses(
        (status = 200, description = "The endpoint.", body = WebhookEndpointView),
        (status = 404, description = "There is no such endpoint (`webhook_endpoint_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        ConditionalResponses,
        BodyResponses,
    ),
)]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller<WebhooksWrite>,
    PathParam(id): PathParam<WebhookEndpointId>,
    if_match: IfMatch,
    fields: BodyFields,
) -> Result<OkJson<WebhookEndpointView>, Problem> {
    let id = id.map_err(not_found::<WebhookEndpoint>)?;
    let database = app.database_for(caller.tenant())?;
    let origin = ChangeOrigin::new(&caller, app.ids, app.clock);
    let guard = &app.outbound.guard;
    let endpoint = update_endpoint(database, &origin, guard, id, &if_match, fields).await?;
    Ok(OkJson(WebhookEndpointView::from(&endpoint)))
}

/// Updates an endpoint in a transaction and returns it.
pub async fn update_endpoint(
    database: &CellDatabase,
    origin: &ChangeOrigin<'_>,
    guard: &AddressGuard,
    id: WebhookEndpointId,
    if_match: &IfMatch,
    fields: BodyFields,
) -> Result<WebhookEndpoint, Problem> {
    let tenant = origin.tenant.id;
    // The host name of a new URL is resolved before the row is locked.
    let before = table::find(database, tenant, id).await?;
    let before = before.ok_or_else(|| not_found::<WebhookEndpoint>(id))?;
    let url = parse_update(fields.clone(), &before)?.url;
    if url != before.details.url {
        check_target(guard, &url).await?;
    }
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let row = table::lock(&tx, tenant, id).await?;
    let Locked { record, now, .. } = Locked::new(row, id, origin.clock, if_match)?;
    let details = parse_update(fields, &record)?;
    let context = origin.context(now, &tx);
    let endpoint = save(&context, record, details).await?;
    tx.commit().await?;
    Ok(endpoint)
}

/// Stores the changes of a locked endpoint and records their event, if there are any.
async fn save(
    context: &ChangeContext<'_>,
    record: WebhookEndpoint,
    details: WebhookEndpointDetails,
) -> Result<WebhookEndpoint, Problem> {
    let Some(endpoint) = record.update(details, context.now) else {
        return Ok(record);
    };
    table::update(context.tx, context.tenant, &endpoint).await?;
    let kind = match (record.details.status, endpoint.details.status) {
        (EndpointStatus::Disabled, EndpointStatus::Enabled) => EventKind::WebhookEndpointEnabled,
        (EndpointStatus::Enabled, EndpointStatus::Disabled) => EventKind::WebhookEndpointDisabled,
        _ => EventKind::WebhookEndpointUpdated,
    };
    let settings = |endpoint: &WebhookEndpoint| {
        let details = &endpoint.details;
        (details.url.clone(), details.order, details.status)
    };
    if settings(&record) != settings(&endpoint) {
        let key = EndpointKey {
            tenant: context.tenant,
            endpoint: endpoint.id,
        };
        lease_sql::resume(context.tx, key.tenant, key.endpoint).await?;
        retries_sql::restart(context.tx, key, context.now).await?;
    }
    let (old, new) = (
        WebhookEndpointEvent::from(&record),
        WebhookEndpointEvent::from(&endpoint),
    );
    let data = events::diff(&old, &new)?;
    context.record_event(kind, endpoint.id, &data).await?;
    Ok(endpoint)
}

/// Enable a webhook endpoint
///
/// The endpoint continues with the first event that it has not received. Has no effect on an enabled endpoint.
#[utoipa::path(
    post,
    path = "/webhook-endpoints/{id}/enable",
    tag = "Webhooks",
    operation_id = "enableWebhookEndpoint",
    params(WebhookEndpointIdPath),
    responses(
        (status = 200, description = "The endpoint.", body = WebhookEndpointView),
        (status = 404, description = "There is no such endpoint (`webhook_endpoint_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        EmptyBodyResponses,
    ),
)]
pub async fn enable(
    State(app): State<Arc<App>>,
    caller: Caller<WebhooksWrite>,
    PathParam(id): PathParam<WebhookEndpointId>,
    _: NoBody,
) -> Result<OkJson<WebhookEndpointView>, Problem> {
    let id = id.map_err(not_found::<WebhookEndpoint>)?;
    let database = app.database_for(caller.tenant())?;
    let origin = ChangeOrigin::new(&caller, app.ids, app.clock);
    let endpoint = enable_endpoint(database, &origin, id).await?;
    Ok(OkJson(WebhookEndpointView::from(&endpoint)))
}

/// Enables an endpoint in a transaction and returns it.
pub async fn enable_endpoint(
    database: &CellDatabase,
    origin: &ChangeOrigin<'_>,
    id: WebhookEndpointId,
) -> Result<WebhookEndpoint, Problem> {
    let tenant = origin.tenant.id;
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let row = table::lock(&tx, tenant, id).await?;
    let record = row.ok_or_else(|| not_found::<WebhookEndpoint>(id))?;
    let now = origin.clock.now_after(record.updated_at);
    let details = WebhookEndpointDetails {
        status: EndpointStatus::Enabled,
        ..record.details.clone()
    };
    let endpoint = save(&origin.context(now, &tx), record, details).await?;
    tx.commit().await?;
    Ok(endpoint)
}
