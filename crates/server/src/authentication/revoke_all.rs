//! `POST /authentication/tokens/revoke-all`

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

/// Sign out everywhere
///
/// Ends every session of the bearer's user, this one too.
#[utoipa::path(
    post,
    path = "/authentication/tokens/revoke-all",
    tag = "Authentication",
    operation_id = "revokeAll",
    security(("client-id" = [], "bearer" = [])),
    responses(
        (status = 200, description = "What was ended.", body = RevokedView,
            headers(("Cache-Control" = String, description = "`no-store`."))),
        AnyEndpoint,
        WithEmptyBody,
    ),
)]
pub async fn revoke_all(
    State(app): State<Arc<App>>,
    caller: Caller<SignedInUser>,
    _: NoBody,
) -> Result<Private<RevokedView>, Problem> {
    let ended = end(&app, &caller, Reason::RevokeAll, Which::All).await?;
    Ok(Private(StatusCode::OK, ended))
}
