//! `GET /users/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::UserId;

use super::{table, user_not_found, view::UserView};
use crate::{
    app::App,
    auth::{Caller, UsersRead},
    http::{
        openapi::UserIdPath,
        path_param::PathParam,
        problem::{CommonResponses, Problem, ProblemBody},
        response::OkJson,
    },
};

/// Get a user
///
/// With the access token of a user, only that user is found.
#[utoipa::path(
    get,
    path = "/users/{id}",
    tag = "Users",
    operation_id = "readUser",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(UserIdPath),
    responses(
        (status = 200, description = "The user.", body = UserView),
        (status = 404, description = "There is no such user (`user_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller<UsersRead>,
    PathParam(id): PathParam<UserId>,
) -> Result<OkJson<UserView>, Problem> {
    let id = id.map_err(|error| user_not_found(Err(error)))?;
    if caller
        .user_session()
        .is_some_and(|session| session.user.id != id)
    {
        return Err(user_not_found(Ok(id)));
    }
    let database = app.database_for(caller.tenant())?;
    let user = table::find(database, caller.tenant().id, id).await?;
    user.map(|user| OkJson(UserView::from(&user)))
        .ok_or_else(|| user_not_found(Ok(id)))
}
