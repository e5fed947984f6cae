//! `GET /users/{id}/sessions`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use perennial_domain::UserId;

use super::{list_sessions::SessionsView, view::SessionView};
use crate::{
    app::App,
    auth::{Caller, UserSignIns, sessions::user_sessions_sql},
    http::{
        openapi::UserIdPath,
        path_param::PathParam,
        problem::{CommonResponses, Problem, ProblemBody},
        response::NoStore,
    },
    users::{self, user_not_found},
};

/// List a user's sessions
///
/// Returns the active sessions of a user, newest first: on which devices the user is signed in, and when each was last used.
#[utoipa::path(
    get,
    path = "/users/{id}/sessions",
    tag = "Users",
    operation_id = "listUserSessions",
    params(UserIdPath),
    responses(
        (status = 200, description = "The sessions.", body = SessionsView),
        (status = 404, description = "There is no such user (`user_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn list_user_sessions(
    State(app): State<Arc<App>>,
    caller: Caller<UserSignIns>,
    PathParam(id): PathParam<UserId>,
) -> Result<NoStore<SessionsView>, Problem> {
    let id = id.map_err(|error| user_not_found(Err(error)))?;
    let (tenant, database) = (caller.tenant(), app.database_for(caller.tenant())?);
    let user = users::table::find(database, tenant.id, id).await?;
    user.ok_or_else(|| user_not_found(Ok(id)))?;
    let connection = database.connection().await?;
    let now = app.clock.now();
    let sessions = user_sessions_sql::list_active(&connection, tenant, id, now).await?;
    // None of them is the session of the request.
    let view = |session| SessionView::new(session, false);
    let data = sessions.iter().map(view).collect();
    Ok(NoStore(StatusCode::OK, SessionsView { data }))
}
