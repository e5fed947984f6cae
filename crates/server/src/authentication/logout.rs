//! `POST /authentication/tokens/logout`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};

use super::end::{RevokedView, Which, end};
use crate::{
    app::App,
    callers::{Caller, SignedInUser, sessions::Reason},
    http::{
        answer::Private,
        json::NoBody,
        problem::{AnyEndpoint, Problem, WithEmptyBody},
    },
};

/// Sign out
///
/// Ends the session that the request is sent with.
#[utoipa::path(
    post,
    path = "/authentication/tokens/logout",
    tag = "Authentication",
    operation_id = "logOut",
    security(("client-id" = [], "bearer" = [])),
    responses(
        (status = 200, description = "What was ended.", body = RevokedView,
            headers(("Cache-Control" = String, description = "`no-store`."))),
        AnyEndpoint,
        WithEmptyBody,
    ),
)]
pub async fn logout(
    State(app): State<Arc<App>>,
    caller: Caller<SignedInUser>,
    _: NoBody,
) -> Result<Private<RevokedView>, Problem> {
    let ended = end(&app, &caller, Reason::Logout, Which::Current).await?;
    Ok(Private(StatusCode::OK, ended))
}
