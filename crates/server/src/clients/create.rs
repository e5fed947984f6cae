//! `POST /clients`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use ipnet::IpNet;
use perennial_domain::{ClientKind, EventKind, Rule, Scope, SingleLine, ValidationError};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::{
    ScopeLimit,
    body::{CreateClient, parse_create},
    check_settings, generate_api_key, scope_texts,
    table::{self, ClientRow, ClientSettings},
    view::{ClientView, CreatedClient},
};
use crate::{
    app::App,
    auth::{Caller, ClientsWrite, hash_api_key},
    http::{
        idempotency::{IdempotencyKey, IdempotencyOutcome},
        json::BodyFields,
        openapi::IdempotencyKeyParam,
        problem::{BodyResponses, CommonResponses, Problem, ProblemBody},
        response::add_field,
    },
    record::ChangeContext,
};

/// A client to create.
#[derive(Debug)]
pub struct NewClient {
    pub kind: ClientKind,
    pub name: SingleLine<200>,
    /// `None` for the default scopes of the kind, within those of the caller.
    pub scopes: Option<Vec<Scope>>,
    /// An empty list allows any address.
    pub allow_addresses: Vec<IpNet>,
    pub allowed_origins: Vec<String>,
}

/// Create a client
///
/// The response has the API key in `client_id`, which cannot be read again. A client can only create clients whose scopes
/// it has itself. A retry with the same `Idempotency-Key` returns the client without its key; rotate the key to get one.
#[utoipa::path(
    post,
    path = "/clients",
    tag = "Clients",
    operation_id = "createClient",
    params(IdempotencyKeyParam),
    request_body(content = CreateClient, description = "The client to create."),
    responses(
        (status = 201, description = "The created client, with its API key.", body = CreatedClient),
        (status = 409, description = "A request with the same key is in progress (`idempotency_in_progress`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller<ClientsWrite>,
    idempotency_key: IdempotencyKey,
    fields: BodyFields,
) -> Result<Response, Problem> {
    let fingerprint = fields.fingerprint();
    let client = parse_create(fields)?;
    let mut home = app.db.home()?.connection().await?;
    let tx = match idempotency_key
        .begin(&mut home, &caller.idempotency_scope(), fingerprint)
        .await?
    {
        IdempotencyOutcome::Replayed(response) => {
            return add_field(response, "client_id", &None::<String>).await;
        }
        IdempotencyOutcome::Proceed(tx) => tx,
    };
    let context = ChangeContext::new(&caller, app.ids, app.clock.now(), &tx);
    let limit = ScopeLimit::Only(caller.scopes());
    // The response is stored for idempotency without the key.
    let (created, api_key) = match insert_client(&context, limit, client, None).await {
        Ok((client, api_key)) => {
            let location = format!("/clients/{}", client.id);
            (Ok((location, ClientView::from(&client))), Some(api_key))
        }
        Err(problem) => (Err(problem), None),
    };
    let response = tx.respond(created).await?;
    let api_key = api_key.as_ref().map(ExposeSecret::expose_secret);
    add_field(response, "client_id", &api_key).await
}

/// Creates a client with `api_key`, or with a generated key if that is `None`, and records the event. Returns the key,
/// which cannot be read again. The caller commits.
pub async fn insert_client(
    context: &ChangeContext<'_>,
    limit: ScopeLimit<'_>,
    client: NewClient,
    api_key: Option<&str>,
) -> Result<(ClientRow, SecretString), Problem> {
    let scopes = client.scopes.unwrap_or_else(|| {
        let mut scopes = client.kind.default_scopes();
        scopes.retain(|scope| limit.includes(scope.as_str()));
        scopes
    });
    check_settings(client.kind, &scopes, &client.allowed_origins)?;
    let scopes = scope_texts(&scopes);
    limit.check(&scopes)?;
    let addresses = client.allow_addresses.iter();
    let client = ClientRow {
        id: context.ids.generate(context.now),
        kind: client.kind,
        settings: ClientSettings {
            name: client.name.to_string(),
            scopes,
            allow_addresses: addresses.map(ToString::to_string).collect(),
            allowed_origins: client.allowed_origins,
        },
        created_at: context.now,
        disabled_at: None,
        live_values: 1,
        has_first_key: true,
    };
    let api_key = api_key.map_or_else(|| generate_api_key(client.kind), str::to_owned);
    table::insert(context.tx, context.tenant, &client).await?;
    let hash = hash_api_key(api_key.as_bytes());
    let inserted =
        table::insert_value(context.tx, context.tenant, client.id, &hash, context.now).await;
    inserted.map_err(|error| match error.constraint() {
        Some("client_values_hash") => {
            let message = "another client already uses this key";
            let error = ValidationError::new(Rule::InvalidFormat, message);
            Problem::from_field_errors(vec![("id", error)])
        }
        _ => error.into(),
    })?;
    let settings = &client.settings;
    let data = json!({
        "kind": client.kind.as_str(),
        "name": settings.name,
        "scopes": settings.scopes,
        "allow_addresses": settings.allow_addresses,
        "allowed_origins": settings.allowed_origins,
    });
    context
        .record_event(EventKind::ClientCreated, client.id, &data)
        .await?;
    Ok((client, api_key.into()))
}
