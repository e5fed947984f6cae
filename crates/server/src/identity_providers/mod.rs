//! Identity providers: the verification of their tokens, and the providers of each tenant.
//!
//! Operators configure a provider for a tenant by its *issuer* and the *audiences* of its tokens: a
//! token that the same provider issued to another application must be rejected (except with
//! [`TokenVerification::Userinfo`]). Keys and endpoints come from the issuer's discovery document. Keys
//! and key URLs in the token's own header (`jwk`, `jku`, `x5u`) are ignored.
//!
//! Providers are stored in the home cell, the database that also stores the tenants.
//!
//! | file | contents |
//! |---|---|
//! | `verifier.rs` | selects the provider of a token and verifies it |
//! | `code_flow.rs` | sign-in in a browser, for the console |
//! | `jwt.rs` | JWTs, verified with the issuer's keys |
//! | `opaque.rs` | other tokens, verified by a request to the issuer |
//! | `claims.rs` | checks of audience, time and subject |
//! | `token_kind.rs` | access tokens, ID tokens and others, and which are accepted |
//! | `discovery.rs` | cache of discovery documents and keys |
//! | `http_client.rs` | HTTP client with limits on time and size |
//! | `provider_cache.rs` | cache of a tenant's providers |
//! | `sandbox_provider.rs` | the sandbox's own provider |
//! | `table.rs` | SQL |

use jiff::Timestamp;

use crate::crypto::SealedSecret;

mod claims;
mod code_flow;
mod discovery;
mod http_client;
mod jwt;
mod opaque;
mod provider_cache;
mod sandbox_provider;
pub mod table;
mod token_kind;
mod verifier;

pub use code_flow::{CodeFlowClient, CodeFlowSecrets, SignedInPerson};
pub use discovery::{DiscoveryTiming, ProviderKey, ProviderMetadata};
use http_client::{ProviderHttpClient, ProviderResponse};
pub use sandbox_provider::SandboxProvider;
pub use token_kind::AcceptedTokens;
pub use verifier::IdentityVerifier;

/// A provider whose tokens a tenant accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityProvider {
    /// Issuer URL; must equal the claim `iss` exactly.
    pub issuer: String,
    /// Accepted values of the claim `aud`.
    pub audiences: Vec<String>,
    pub verify: TokenVerification,
    pub accept: AcceptedTokens,
    /// Whether requests reach public addresses only, because an API client has set a URL.
    pub is_guarded: bool,
}

impl IdentityProvider {
    /// Creates a provider whose tokens are JWTs.
    pub fn new(issuer: impl Into<String>, audiences: &[&str]) -> Self {
        Self {
            issuer: issuer.into(),
            audiences: audiences
                .iter()
                .map(|&audience| audience.to_owned())
                .collect(),
            verify: TokenVerification::Jwt,
            accept: AcceptedTokens::default(),
            is_guarded: false,
        }
    }
}

/// How a provider's tokens are verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenVerification {
    /// As JWTs, with the provider's published keys.
    Jwt,
    /// By the provider's introspection endpoint.
    Introspection {
        /// Overrides the endpoint in the discovery document.
        endpoint: Option<String>,
        client_id: String,
        /// Client secret, encrypted with the master key.
        secret: SealedSecret,
    },
    /// By the provider's token-info endpoint.
    Tokeninfo { endpoint: String },
    /// By the provider's userinfo endpoint. It does not return the audience, so a token that the
    /// provider issued to another application is accepted.
    Userinfo,
}

impl TokenVerification {
    /// Returns the configured endpoint.
    pub fn endpoint(&self) -> Option<&str> {
        match self {
            Self::Introspection { endpoint, .. } => endpoint.as_deref(),
            Self::Tokeninfo { endpoint } => Some(endpoint),
            Self::Jwt | Self::Userinfo => None,
        }
    }

    /// Returns the name as stored and as used on the command line.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Jwt => "jwt",
            Self::Introspection { .. } => "introspection",
            Self::Tokeninfo { .. } => "tokeninfo",
            Self::Userinfo => "userinfo",
        }
    }
}

/// The claims of a verified token that are used.
struct IdentityClaims {
    subject: String,
    email: Option<String>,
    /// A boolean, or as some providers send it, a string.
    email_verified: Option<serde_json::Value>,
    authenticated_at: Option<Timestamp>,
}

/// A user's identity at a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub issuer: String,
    /// The provider's permanent id of the user.
    pub subject: String,
    pub email: Option<String>,
    pub email_verified: bool,
    /// When the user authenticated at the provider, or at the latest when the token was issued. `None`
    /// if the provider says neither.
    pub authenticated_at: Option<Timestamp>,
}

/// Why a token was not accepted. The reason is for the operator; API responses do not contain it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("invalid token: wrong signature")]
    InvalidSignature,
    #[error("invalid token: {0}")]
    Invalid(String),
    /// The token cannot be verified, for example because the provider cannot be reached.
    #[error("identity provider unavailable: {0}")]
    ProviderUnavailable(String),
}

impl TokenError {
    fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid(reason.into())
    }

    fn unknown_issuer() -> Self {
        Self::invalid("issuer is not configured")
    }
}

/// Counts a failure of the provider in the metrics. The number of issuers is bounded: only those that
/// operators have configured are used.
fn count_failure(issuer: String, operation: &'static str) {
    let labels = [("issuer", issuer), ("operation", operation.to_owned())];
    metrics::counter!("perennial_identity_provider_failures_total", &labels).increment(1);
}
