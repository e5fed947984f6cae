//! `POST /authentication/user-logged-in`

use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::view::SessionView;
use crate::{
    callers::{Caller, SignedInUser, sessions::SignedIn},
    http::{
        answer::private,
        json::NoBody,
        problem::{AnyEndpoint, Problem, WithEmptyBody},
    },
    users::UserView,
};

/// Who is signed in, and by which session.
#[derive(Serialize, ToSchema)]
#[schema(as = LoggedIn, example = json!({
    "logged_in": true,
    "user": {"id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5", "email": "ada@example.com", "created_at": "2026-11-15T09:30:00Z"},
    "session": {
        "id": "ses_0192f0c1a2b37c4d8e5f60718293a4b5",
        "current": true,
        "client_id": "cli_0192f0c1a2b37c4d8e5f60718293a4b5",
        "created_at": "2026-11-15T09:30:00Z",
        "last_used_at": "2026-11-15T09:30:00Z",
        "expires_at": "2026-11-29T09:30:00Z",
        "ip": "203.0.113.7",
        "user_agent": "Mozilla/5.0",
        "issuer": "https://accounts.example.com"
    }
}))]
pub struct SignedInView {
    /// Always true; otherwise the answer is 401.
    #[schema(example = true)]
    logged_in: bool,
    /// Who.
    user: UserView,
    /// By which session.
    session: SessionView,
}

/// Check a session
///
/// Whether the bearer of this access token is signed in: its session has not ended, here or anywhere else, up to
/// a second ago.
#[utoipa::path(
    post,
    path = "/authentication/user-logged-in",
    tag = "Authentication",
    operation_id = "userLoggedIn",
    security(("client-id" = [], "bearer" = [])),
    responses(
        (status = 200, description = "Signed in.", body = SignedInView,
            headers(("Cache-Control" = String, description = "`no-store`."))),
        AnyEndpoint,
        WithEmptyBody,
    ),
)]
pub async fn user_logged_in(caller: Caller<SignedInUser>, _: NoBody) -> Result<Response, Problem> {
    let SignedIn {
        user,
        session,
        shown,
    } = caller.signed_in()?;
    if let Some(shown) = shown.get() {
        return Ok(private(shown.clone()));
    }
    let view = SignedInView {
        logged_in: true,
        user: UserView::from(user),
        session: SessionView::of(session, true),
    };
    let bytes = serde_json::to_vec(&view).map_err(|error| Problem::internal(&error))?;
    Ok(private(shown.get_or_init(|| bytes.into()).clone()))
}
