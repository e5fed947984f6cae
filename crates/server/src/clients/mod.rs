//! Clients and their API keys.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /clients` | `list.rs` | secret clients with `clients:read` |
//! | `POST /clients` | `create.rs` | secret clients with `clients:write` |
//! | `GET /clients/{id}` | `read.rs` | secret clients with `clients:read` |
//! | `PUT /clients/{id}` | `update.rs` | secret clients with `clients:write` |
//! | `POST /clients/{id}/rotate` | `rotate_api_key.rs` | secret clients with `clients:write` |
//! | `DELETE /clients/{id}` | `disable.rs` | secret clients with `clients:write` |
//!
//! An API key is the value of the `client-id` header. Only its hash is stored, in `client_values`. During a rotation a
//! client has two valid keys. Clients are stored in the home cell; `auth/` finds them by their key.
//!
//! Callers cannot get more access than they have: a client can create, change and rotate only clients whose scopes it has
//! itself ([`ScopeLimit`]). The command line has no such limit.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::Timestamp;
use perennial_domain::{ClientId, ClientKind, EventKind, Id, Rule, Scope, ValidationError};
use serde_json::json;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::SystemContext,
    db::{Error, Sql, Transaction},
    http::{
        etag::IfMatch,
        problem::{Code, Problem},
    },
    randomness::Randomness,
    record::{ChangeOrigin, Locked, Record},
};

mod body;
mod create;
mod disable;
mod list;
mod read;
mod rotate_api_key;
pub mod table;
mod update;
mod view;

pub use body::parse_origin;
pub use create::{NewClient, insert_client};
pub use disable::disable_client;
pub use rotate_api_key::rotate_api_key;
use table::ClientRow;
pub use update::{ClientChanges, update_client};
pub use view::ClientView;

/// Returns the endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list::list, create::create))
        .routes(routes!(read::read, update::update, disable::disable))
        .routes(routes!(rotate_api_key::rotate))
}

impl Record for ClientRow {
    type Id = ClientId;
    type View = ClientView;

    const NOUN: &'static str = "client";
    const KEY: &'static str = "id";
    const NOT_FOUND: Code = Code::ClientNotFound;
    const DELETED: EventKind = EventKind::ClientDisabled;
    const SOFT_DELETE: &'static Sql = &table::DISABLE;

    fn id(&self) -> ClientId {
        self.id
    }

    fn updated_at(&self) -> Timestamp {
        self.created_at
    }

    fn view(&self, _now: Timestamp) -> ClientView {
        ClientView::from(self)
    }
}

/// The scopes that a caller can give to a client.
#[derive(Debug, Clone, Copy)]
pub enum ScopeLimit<'a> {
    /// Every scope: the caller is an operator.
    All,
    /// The caller's own scopes.
    Only(&'a [Scope]),
}

impl ScopeLimit<'_> {
    fn includes(self, scope: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(scopes) => scopes.iter().any(|own| own.as_str() == scope),
        }
    }

    /// Rejects access to a client with a scope that the caller does not have.
    fn check<S: AsRef<str>>(self, scopes: &[S]) -> Result<(), Problem> {
        let mut scopes = scopes.iter().map(AsRef::as_ref);
        match scopes.find(|scope| !self.includes(scope)) {
            None => Ok(()),
            Some(scope) => {
                let detail = format!(
                    "requires the scope {scope}, which the managed client has and this client does not have"
                );
                Err(Problem::new(Code::InsufficientScope, detail))
            }
        }
    }
}

fn generate_api_key(kind: ClientKind) -> String {
    let random: [u8; 32] = Randomness.bytes();
    format!("{}{}", kind.prefix(), BASE64_URL_SAFE_NO_PAD.encode(random))
}

/// Returns the scopes as text, each once, in the order of their declaration.
fn scope_texts(scopes: &[Scope]) -> Vec<String> {
    let scopes = Scope::ALL.iter().filter(|scope| scopes.contains(scope));
    scopes.map(ToString::to_string).collect()
}

/// Checks that a client of this kind can have these scopes and origins.
fn check_settings(
    kind: ClientKind,
    scopes: &[Scope],
    allowed_origins: &[String],
) -> Result<(), Problem> {
    let mut errors = Vec::new();
    let possible = kind.allowed_scopes();
    if let Some(scope) = scopes.iter().find(|scope| !possible.contains(scope)) {
        let message = format!("a {kind} client cannot have the scope {scope}");
        errors.push((
            "scopes",
            ValidationError {
                rule: Rule::UnknownValue,
                message,
                allowed: possible.iter().map(|scope| scope.as_str()).collect(),
            },
        ));
    }
    if kind == ClientKind::Secret && !allowed_origins.is_empty() {
        let message =
            "allowed origins require a publishable client; browsers must not see a secret";
        let error = ValidationError::new(Rule::InvalidFormat, message);
        errors.push(("allowed_origins", error));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Problem::from_field_errors(errors))
    }
}

/// Locks an enabled client until the end of the transaction.
async fn lock_enabled(
    tx: &Transaction<'_>,
    origin: &ChangeOrigin<'_>,
    id: ClientId,
    if_match: &IfMatch,
) -> Result<Locked<ClientRow>, Problem> {
    let row = table::lock(tx, origin.tenant.id, id).await?;
    let locked = Locked::new(row, id, origin.clock, if_match)?;
    if locked.record.disabled_at.is_some() {
        let detail = format!("client {id} is disabled and cannot be changed");
        return Err(Problem::new(Code::ClientDisabled, detail));
    }
    Ok(locked)
}

/// Deletes up to `limit` API keys that expired after a rotation, and returns how many. Expired keys
/// are rejected even before they are deleted, so this sends no notification.
pub async fn delete_expired_api_keys(
    tx: &Transaction<'_>,
    context: SystemContext,
    limit: i64,
) -> Result<usize, Error> {
    let deleted = table::delete_expired(tx, limit).await?;
    for (tenant, client) in &deleted {
        let kind = EventKind::ClientValueExpired;
        context
            .record(tx, *tenant, client.uuid(), kind, &json!({}))
            .await?;
    }
    Ok(deleted.len())
}
