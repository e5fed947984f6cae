//! `GET /entitlements/{user_id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::UserId;

use super::{entitlements, view::EntitlementsView};
use crate::{
    app::App,
    auth::{Caller, EntitlementsRead},
    http::{
        openapi::EntitledUserPath,
        path_param::PathParam,
        problem::{CommonResponses, Problem, ProblemBody},
        response::OkJson,
    },
    users::user_not_found,
};

/// Get a user's entitlements
///
/// Combines all subscriptions with access: the highest tier and quota, all features, and the latest end. With the
/// access token of a user, only that user is found.
#[utoipa::path(
    get,
    path = "/entitlements/{user_id}",
    tag = "Entitlements",
    operation_id = "readEntitlements",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(EntitledUserPath),
    responses(
        (status = 200, description = "The current entitlements of the user.", body = EntitlementsView),
        (status = 404, description = "There is no such user (`user_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller<EntitlementsRead>,
    PathParam(id): PathParam<UserId>,
) -> Result<OkJson<EntitlementsView>, Problem> {
    let id = id.map_err(|error| user_not_found(Err(error)))?;
    if caller
        .user_session()
        .is_some_and(|session| session.user.id != id)
    {
        return Err(user_not_found(Ok(id)));
    }
    entitlements(&app, &caller, id).await
}
