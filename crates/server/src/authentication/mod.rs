//! Sign-up, sign-in, sessions and account deletion.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `POST /authentication/sign-up` | `sign_up.rs` | any client with scope `auth` |
//! | `POST /authentication/sign-in` | `sign_in.rs` | any client with scope `auth` |
//! | `POST /authentication/refresh-token` | `refresh.rs` | the client that created the session |
//! | `POST /authentication/user-logged-in` | `user_logged_in.rs` | a signed-in user |
//! | `GET /authentication/tokens` | `list_sessions.rs` | a signed-in user |
//! | `DELETE /authentication/tokens/{id}` | `revoke_session.rs` | a signed-in user |
//! | `POST /authentication/tokens/logout` | `logout.rs` | a signed-in user |
//! | `POST /authentication/tokens/revoke-all` | `revoke_all.rs` | a signed-in user |
//! | `POST /authentication/tokens/revoke-all-except-current` | `revoke_all_except_current.rs` | a signed-in user |
//! | `DELETE /authentication/delete-my-account/{auth_id}` | `delete_my_account.rs` | a signed-in user |
//! | `DELETE /users/{id}` | `delete_user.rs` | secret clients with `users:write` |
//! | `GET /.well-known/…` | `well_known.rs` | public |
//!
//! `identity_providers/` verifies external tokens. `auth/` issues this service's tokens and checks
//! sessions; it is a separate module because every endpoint uses it. The rules of sessions and
//! refresh tokens are in the domain crate, in `session.rs`.

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;

mod create_session;
mod credentials;
mod delete_my_account;
mod delete_user;
mod erase_user;
mod list_sessions;
mod list_user_sessions;
mod logout;
mod refresh;
mod revoke_all;
mod revoke_all_except_current;
mod revoke_session;
mod revoke_sessions;
mod sign_in;
mod sign_up;
mod user_logged_in;
mod view;
mod well_known;

pub use erase_user::erase_user;

pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(sign_in::sign_in))
        .routes(routes!(sign_up::sign_up))
        .routes(routes!(user_logged_in::user_logged_in))
        .routes(routes!(refresh::refresh_token))
        .routes(routes!(delete_my_account::delete_my_account))
        .routes(routes!(delete_user::delete_user))
        .routes(routes!(list_sessions::list_sessions))
        .routes(routes!(list_user_sessions::list_user_sessions))
        .routes(routes!(revoke_session::revoke_session))
        .routes(routes!(logout::logout))
        .routes(routes!(revoke_all::revoke_all))
        .routes(routes!(
            revoke_all_except_current::revoke_all_except_current
        ))
        .routes(routes!(well_known::keys))
        .routes(routes!(well_known::configuration))
}
