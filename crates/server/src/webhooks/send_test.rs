//! `POST /webhook-endpoints/{id}/test`

use std::{sync::Arc, time::Duration};

use axum::{extract::State, http::StatusCode};
use perennial_domain::{EventId, ResponseMeaning, WebhookEndpoint, WebhookEndpointId};

use super::{
    attempts_sql::{self, WebhookAttempt},
    delivery::message::WebhookMessage,
    table,
    view::{WebhookAttemptView, WebhookEndpointEvent},
};
use crate::{
    app::App,
    auth::{Caller, WebhooksWrite},
    crypto::DerivedKeys,
    db::CellDatabase,
    http::{
        json::NoBody,
        openapi::WebhookEndpointIdPath,
        outbound::OutboundClient,
        path_param::PathParam,
        problem::{CommonResponses, EmptyBodyResponses, Problem, ProblemBody},
        response::NoStore,
    },
    record::{ChangeOrigin, not_found},
};

/// The type of the test message. It is not an event and has no position in the log.
const TEST_TYPE: &str = "webhook_endpoint.test";
/// Shorter than the limit of a request to the API.
const TEST_TIMEOUT: Duration = Duration::from_secs(8);

/// Send a test message
///
/// Sends a signed message of the type `webhook_endpoint.test` once and returns the attempt. A disabled endpoint can be
/// tested too.
#[utoipa::path(
    post,
    path = "/webhook-endpoints/{id}/test",
    tag = "Webhooks",
    operation_id = "testWebhookEndpoint",
    params(WebhookEndpointIdPath),
    responses(
        (status = 200, description = "The attempt, successful or not.", body = WebhookAttemptView),
        (status = 404, description = "There is no such endpoint (`webhook_endpoint_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        EmptyBodyResponses,
    ),
)]
pub async fn send_test(
    State(app): State<Arc<App>>,
    caller: Caller<WebhooksWrite>,
    PathParam(id): PathParam<WebhookEndpointId>,
    _: NoBody,
) -> Result<NoStore<WebhookAttemptView>, Problem> {
    let id = id.map_err(not_found::<WebhookEndpoint>)?;
    let database = app.database_for(caller.tenant())?;
    let origin = ChangeOrigin::new(&caller, app.ids, app.clock);
    let attempt = test_endpoint(database, &origin, &app.keys, &app.outbound, id).await?;
    Ok(NoStore(StatusCode::OK, WebhookAttemptView::from(&attempt)))
}

/// Sends a test message with the client, the address rules and the signatures of deliveries.
pub async fn test_endpoint(
    database: &CellDatabase,
    origin: &ChangeOrigin<'_>,
    keys: &DerivedKeys,
    outbound: &OutboundClient,
    id: WebhookEndpointId,
) -> Result<WebhookAttempt, Problem> {
    let tenant = origin.tenant.id;
    let endpoint = table::find(database, tenant, id).await?;
    let endpoint = endpoint.ok_or_else(|| not_found::<WebhookEndpoint>(id))?;
    let secrets = table::find_secrets(database, tenant, id).await?;
    let secrets = secrets.ok_or_else(|| not_found::<WebhookEndpoint>(id))?;
    let now = origin.clock.now();
    let secrets = secrets.open(keys, id, now)?;
    let event: EventId = origin.ids.generate(now);
    let data = WebhookEndpointEvent::from(&endpoint);
    let message = WebhookMessage::with_data(event.to_string(), TEST_TYPE, now, &data)
        .map_err(|error| Problem::internal(&error))?;
    let url = endpoint.details.url.as_str();
    let result = message
        .send(outbound, url, &secrets, now, Some(TEST_TIMEOUT))
        .await;
    let attempt = WebhookAttempt {
        tenant,
        endpoint: id,
        id: origin.ids.generate_uuid(now),
        created_at: now,
        event,
        kind: TEST_TYPE.to_owned(),
        position: None,
        number: 1,
        is_success: result.meaning() == ResponseMeaning::Delivered,
        status_code: result.status_code().map(i32::from),
        error: result.error(),
        duration_ms: result.duration_ms(),
    };
    let connection = database.connection().await?;
    attempts_sql::insert_all(&connection, std::slice::from_ref(&attempt)).await?;
    Ok(attempt)
}
