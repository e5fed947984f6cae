//! `POST /identity-providers`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use perennial_domain::EventKind;

use super::{
    body::{CreateIdentityProvider, parse_create},
    check_targets, conflict,
    view::{IdentityProviderView, ProviderSettingsView},
};
use crate::{
    app::App,
    auth::{Caller, IdentityProvidersWrite},
    http::{
        idempotency::{IdempotencyKey, IdempotencyOutcome},
        json::BodyFields,
        openapi::IdempotencyKeyParam,
        problem::{BodyResponses, CommonResponses, Problem, ProblemBody},
    },
    identity_providers::{
        IdentityProvider,
        table::{self, StoredProvider},
    },
    record::ChangeContext,
};

/// Add an identity provider
///
/// Users can sign in with the provider's tokens within a second. The service connects to public addresses only, for this
/// provider; operators add others with `perennial provider add`.
#[utoipa::path(
    post,
    path = "/identity-providers",
    tag = "Identity providers",
    operation_id = "createIdentityProvider",
    params(IdempotencyKeyParam),
    request_body(content = CreateIdentityProvider, description = "The provider to add."),
    responses(
        (status = 201, description = "The provider.", body = IdentityProviderView),
        (status = 409, description = "The tenant has such a provider (`duplicate_provider`), or a request with the same key is in \
            progress (`idempotency_in_progress`).", body = ProblemBody, content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller<IdentityProvidersWrite>,
    idempotency_key: IdempotencyKey,
    fields: BodyFields,
) -> Result<Response, Problem> {
    let fingerprint = fields.fingerprint();
    let settings = parse_create(fields)?;
    let provider = settings.into_provider(app.mode, Some(&app.keys));
    let provider = provider.map_err(Problem::from_field_errors)?;
    check_targets(&app.outbound.guard, &provider).await?;
    let mut home = app.db.home()?.connection().await?;
    let tx = match idempotency_key
        .begin(&mut home, &caller.idempotency_scope(), fingerprint)
        .await?
    {
        IdempotencyOutcome::Replayed(response) => return Ok(response),
        IdempotencyOutcome::Proceed(tx) => tx,
    };
    let context = ChangeContext::new(&caller, app.ids, app.clock.now(), &tx);
    let created = insert_provider(&context, provider).await.map(|stored| {
        let location = format!("/identity-providers/{}", stored.id);
        (location, IdentityProviderView::from(&stored))
    });
    tx.respond(created).await
}

/// Adds a provider to a tenant and records the event. The caller commits.
pub async fn insert_provider(
    context: &ChangeContext<'_>,
    provider: IdentityProvider,
) -> Result<StoredProvider, Problem> {
    let stored = StoredProvider {
        id: context.ids.generate(context.now),
        created_at: context.now,
        provider,
    };
    let inserted = table::insert(context.tx, context.tenant, &stored).await;
    inserted.map_err(|error| conflict(error, &stored.provider.issuer))?;
    let data = ProviderSettingsView::from(&stored.provider);
    context
        .record_event(EventKind::ProviderAdded, context.tenant, &data)
        .await?;
    Ok(stored)
}
