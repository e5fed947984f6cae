//! `POST /clients/{id}/rotate`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use jiff::SignedDuration;
use perennial_domain::{ClientId, EventKind};
use serde_json::json;

use super::{
    ScopeLimit,
    body::{RotateApiKey, parse_rotation},
    generate_api_key, lock_enabled,
    table::{self, ClientRow},
    view::RotatedApiKeyView,
};
use crate::{
    app::App,
    auth::{Caller, ClientsWrite, hash_api_key, tenants::table::notify_clients_changed},
    db::PooledConnection,
    http::{
        etag::IfMatch,
        json::BodyFields,
        openapi::ClientIdPath,
        path_param::PathParam,
        problem::{BodyResponses, CommonResponses, Problem, ProblemBody},
        response::NoStore,
    },
    record::{ChangeOrigin, Locked, not_found},
};

/// Rotate an API key
///
/// The previous key works for a grace period, a day unless the request has another one. A client has at most two keys: a
/// second rotation within the grace period revokes the oldest key at once. The calling client must have every scope of the
/// client.
#[utoipa::path(
    post,
    path = "/clients/{id}/rotate",
    tag = "Clients",
    operation_id = "rotateClient",
    params(ClientIdPath),
    request_body(content = RotateApiKey, description = "How long the previous key works."),
    responses(
        (status = 200, description = "The new API key.", body = RotatedApiKeyView),
        (status = 404, description = "There is no such client (`client_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 409, description = "The client is disabled (`client_disabled`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn rotate(
    State(app): State<Arc<App>>,
    caller: Caller<ClientsWrite>,
    PathParam(id): PathParam<ClientId>,
    fields: BodyFields,
) -> Result<NoStore<RotatedApiKeyView>, Problem> {
    let id = id.map_err(not_found::<ClientRow>)?;
    let grace_period = parse_rotation(fields)?.get();
    let mut home = app.db.home()?.connection().await?;
    let origin = ChangeOrigin::new(&caller, app.ids, app.clock);
    let limit = ScopeLimit::Only(caller.scopes());
    let rotated = rotate_api_key(&mut home, &origin, limit, id, grace_period).await?;
    Ok(NoStore(StatusCode::OK, rotated))
}

/// Gives a client a new API key in a transaction; the current key works until `grace_period` has passed.
pub async fn rotate_api_key(
    home: &mut PooledConnection,
    origin: &ChangeOrigin<'_>,
    limit: ScopeLimit<'_>,
    id: ClientId,
    grace_period: SignedDuration,
) -> Result<RotatedApiKeyView, Problem> {
    let tenant = origin.tenant.id;
    let tx = home.begin();
    let Locked { record, now, .. } = lock_enabled(&tx, origin, id, &IfMatch::ABSENT).await?;
    limit.check(&record.settings.scopes)?;
    let old_value_expires_at = now.saturating_add(grace_period).unwrap_or(now);
    table::expire_values(&tx, tenant, id, old_value_expires_at, now).await?;
    notify_clients_changed(&tx, Some(tenant)).await?;
    let api_key = generate_api_key(record.kind);
    table::insert_value(&tx, tenant, id, &hash_api_key(api_key.as_bytes()), now).await?;
    let data = json!({"old_value_expires_at": old_value_expires_at.to_string()});
    origin
        .context(now, &tx)
        .record_event(EventKind::ClientRotated, id, &data)
        .await?;
    tx.commit().await?;
    Ok(RotatedApiKeyView {
        id,
        client_id: api_key,
        old_value_expires_at,
    })
}
