//! `DELETE /identity-providers/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{EventKind, IdentityProviderId};
use serde_json::json;

use super::{end_sessions::end_sessions, not_found, view::IdentityProviderView};
use crate::{
    app::App,
    auth::{Caller, IdentityProvidersWrite},
    http::{
        etag::IfMatch,
        openapi::{EndSessionsParam, IdentityProviderIdPath, IfMatchParam},
        path_param::PathParamWithQuery,
        problem::{CommonResponses, ConditionalResponses, Problem, ProblemBody},
        query::QueryParams,
        response::NoContent,
    },
    identity_providers::table::{self, StoredProvider},
    record::ChangeContext,
};

/// Remove an identity provider
///
/// The service rejects its tokens within a second. With `end_sessions`, the sessions of users who signed in with it are
/// revoked too, those of sign-ins in progress after 12 seconds.
#[utoipa::path(
    delete,
    path = "/identity-providers/{id}",
    tag = "Identity providers",
    operation_id = "deleteIdentityProvider",
    params(
        IdentityProviderIdPath,
        EndSessionsParam,
        IfMatchParam,
    ),
    responses(
        (status = 204, description = "Removed."),
        (status = 404, description = "There is no such provider (`identity_provider_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        ConditionalResponses,
    ),
)]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller<IdentityProvidersWrite>,
    PathParamWithQuery(id): PathParamWithQuery<IdentityProviderId>,
    mut params: QueryParams,
    if_match: IfMatch,
) -> Result<NoContent, Problem> {
    let ends_sessions = params.required("end_sessions");
    params.finish()?;
    let id = id.map_err(not_found)?;
    let mut home = app.db.home()?.connection().await?;
    let tx = home.begin();
    let context = ChangeContext::new(&caller, app.ids, app.clock.now(), &tx);
    let removed = remove_provider(&context, id, &if_match).await?;
    tx.commit().await?;
    drop(home);
    if ends_sessions == Some(true) {
        let (tenant, issuer) = (caller.tenant(), removed.provider.issuer);
        end_sessions(&app, tenant, issuer, caller.actor()).await?;
    }
    Ok(NoContent)
}

/// Removes a provider from a tenant and records the event. The caller commits.
pub async fn remove_provider(
    context: &ChangeContext<'_>,
    id: IdentityProviderId,
    if_match: &IfMatch,
) -> Result<StoredProvider, Problem> {
    let stored = table::lock(context.tx, context.tenant, id).await?;
    let stored = stored.ok_or_else(|| not_found(id))?;
    if_match.check(&IdentityProviderView::from(&stored))?;
    table::delete(context.tx, context.tenant, id).await?;
    let data = json!({"issuer": stored.provider.issuer});
    context
        .record_event(EventKind::ProviderRemoved, context.tenant, &data)
        .await?;
    Ok(stored)
}
