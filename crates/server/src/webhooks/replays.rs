//! `POST /webhook-endpoints/{id}/replays`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use jiff::Timestamp;
use perennial_domain::{
    EventTypePattern, EventTypes, TenantId, WebhookEndpoint, WebhookEndpointId,
};

use super::{
    body::{CreateWebhookReplay, ReplayRange, parse_replay},
    lease_sql,
    replays_sql::{self, WebhookReplay},
    retries_sql::EndpointKey,
    table,
    view::WebhookReplayView,
};
use crate::{
    app::App,
    auth::{Caller, WebhooksWrite},
    db::{Error, PooledConnection},
    events::log,
    http::{
        idempotency::{IdempotencyKey, IdempotencyOutcome},
        json::BodyFields,
        openapi::{IdempotencyKeyParam, WebhookEndpointIdPath},
        path_param::PathParam,
        problem::{BodyResponses, CommonResponses, Problem, ProblemBody},
    },
    record::{ChangeContext, not_found},
};

/// Send events again
///
/// Sends one event, or the recorded events of a time range, again, after those that are new. The endpoint must be enabled.
/// Receivers recognize repeated events by `webhook-id`.
#[utoipa::path(
    post,
    path = "/webhook-endpoints/{id}/replays",
    tag = "Webhooks",
    operation_id = "createWebhookReplay",
    params(
        WebhookEndpointIdPath,
        IdempotencyKeyParam,
    ),
    request_body(content = CreateWebhookReplay, description = "The events to send again."),
    responses(
        (status = 201, description = "The replay has started.", body = WebhookReplayView),
        (status = 404, description = "There is no such endpoint (`webhook_endpoint_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 409, description = "A request with the same key is in progress (`idempotency_in_progress`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn create_replay(
    State(app): State<Arc<App>>,
    caller: Caller<WebhooksWrite>,
    PathParam(id): PathParam<WebhookEndpointId>,
    idempotency_key: IdempotencyKey,
    fields: BodyFields,
) -> Result<Response, Problem> {
    let id = id.map_err(not_found::<WebhookEndpoint>)?;
    let fingerprint = fields.fingerprint();
    let mut range = parse_replay(fields)?;
    let tenant = caller.tenant();
    let mut connection = app.database_for(tenant)?.connection().await?;
    let positions = find_positions(&connection, tenant.id, &mut range).await?;
    let tx = match idempotency_key
        .begin(&mut connection, &caller.idempotency_scope(), fingerprint)
        .await?
    {
        IdempotencyOutcome::Replayed(response) => return Ok(response),
        IdempotencyOutcome::Proceed(tx) => tx,
    };
    let context = ChangeContext::new(&caller, app.ids, app.clock.now(), &tx);
    let created = insert_replay(&context, id, range, positions).await;
    let created = created.map(|replay| {
        let location = format!("/webhook-endpoints/{id}/replays/{}", replay.id);
        (location, WebhookReplayView::from(&replay))
    });
    tx.respond(created).await
}

/// Creates a replay of the events at these positions. The caller commits.
pub async fn insert_replay(
    context: &ChangeContext<'_>,
    id: WebhookEndpointId,
    range: ReplayRange,
    (position, last_position): (i64, i64),
) -> Result<WebhookReplay, Problem> {
    let ChangeContext {
        tenant, now, tx, ..
    } = *context;
    let endpoint = table::lock(tx, tenant, id).await?;
    endpoint.ok_or_else(|| not_found::<WebhookEndpoint>(id))?;
    let replay = WebhookReplay {
        id: context.ids.generate(now),
        position,
        last_position,
        event_types: range.event_types,
        only_failed: range.only_failed,
        created_at: now,
    };
    let key = EndpointKey {
        tenant,
        endpoint: id,
    };
    replays_sql::insert(tx, key, &replay).await?;
    lease_sql::mark_due(tx, tenant, id, now).await?;
    Ok(replay)
}

/// Returns the position before the first event of a range, and the one of its last event. One event is sent although the
/// endpoint does not receive its type.
pub async fn find_positions(
    connection: &PooledConnection,
    tenant: TenantId,
    range: &mut ReplayRange,
) -> Result<(i64, i64), Problem> {
    let head = log::head(connection, tenant).await?;
    let bounds = (head.removed_to, head.last_position);
    let first = match range.from {
        Some(from) => last_before(connection, tenant, bounds, from).await?,
        None => head.removed_to,
    };
    let last = match range.to {
        Some(to) => last_before(connection, tenant, bounds, to).await?,
        None => head.last_position,
    };
    let Some(id) = range.event else {
        return Ok((first, last.max(first)));
    };
    let event = log::find(connection, tenant, id).await?;
    let event = event.ok_or_else(|| Problem::unknown_reference("event_id", id))?;
    if range.event_types.is_empty() {
        range.event_types = EventTypes::new(vec![EventTypePattern::Kind(event.kind)]);
    }
    let is_inside = first < event.position && event.position <= last;
    let before = event.position - 1;
    Ok((before, if is_inside { event.position } else { before }))
}

/// Returns the last position that was recorded before `time`, by binary search: positions are recorded in order.
async fn last_before(
    connection: &PooledConnection,
    tenant: TenantId,
    (mut low, mut high): (i64, i64),
    time: Timestamp,
) -> Result<i64, Error> {
    while low < high {
        let middle = low + (high - low + 1) / 2;
        let recorded_at = replays_sql::recorded_at(connection, tenant, middle).await?;
        if recorded_at.is_none_or(|at| at < time) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Ok(low)
}
