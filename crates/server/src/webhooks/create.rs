//! `POST /webhook-endpoints`

use std::sync::Arc;

use axum::{extract::State, http::header::LOCATION, response::Response};
use perennial_domain::{EventKind, TenantId, WebhookEndpoint, WebhookEndpointDetails};
use secrecy::ExposeSecret;
use serde::Serialize;

use super::{
    body::{CreateWebhookEndpoint, parse_create},
    check_target, secrets,
    signature::WebhookSecret,
    table,
    view::{WebhookEndpointEvent, WebhookEndpointView},
};
use crate::{
    app::App,
    auth::{Caller, WebhooksWrite},
    crypto::DerivedKeys,
    db::CellDatabase,
    http::{
        idempotency::{IdempotencyKey, IdempotencyOutcome},
        json::BodyFields,
        openapi::IdempotencyKeyParam,
        problem::{BodyResponses, CommonResponses, Problem, ProblemBody},
        response::add_field,
    },
    randomness::Randomness,
    record::ChangeContext,
};

/// Create a webhook endpoint
///
/// The endpoint receives every event that is committed after the response, and possibly some that were committed shortly
/// before. The response has its `secret` too, which `rotate-secret` replaces.
#[utoipa::path(
    post,
    path = "/webhook-endpoints",
    tag = "Webhooks",
    operation_id = "createWebhookEndpoint",
    params(IdempotencyKeyParam),
    request_body(content = CreateWebhookEndpoint, description = "The endpoint to create."),
    responses(
        (status = 201, description = "The created endpoint, with its `secret`.", body = CreatedWebhookEndpoint),
        (status = 409, description = "A request with the same key is in progress (`idempotency_in_progress`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller<WebhooksWrite>,
    idempotency_key: IdempotencyKey,
    fields: BodyFields,
) -> Result<Response, Problem> {
    let tenant = caller.tenant();
    let fingerprint = fields.fingerprint();
    let details = parse_create(fields)?;
    check_target(&app.outbound.guard, &details.url).await?;
    let database = app.database_for(tenant)?;
    let mut connection = database.connection().await?;
    let tx = match idempotency_key
        .begin(&mut connection, &caller.idempotency_scope(), fingerprint)
        .await?
    {
        IdempotencyOutcome::Replayed(response) => {
            return add_secret(response, &app, database, tenant.id).await;
        }
        IdempotencyOutcome::Proceed(tx) => tx,
    };
    let context = ChangeContext::new(&caller, app.ids, app.clock.now(), &tx);
    let created = insert_endpoint(&context, &app.keys, details).await;
    let created = created.map(|(endpoint, _)| {
        let location = format!("/webhook-endpoints/{}", endpoint.id);
        (location, WebhookEndpointView::from(&endpoint))
    });
    let response = tx.respond(created).await?;
    drop(connection);
    add_secret(response, &app, database, tenant.id).await
}

/// Creates an endpoint and its secret, and records the event. The caller commits.
pub async fn insert_endpoint(
    context: &ChangeContext<'_>,
    keys: &DerivedKeys,
    details: WebhookEndpointDetails,
) -> Result<(WebhookEndpoint, WebhookSecret), Problem> {
    let id = context.ids.generate(context.now);
    let endpoint = WebhookEndpoint::create(details, id, context.now);
    let secret = WebhookSecret::generate(Randomness);
    let sealed = secrets::seal(keys, &secret, id);
    table::insert(context.tx, context.tenant, &endpoint, &sealed).await?;
    let data = WebhookEndpointEvent::from(&endpoint);
    context
        .record_event(EventKind::WebhookEndpointCreated, id, &data)
        .await?;
    Ok((endpoint, secret))
}

/// A webhook endpoint with its secret.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct CreatedWebhookEndpoint {
    #[serde(flatten)]
    #[schema(inline = false)]
    endpoint: WebhookEndpointView,
    /// Verifies the header `webhook-signature`.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    secret: String,
}

impl CreatedWebhookEndpoint {
    pub fn new(endpoint: &WebhookEndpoint, secret: &WebhookSecret) -> Self {
        Self {
            endpoint: WebhookEndpointView::from(endpoint),
            secret: secret.to_text().expose_secret().to_owned(),
        }
    }

    pub fn secret(&self) -> &str {
        &self.secret
    }
}

/// Adds the secret to the response of a created endpoint. Responses are stored for idempotency without it,
/// because the table of stored responses is not encrypted. The entity tag stays the one of GET.
async fn add_secret(
    response: Response,
    app: &App,
    database: &CellDatabase,
    tenant: TenantId,
) -> Result<Response, Problem> {
    let id = response.headers().get(LOCATION);
    let id = id.and_then(|path| path.to_str().ok()?.rsplit('/').next()?.parse().ok());
    let id = id.ok_or_else(|| Problem::internal(&"a created endpoint has no location"))?;
    // A retry may come after the endpoint was deleted.
    let secret = match table::find_secrets(database, tenant, id).await? {
        Some(sealed) => sealed
            .open(&app.keys, id, app.clock.now())?
            .first()
            .map(WebhookSecret::to_text),
        None => None,
    };
    let secret = secret.as_ref().map(ExposeSecret::expose_secret);
    add_field(response, "secret", &secret).await
}
