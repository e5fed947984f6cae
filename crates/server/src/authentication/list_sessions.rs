//! `GET /authentication/tokens`
//!
//! The path says "tokens", but the endpoint lists sessions: each session has its own access and
//! refresh tokens.

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use super::view::SessionView;
use crate::{
    app::App,
    auth::{Caller, SignedInUser, sessions::user_sessions_sql},
    http::{
        problem::{CommonResponses, Problem},
        query::NoQuery,
        response::NoStore,
    },
};

/// The active sessions of a user.
#[derive(Serialize, ToSchema)]
#[schema(as = Sessions)]
pub struct SessionsView {
    /// Active sessions, newest first; at most 1,000.
    pub(super) data: Vec<SessionView>,
}

/// List sessions
///
/// Returns the active sessions of the signed-in user, newest first.
#[utoipa::path(
    get,
    path = "/authentication/tokens",
    tag = "Authentication",
    operation_id = "listSessions",
    security(("client-id" = [], "bearer" = [])),
    responses(
        (status = 200, description = "The sessions.", body = SessionsView,
            headers(("Cache-Control" = String, description = "`no-store`, or how long the response may be cached."))),
        CommonResponses,
    ),
)]
pub async fn list_sessions(
    State(app): State<Arc<App>>,
    caller: Caller<SignedInUser>,
    _: NoQuery,
) -> Result<NoStore<SessionsView>, Problem> {
    let user_session = caller.require_user_session()?;
    let current = user_session.session.id;
    let connection = app.database_for(caller.tenant())?.connection().await?;
    let (tenant, user) = (caller.tenant(), user_session.user.id);
    let mut sessions =
        user_sessions_sql::list_active(&connection, tenant, user, app.clock.now()).await?;
    // This request is a use of the session that may not be stored yet.
    for session in sessions.iter_mut().filter(|one| one.id == current) {
        session.last_used_at = { session.last_used_at }.max(user_session.session.last_used_at);
    }
    let view = |session| SessionView::new(session, session.id == current);
    let data = sessions.iter().map(view).collect();
    Ok(NoStore(StatusCode::OK, SessionsView { data }))
}
