//! The identity providers of a tenant: the API that adds, changes and removes them. `identity_providers/` verifies their
//! tokens.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /identity-providers` | `list.rs` | secret clients with `identity_providers:read` |
//! | `POST /identity-providers` | `create.rs` | secret clients with `identity_providers:write` |
//! | `GET /identity-providers/{id}` | `read.rs` | secret clients with `identity_providers:read` |
//! | `PUT /identity-providers/{id}` | `update.rs` | secret clients with `identity_providers:write` |
//! | `DELETE /identity-providers/{id}` | `delete.rs` | secret clients with `identity_providers:write` |
//!
//! The service sends requests to the URLs of a provider. Those that come from API clients reach public addresses only,
//! like webhooks: such a provider is guarded, and each of its requests is checked. Operators can add providers with any
//! address.

use std::sync::Arc;

use perennial_domain::{Rule, ValidationError};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    db,
    http::{
        outbound::AddressGuard,
        problem::{Code, Problem, ProblemFieldError},
    },
    identity_providers::IdentityProvider,
};

mod body;
mod create;
mod delete;
mod end_sessions;
mod list;
mod provider_settings;
mod read;
mod update;
mod view;

pub use create::insert_provider;
pub use delete::remove_provider;
pub use end_sessions::SIGN_IN_TIMEOUT;
pub use provider_settings::{ClientSecret, ProviderSettings, VerifyMethod};

/// Returns the endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list::list, create::create))
        .routes(routes!(read::read, update::update, delete::delete))
}

fn not_found(id: impl std::fmt::Display) -> Problem {
    let detail = format!("no identity provider has this id: {id}");
    Problem::new(Code::IdentityProviderNotFound, detail)
}

/// Rejects URLs that requests must not reach.
async fn check_targets(guard: &AddressGuard, provider: &IdentityProvider) -> Result<(), Problem> {
    let endpoint = provider.verify.endpoint();
    let urls = [
        ("/issuer", Some(provider.issuer.as_str())),
        ("/endpoint", endpoint),
    ];
    let mut errors = Vec::new();
    for (pointer, url) in urls {
        if let Some(url) = url
            && let Err(refused) = guard.check_and_resolve(url).await
        {
            let (code, message) = (Code::UrlNotAllowed, refused.to_string());
            errors.push(ProblemFieldError::new(pointer.to_owned(), code, message));
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Problem::fields(errors))
    }
}

/// Returns the problem of a provider that the tenant cannot have besides its others.
fn conflict(error: db::Error, issuer: &str) -> Problem {
    match error.constraint() {
        Some("identity_providers_issuer") => {
            let detail = format!("{issuer} has already been added");
            Problem::new(Code::DuplicateProvider, detail)
        }
        Some("identity_providers_opaque") => {
            let detail = "there is already a provider whose tokens do not name their issuer; a tenant can have only one";
            Problem::new(Code::DuplicateProvider, detail)
        }
        _ => error.into(),
    }
}

fn invalid(field: &'static str, rule: Rule, message: &str) -> (&'static str, ValidationError) {
    (field, ValidationError::new(rule, message))
}
