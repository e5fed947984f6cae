//! `GET /identity-providers/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::IdentityProviderId;

use super::{not_found, view::IdentityProviderView};
use crate::{
    app::App,
    auth::{Caller, IdentityProvidersRead},
    http::{
        openapi::IdentityProviderIdPath,
        path_param::PathParam,
        problem::{CommonResponses, Problem, ProblemBody},
        response::OkJson,
    },
    identity_providers::table,
};

/// Get an identity provider
///
/// The client secret is not returned.
#[utoipa::path(
    get,
    path = "/identity-providers/{id}",
    tag = "Identity providers",
    operation_id = "readIdentityProvider",
    params(IdentityProviderIdPath),
    responses(
        (status = 200, description = "The provider.", body = IdentityProviderView),
        (status = 404, description = "There is no such provider (`identity_provider_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller<IdentityProvidersRead>,
    PathParam(id): PathParam<IdentityProviderId>,
) -> Result<OkJson<IdentityProviderView>, Problem> {
    let id = id.map_err(not_found)?;
    let stored = table::find(app.db.home()?, caller.tenant().id, id).await?;
    let stored = stored.ok_or_else(|| not_found(id))?;
    Ok(OkJson(IdentityProviderView::from(&stored)))
}
