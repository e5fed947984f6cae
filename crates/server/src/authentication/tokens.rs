//! `GET /authentication/tokens`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use super::view::SessionView;
use crate::{
    app::App,
    callers::{Caller, SignedInUser, sessions::table},
    http::{
        answer::Private,
        params::NoQuery,
        problem::{AnyEndpoint, Problem},
    },
};

/// Where somebody is signed in.
#[derive(Serialize, ToSchema)]
#[schema(as = Sessions, example = json!({"data": [{
    "id": "ses_0192f0c1a2b37c4d8e5f60718293a4b5",
    "current": true,
    "client_id": "cli_0192f0c1a2b37c4d8e5f60718293a4b5",
    "created_at": "2026-11-15T09:30:00Z",
    "last_used_at": "2026-11-15T09:30:00Z",
    "expires_at": "2026-11-29T09:30:00Z",
    "ip": "203.0.113.7",
    "user_agent": "Mozilla/5.0",
    "issuer": "https://accounts.example.com"
}]}))]
pub struct SessionsView {
    /// One for each sign-in that has not ended, newest first; a thousand at most.
    data: Vec<SessionView>,
}

/// List one's sessions
///
/// Where the bearer's user is signed in, newest first.
#[utoipa::path(
    get,
    path = "/authentication/tokens",
    tag = "Authentication",
    operation_id = "listTokens",
    security(("client-id" = [], "bearer" = [])),
    responses(
        (status = 200, description = "The sessions.", body = SessionsView,
            headers(("Cache-Control" = String, description = "`no-store`."))),
        AnyEndpoint,
    ),
)]
pub async fn tokens(
    State(app): State<Arc<App>>,
    caller: Caller<SignedInUser>,
    _: NoQuery,
) -> Result<Private<SessionsView>, Problem> {
    let signed_in = caller.signed_in()?;
    let current = signed_in.session.id;
    let connection = app.engine_of(caller.tenant())?.connection().await?;
    let (tenant, user) = (caller.tenant().id, signed_in.user.id);
    let sessions = table::list(&connection, tenant, user, app.clock.now()).await?;
    let view = |session| SessionView::of(session, session.id == current);
    let data = sessions.iter().map(view).collect();
    Ok(Private(StatusCode::OK, SessionsView { data }))
}
