//! Users: the people who sign in.
//!
//! | endpoint | file | who |
//! |---|---|---|
//! | `GET /users?email=` | `find.rs` | secret clients with `users:read`; on behalf of a user, that one |
//! | `POST /users` | `create.rs` | secret clients with `users:write` |
//! | `GET /users/{id}` | `read.rs` | secret clients with `users:read`; on behalf of a user, that one |
//!
//! A user comes to be by signing up, or is made ahead of time by a server that knows the e-mail address and is
//! then bound to whoever first signs up with it, verified. It is known to identity providers by its
//! *identities*, issuer and subject; the e-mail address is unique among a tenant's users, and never a key.

use std::sync::Arc;

use perennial_domain::{Invalid, UserId};
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

pub use view::{UserView, email_in};

/// The endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(find::find, create::create))
        .routes(routes!(read::read))
}

/// There is no user with this id, or it cannot be one.
pub fn no_such_user(id: Result<UserId, Invalid>) -> Problem {
    let detail = match id {
        Ok(id) => format!("no user has this id: {id}"),
        Err(why) => format!("no user has this id: {why}"),
    };
    Problem::new(Code::UserNotFound, detail)
}

/// The e-mail address is another account's.
pub fn email_in_use() -> Problem {
    let detail = "another account has this e-mail address; upper and lower case count as the same";
    Problem::new(Code::EmailInUse, detail)
}
