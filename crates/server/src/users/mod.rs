//! Users, and their identities at identity providers.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /users` | `list.rs` | secret clients with `users:read`; on behalf of a user, only that user |
//! | `POST /users` | `create.rs` | secret clients with `users:write` |
//! | `GET /users/{id}` | `read.rs` | secret clients with `users:read`; on behalf of a user, only that user |
//! | `PUT /users/{id}` | `update.rs` | secret clients with `users:write` |
//! | `GET /users/{id}/identities` | `list_identities.rs` | secret clients with `users:read` |
//!
//! `DELETE /users/{id}` is in `authentication/delete_user.rs`, because it ends sessions and subscriptions too, and
//! `GET /users/{id}/sessions` in `authentication/list_user_sessions.rs`.
//!
//! A secret client is a server that calls the API with a secret key; it acts on behalf of a user if it
//! also sends that user's access token.
//!
//! A user is created by signing up, or in advance by a secret client. A user created in advance is
//! linked to the first identity that signs up with the same verified email address. An identity is an
//! issuer and a subject. The email address is unique within a tenant, but it is not an identity. So is the
//! external id, by which the client's own system knows the user.

use std::sync::Arc;

use perennial_domain::{TenantId, User, UserId, ValidationError};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    db::{CellDatabase, Error},
    http::problem::{Code, Problem},
};

mod body;
mod create;
pub mod erase_sql;
pub mod identities_sql;
mod list;
mod list_identities;
pub mod lock_sql;
mod read;
pub mod table;
mod update;
mod user_list_sql;
mod user_ref;
mod view;

pub use user_ref::{KnownUser, UserRef};
pub use view::{SessionUserView, UserEvent, UserView};

/// Returns the endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list::list, create::create))
        .routes(routes!(read::read, update::update))
        .routes(routes!(list_identities::list_identities))
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

/// Returns the 409 for a user whose external id or email address another user has.
async fn duplicate(
    database: &CellDatabase,
    tenant: TenantId,
    user: &User,
) -> Result<Problem, Error> {
    let external_id = user.external_id.as_ref();
    let existing = match external_id {
        Some(id) => {
            let ids = std::slice::from_ref(id);
            table::find_ids_by_external_id(database, tenant, ids).await?
        }
        None => Vec::new(),
    };
    let other = existing.into_iter().find(|id| *id != user.id);
    Ok(match other {
        Some(other) => {
            let detail = "another user has this external_user_id";
            Problem::new(Code::DuplicateExternalId, detail).with_existing_id(Some(other))
        }
        None => email_in_use(),
    })
}
