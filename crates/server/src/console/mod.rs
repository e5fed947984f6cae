//! The console: staff members sign in, and are invited, changed and removed.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `POST /console/session` | `console_session/create.rs` | anyone with a sign-in link |
//! | `GET /console/session` | `console_session/read.rs` | a signed-in staff member |
//! | `PUT /console/session` | `console_session/switch_tenant.rs` | a signed-in staff member |
//! | `DELETE /console/session` | `console_session/delete.rs` | a signed-in staff member |
//! | `GET /console/sign-in` | `openid_sign_in/options.rs` | public |
//! | `GET /console/sign-in/{provider}` | `openid_sign_in/start.rs` | public |
//! | `GET /console/callback` | `openid_sign_in/callback.rs` | public; the identity provider redirects here |
//! | `GET /console/`, and other paths below it | `web_app.rs` | public; only with the feature `console` |
//! | `GET /staff` | `staff_members/list.rs` | `staff:read` |
//! | `POST /staff` | `staff_members/invite.rs` | `staff:write` |
//! | `PUT /staff/{id}` | `staff_members/update.rs` | `staff:write` |
//! | `DELETE /staff/{id}` | `staff_members/remove.rs` | `staff:write` |
//!
//! The console is a client of the API like any other: `auth/` accepts a staff member's cookie on every endpoint.

use std::sync::Arc;

use axum::Router;
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;

mod console_session;
mod openid_sign_in;
mod staff_members;
#[cfg(feature = "console")]
mod web_app;

/// Returns the routes of the web app: none in a binary without the feature `console`.
pub fn web_app_router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    #[cfg(feature = "console")]
    return web_app::router();
    #[cfg(not(feature = "console"))]
    return Router::new();
}

/// Returns the endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .merge(console_session::router())
        .merge(openid_sign_in::router())
        .merge(staff_members::router())
}
