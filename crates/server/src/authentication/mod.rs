//! Authentication: from an identity provider's token to a session of ours, and what can be done with that.
//!
//! | endpoint | file | who |
//! |---|---|---|
//! | `POST /authentication/sign-up` | `sign_up.rs` | any client with `auth` |
//! | `POST /authentication/sign-in` | `sign_in.rs` | any client with `auth` |
//! | `POST /authentication/refresh-token` | `refresh_token.rs` | the client that the session was begun with |
//! | `POST /authentication/user-logged-in` | `user_logged_in.rs` | any client with `auth`, with a bearer |
//! | `GET /authentication/tokens` | `tokens.rs` | the same |
//! | `POST /authentication/tokens/logout` | `logout.rs` | the same |
//! | `POST /authentication/tokens/revoke-all` | `revoke_all.rs` | the same |
//! | `POST /authentication/tokens/revoke-all-except-current` | `revoke_all_except_current.rs` | the same |
//! | `DELETE /authentication/delete-my-account/{auth_id}` | `delete_my_account.rs` | the same |
//! | `GET /.well-known/…` | `well_known.rs` | everybody |
//!
//! `providers/`, a room of its own, decides whom an outside token proves. What a session is, and what a refresh token is worth, is in
//! `domain/session.rs`; our tokens and the check that a session lives are in `callers/`, because every endpoint
//! needs them. `open.rs` begins sessions, `end.rs` ends them, `erase.rs` erases a user with all that is the
//! user's, `view.rs` is what is answered.

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;

mod credentials;
mod delete_my_account;
mod end;
mod erase;
mod logout;
mod open;
mod refresh_token;
mod revoke_all;
mod revoke_all_except_current;
mod sign_in;
mod sign_up;
mod tokens;
mod user_logged_in;
mod view;
mod well_known;

pub use erase::erase;

/// The endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(sign_in::sign_in))
        .routes(routes!(sign_up::sign_up))
        .routes(routes!(user_logged_in::user_logged_in))
        .routes(routes!(refresh_token::refresh_token))
        .routes(routes!(delete_my_account::delete_my_account))
        .routes(routes!(tokens::tokens))
        .routes(routes!(logout::logout))
        .routes(routes!(revoke_all::revoke_all))
        .routes(routes!(
            revoke_all_except_current::revoke_all_except_current
        ))
        .routes(routes!(well_known::keys))
        .routes(routes!(well_known::configuration))
}
