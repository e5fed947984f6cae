//! `POST /authentication/tokens/revoke-all-except-current`

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

/// Sign out everywhere else
///
/// Ends every session of the bearer's user but the one that the request is sent with.
#[utoipa::path(
    post,
    path = "/authentication/tokens/revoke-all-except-current",
    tag = "Authentication",
    operation_id = "revokeAllExceptCurrent",
    security(("client-id" = [], "bearer" = [])),
    responses(
        (status = 200, description = "What was ended.", body = RevokedView,
            headers(("Cache-Control" = String, description = "`no-store`."))),
        AnyEndpoint,
        WithEmptyBody,
    ),
)]
pub async fn revoke_all_except_current(
    State(app): State<Arc<App>>,
    caller: Caller<SignedInUser>,
    _: NoBody,
) -> Result<Private<RevokedView>, Problem> {
    let ended = end(&app, &caller, Reason::RevokeAllExceptCurrent, Which::Others).await?;
    Ok(Private(StatusCode::OK, ended))
}
