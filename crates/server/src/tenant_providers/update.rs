//! `PUT /identity-providers/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{EventKind, IdentityProviderId};

use super::{
    body::{UpdateIdentityProvider, parse_update},
    check_targets, conflict, not_found,
    view::{IdentityProviderView, ProviderSettingsView},
};
use crate::{
    app::App,
    auth::{Caller, IdentityProvidersWrite},
    events,
    http::{
        etag::IfMatch,
        json::BodyFields,
        openapi::{IdentityProviderIdPath, IfMatchParam},
        path_param::PathParam,
        problem::{BodyResponses, CommonResponses, ConditionalResponses, Problem, ProblemBody},
        response::OkJson,
    },
    identity_providers::{
        IdentityProvider,
        table::{self, StoredProvider},
    },
    record::ChangeContext,
};

/// Update an identity provider
///
/// Changes only the fields in the request, within a second on all instances. Sessions stay. With another `endpoint`, the
/// service connects to public addresses only.
#[utoipa::path(
    put,
    path = "/identity-providers/{id}",
    tag = "Identity providers",
    operation_id = "updateIdentityProvider",
    params(
        IdentityProviderIdPath,
        IfMatchParam,
    ),
    request_body(content = UpdateIdentityProvider, description = "The fields to change."),
    responses(
        (status = 200, description = "The provider.", body = IdentityProviderView),
        (status = 404, description = "There is no such provider (`identity_provider_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 409, description = "The tenant has another provider of tokens that do not name their issuer (`duplicate_provider`).",
            body = ProblemBody, content_type = "application/problem+json"),
        CommonResponses,
        ConditionalResponses,
        BodyResponses,
    ),
)]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller<IdentityProvidersWrite>,
    PathParam(id): PathParam<IdentityProviderId>,
    if_match: IfMatch,
    fields: BodyFields,
) -> Result<OkJson<IdentityProviderView>, Problem> {
    let id = id.map_err(not_found)?;
    let tenant = caller.tenant().id;
    // The host names are resolved before the row is locked.
    let before = table::find(app.db.home()?, tenant, id).await?;
    let before = before.ok_or_else(|| not_found(id))?;
    let checked = apply(&app, fields.clone(), &before)?;
    if checked.is_guarded && checked != before.provider {
        check_targets(&app.outbound.guard, &checked).await?;
    }
    let mut home = app.db.home()?.connection().await?;
    let tx = home.begin();
    let stored = table::lock(&tx, tenant, id).await?;
    let stored = stored.ok_or_else(|| not_found(id))?;
    if_match.check(&IdentityProviderView::from(&stored))?;
    let provider = if stored.provider == before.provider {
        checked
    } else {
        // Another request has changed the provider since the URLs were checked.
        let provider = apply(&app, fields, &stored)?;
        if provider.is_guarded {
            check_targets(&app.outbound.guard, &provider).await?;
        }
        provider
    };
    if provider == stored.provider {
        return Ok(OkJson(IdentityProviderView::from(&stored)));
    }
    let changed = StoredProvider {
        provider,
        ..stored.clone()
    };
    let updated = table::update(&tx, tenant, &changed).await;
    updated.map_err(|error| conflict(error, &changed.provider.issuer))?;
    let [old, new] = [&stored, &changed].map(|stored| ProviderSettingsView::from(&stored.provider));
    let data = events::diff(&old, &new)?;
    let context = ChangeContext::new(&caller, app.ids, app.clock.now(), &tx);
    context
        .record_event(EventKind::ProviderUpdated, tenant, &data)
        .await?;
    tx.commit().await?;
    Ok(OkJson(IdentityProviderView::from(&changed)))
}

fn apply(
    app: &App,
    fields: BodyFields,
    current: &StoredProvider,
) -> Result<IdentityProvider, Problem> {
    let settings = parse_update(fields, current)?;
    let provider = settings.into_provider(app.mode, Some(&app.keys));
    provider.map_err(Problem::from_field_errors)
}
