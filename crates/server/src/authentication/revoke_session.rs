//! `DELETE /authentication/tokens/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::SessionId;

use super::revoke_sessions::revoke;
use crate::{
    app::App,
    auth::{
        Caller, SignedInUser,
        sessions::{RevokeReason, user_sessions_sql},
    },
    http::{
        openapi::SessionIdPath,
        path_param::PathParam,
        problem::{Code, CommonResponses, Problem, ProblemBody},
        response::NoContent,
    },
};

/// Revoke a session
///
/// Revokes one session of the signed-in user, for example on a lost device. `GET /authentication/tokens` lists the ids.
#[utoipa::path(
    delete,
    path = "/authentication/tokens/{id}",
    tag = "Authentication",
    operation_id = "revokeSession",
    security(("client-id" = [], "bearer" = [])),
    params(SessionIdPath),
    responses(
        (status = 204, description = "The session was revoked."),
        (status = 404, description = "The user has no active session with this id (`session_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn revoke_session(
    State(app): State<Arc<App>>,
    caller: Caller<SignedInUser>,
    PathParam(id): PathParam<SessionId>,
) -> Result<NoContent, Problem> {
    let user = caller.require_user_session()?.user.id;
    let id = id.map_err(|_| session_not_found())?;
    let tenant = caller.tenant();
    let mut connection = app.database_for(tenant)?.connection().await?;
    let tx = connection.begin();
    if !user_sessions_sql::is_active(&tx, tenant, user, id, app.clock.now()).await? {
        return Err(session_not_found());
    }
    // Zero if a concurrent request has revoked it.
    if revoke(&app, tx, &caller, RevokeReason::RevokeOne, &[id]).await? == 0 {
        return Err(session_not_found());
    }
    Ok(NoContent)
}

fn session_not_found() -> Problem {
    let detail = "the signed-in user has no active session with this id";
    Problem::new(Code::SessionNotFound, detail)
}
