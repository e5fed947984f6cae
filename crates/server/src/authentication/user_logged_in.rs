//! `POST /authentication/user-logged-in`

use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::view::SessionView;
use crate::{
    auth::{Caller, SignedInUser},
    http::{
        json::NoBody,
        problem::{CommonResponses, EmptyBodyResponses, Problem},
        response::no_store_json,
    },
    users::SessionUserView,
};

/// The signed-in user and the session.
#[derive(Serialize, ToSchema)]
#[schema(as = LoggedIn)]
pub struct SignedInView {
    /// Always true; the response is 401 otherwise.
    #[schema(example = true)]
    logged_in: bool,
    /// The signed-in user.
    user: SessionUserView,
    /// The session of the request.
    session: SessionView,
}

/// Check a session
///
/// Checks that the access token is valid and its session is active. A session that another instance revoked is rejected
/// within a second.
#[utoipa::path(
    post,
    path = "/authentication/user-logged-in",
    tag = "Authentication",
    operation_id = "checkSession",
    security(("client-id" = [], "bearer" = [])),
    responses(
        (status = 200, description = "The user is signed in.", body = SignedInView,
            headers(("Cache-Control" = String, description = "`no-store`, or how long the response may be cached."))),
        CommonResponses,
        EmptyBodyResponses,
    ),
)]
pub async fn user_logged_in(caller: Caller<SignedInUser>, _: NoBody) -> Result<Response, Problem> {
    let user_session = caller.require_user_session()?;
    // Rendered once and cached with the session.
    let json = user_session.rendered(|| {
        let view = SignedInView {
            logged_in: true,
            user: SessionUserView::from(&user_session.user),
            session: SessionView::new(&user_session.session, true),
        };
        serde_json::to_vec(&view).map_err(|error| Problem::internal(&error))
    })?;
    Ok(no_store_json(json))
}
