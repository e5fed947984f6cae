//! `GET /users/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::UserId;

use super::{no_such_user, table, view::UserView};
use crate::{
    app::App,
    callers::{Caller, UsersRead},
    http::{
        answer::Found,
        path::PathParam,
        problem::{AnyEndpoint, Problem, ProblemBody},
    },
};

/// Read a user
///
/// On behalf of a user, that one alone is found.
#[utoipa::path(
    get,
    path = "/users/{id}",
    tag = "Users",
    operation_id = "readUser",
    params(("id" = String, Path, description = "The user's id.", example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
        pattern = "^usr_[0-9a-f]{32}$")),
    responses(
        (status = 200, description = "The user.", body = UserView,
            headers(("ETag" = String, description = "What the user looks like."))),
        (status = 404, description = "There is no such user (`user_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller<UsersRead>,
    PathParam(id): PathParam<UserId>,
) -> Result<Found<UserView>, Problem> {
    let id = id.map_err(|why| no_such_user(Err(why)))?;
    if caller.user().is_some_and(|own| own.user.id != id) {
        return Err(no_such_user(Ok(id)));
    }
    let engine = app.engine_of(caller.tenant())?;
    let user = table::find(engine, caller.tenant().id, id).await?;
    user.map(|user| Found(UserView::from(&user)))
        .ok_or_else(|| no_such_user(Ok(id)))
}
