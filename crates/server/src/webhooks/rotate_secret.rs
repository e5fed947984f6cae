//! `POST /webhook-endpoints/{id}/rotate-secret`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use jiff::SignedDuration;
use perennial_domain::{EventKind, WebhookEndpoint, WebhookEndpointId};

use super::{
    secrets,
    signature::WebhookSecret,
    table,
    view::{WebhookEndpointEvent, WebhookSecretView},
};
use crate::{
    app::App,
    auth::{Caller, WebhooksWrite},
    crypto::DerivedKeys,
    db::CellDatabase,
    http::{
        json::NoBody,
        openapi::WebhookEndpointIdPath,
        path_param::PathParam,
        problem::{CommonResponses, EmptyBodyResponses, Problem, ProblemBody},
        response::NoStore,
    },
    randomness::Randomness,
    record::{ChangeOrigin, not_found},
};

/// How long requests are signed with the previous secret too.
const PREVIOUS_SECRET_TTL: SignedDuration = SignedDuration::from_hours(24);

/// Rotate the secret of a webhook endpoint
///
/// For 24 hours, requests are signed with the previous secret too. The one before is no longer used.
#[utoipa::path(
    post,
    path = "/webhook-endpoints/{id}/rotate-secret",
    tag = "Webhooks",
    operation_id = "rotateWebhookSecret",
    params(WebhookEndpointIdPath),
    responses(
        (status = 200, description = "The new secret.", body = WebhookSecretView),
        (status = 404, description = "There is no such endpoint (`webhook_endpoint_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        EmptyBodyResponses,
    ),
)]
pub async fn rotate(
    State(app): State<Arc<App>>,
    caller: Caller<WebhooksWrite>,
    PathParam(id): PathParam<WebhookEndpointId>,
    _: NoBody,
) -> Result<NoStore<WebhookSecretView>, Problem> {
    let id = id.map_err(not_found::<WebhookEndpoint>)?;
    let database = app.database_for(caller.tenant())?;
    let origin = ChangeOrigin::new(&caller, app.ids, app.clock);
    let view = rotate_secret(database, &origin, &app.keys, id).await?;
    Ok(NoStore(StatusCode::OK, view))
}

/// Gives an endpoint a new secret in a transaction.
pub async fn rotate_secret(
    database: &CellDatabase,
    origin: &ChangeOrigin<'_>,
    keys: &DerivedKeys,
    id: WebhookEndpointId,
) -> Result<WebhookSecretView, Problem> {
    let tenant = origin.tenant.id;
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let row = table::lock(&tx, tenant, id).await?;
    let record = row.ok_or_else(|| not_found::<WebhookEndpoint>(id))?;
    let now = origin.clock.now_after(record.updated_at);
    let expires_at = now.saturating_add(PREVIOUS_SECRET_TTL).unwrap_or(now);
    let secret = WebhookSecret::generate(Randomness);
    let sealed = secrets::seal(keys, &secret, id);
    table::rotate_secret(&tx, tenant, id, &sealed, (expires_at, now)).await?;
    let data = WebhookEndpointEvent::from(&record);
    origin
        .context(now, &tx)
        .record_event(EventKind::WebhookEndpointSecretRotated, id, &data)
        .await?;
    tx.commit().await?;
    Ok(WebhookSecretView::new(&secret, Some(expires_at)))
}
