//! `GET /entitlements/{user_id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::UserId;

use super::{entitlements, view::EntitlementsView};
use crate::{
    app::App,
    auth::{Caller, EntitlementsRead},
    http::{
        path_param::PathParam,
        problem::{CommonResponses, Problem, ProblemBody},
        response::OkJson,
    },
    users::user_not_found,
};

/// Read a user's entitlements
///
/// Combines all subscriptions with access: the highest tier and quota, all features, and the latest end. With the
/// access token of a user, only that user is found.
#[utoipa::path(
    get,
    path = "/entitlements/{user_id}",
    tag = "Entitlements",
    operation_id = "readEntitlements",
    params(("user_id" = String, Path, description = "Id of the user.", example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
        pattern = "^usr_[0-9a-f]{32}$")),
    responses(
        (status = 200, description = "The current entitlements of the user.", body = EntitlementsView,
            headers(("ETag" = String, description = "Version of the entitlements."))),
        (status = 404, description = "No user has this id (`user_not_found`).", body = ProblemBody,
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
