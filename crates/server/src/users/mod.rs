//! Users, and their identities at identity providers.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /users?email=` | `find.rs` | secret clients with `users:read`; on behalf of a user, only that user |
//! | `POST /users` | `create.rs` | secret clients with `users:write` |
//! | `GET /users/{id}` | `read.rs` | secret clients with `users:read`; on behalf of a user, only that user |
//!
//! A secret client is a server that calls the API with a secret key; it acts on behalf of a user if it
//! also sends that user's access token.
//!
//! A user is created by signing up, or in advance by a secret client. A user created in advance is
//! linked to the first identity that signs up with the same verified email address. An identity is an
//! issuer and a subject. The email address is unique within a tenant, but it is not an identity.

use std::sync::Arc;

use perennial_domain::{UserId, ValidationError};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    http::problem::{Code, Problem},
};

mod create;
mod find;
mod read;
pub mod table;
mod view;

pub use view::UserView;

/// Returns the endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(find::find, create::create))
        .routes(routes!(read::read))
}

/// Returns the problem for an id that is malformed or belongs to no user.
pub fn user_not_found(id: Result<UserId, ValidationError>) -> Problem {
    let detail = match id {
        Ok(id) => format!("no user has the id {id}"),
        Err(error) => error.message,
    };
    Problem::new(Code::UserNotFound, detail)
}

pub fn email_in_use() -> Problem {
    let detail = "another user has this email address, ignoring case";
    Problem::new(Code::EmailInUse, detail)
}
