//! `POST /authentication/tokens/logout`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};

use super::revoke_sessions::{RevokedView, revoke_current};
use crate::{
    app::App,
    auth::{Caller, SignedInUser},
    http::{
        json::NoBody,
        problem::{CommonResponses, EmptyBodyResponses, Problem},
        response::NoStore,
    },
};

/// Sign out
///
/// Revokes the current session of the signed-in user.
#[utoipa::path(
    post,
    path = "/authentication/tokens/logout",
    tag = "Authentication",
    operation_id = "signOut",
    security(("client-id" = [], "bearer" = [])),
    responses(
        (status = 200, description = "The number of revoked sessions.", body = RevokedView,
            headers(("Cache-Control" = String, description = "`no-store`, or how long the response may be cached."))),
        CommonResponses,
        EmptyBodyResponses,
    ),
)]
pub async fn logout(
    State(app): State<Arc<App>>,
    caller: Caller<SignedInUser>,
    _: NoBody,
) -> Result<NoStore<RevokedView>, Problem> {
    let revoked = revoke_current(&app, &caller).await?;
    Ok(NoStore(StatusCode::OK, revoked))
}
