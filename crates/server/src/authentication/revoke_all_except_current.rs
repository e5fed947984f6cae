//! `POST /authentication/tokens/revoke-all-except-current`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};

use super::revoke_sessions::{RevokedView, revoke_all};
use crate::{
    app::App,
    auth::{Caller, SignedInUser},
    http::{
        json::NoBody,
        problem::{CommonResponses, EmptyBodyResponses, Problem},
        response::NoStore,
    },
};

/// Sign out everywhere else
///
/// Revokes every session of the signed-in user except the current one.
#[utoipa::path(
    post,
    path = "/authentication/tokens/revoke-all-except-current",
    tag = "Authentication",
    operation_id = "revokeOtherSessions",
    security(("client-id" = [], "bearer" = [])),
    responses(
        (status = 200, description = "The number of revoked sessions.", body = RevokedView,
            headers(("Cache-Control" = String, description = "`no-store`, or how long the response may be cached."))),
        CommonResponses,
        EmptyBodyResponses,
    ),
)]
pub async fn revoke_all_except_current(
    State(app): State<Arc<App>>,
    caller: Caller<SignedInUser>,
    _: NoBody,
) -> Result<NoStore<RevokedView>, Problem> {
    let revoked = revoke_all(&app, &caller, false).await?;
    Ok(NoStore(StatusCode::OK, revoked))
}
