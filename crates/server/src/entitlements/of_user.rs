//! `GET /entitlements/{user_id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::UserId;

use super::{entitlements, view::EntitlementsView};
use crate::{
    app::App,
    callers::{Caller, EntitlementsRead},
    http::{
        answer::Found,
        path::PathParam,
        problem::{AnyEndpoint, Problem, ProblemBody},
    },
    users::no_such_user,
};

/// Read a user's entitlements
///
/// What the user may do now: of all subscriptions that give access the highest tier and quota, all features, and the
/// latest end. On behalf of a user, that one alone is found.
#[utoipa::path(
    get,
    path = "/entitlements/{user_id}",
    tag = "Entitlements",
    operation_id = "readEntitlements",
    params(("user_id" = String, Path, description = "The user's id.", example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
        pattern = "^usr_[0-9a-f]{32}$")),
    responses(
        (status = 200, description = "What the user may do now.", body = EntitlementsView,
            headers(("ETag" = String, description = "What the entitlements look like."))),
        (status = 404, description = "There is no such user (`user_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
    ),
)]
pub async fn of_user(
    State(app): State<Arc<App>>,
    caller: Caller<EntitlementsRead>,
    PathParam(id): PathParam<UserId>,
) -> Result<Found<EntitlementsView>, Problem> {
    let id = id.map_err(|why| no_such_user(Err(why)))?;
    if caller.user().is_some_and(|own| own.user.id != id) {
        return Err(no_such_user(Ok(id)));
    }
    entitlements(&app, &caller, id).await
}
