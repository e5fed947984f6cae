//! The JSON representation of an identity provider.

use jiff::Timestamp;
use perennial_domain::IdentityProviderId;
use serde::Serialize;
use utoipa::{ToSchema, openapi::Ref};

use crate::{
    http::{
        response::{display, timestamp},
        schema::named,
    },
    identity_providers::{IdentityProvider, TokenVerification, table::StoredProvider},
};

/// Computed fields of responses, which requests may contain. They are ignored.
pub(super) const COMPUTED: &[&str] = &["public_addresses_only"];

/// An identity provider whose tokens the tenant accepts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IdentityProvider)]
pub struct IdentityProviderView {
    /// Id of the provider.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "idp_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: IdentityProviderId,
    #[serde(flatten)]
    settings: ProviderSettingsView,
    /// Creation time.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    created_at: Timestamp,
}

/// The settings of a provider, as events have them too.
#[derive(Debug, Serialize, ToSchema)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting of its own in the API"
)]
pub struct ProviderSettingsView {
    /// Issuer URL (the `iss` claim).
    #[schema(format = "uri", example = "https://id.example.com")]
    issuer: String,
    #[schema(schema_with = verify)]
    verify: &'static str,
    /// Accepted audiences (the `aud` claim).
    #[schema(example = json!(["my-product"]))]
    audiences: Vec<String>,
    /// The endpoint that verifies tokens, if it is not discovered.
    #[schema(required, example = json!(null))]
    endpoint: Option<String>,
    /// The client id for introspection.
    #[schema(required, example = json!(null))]
    client_id: Option<String>,
    /// Whether tokens that the provider issued for other products are accepted too, as `userinfo` does.
    #[schema(example = false)]
    accept_any_audience: bool,
    /// Whether ID tokens are accepted.
    #[schema(example = false)]
    accept_id_tokens: bool,
    /// Whether tokens bound to a key or certificate are accepted. The binding is not checked.
    #[schema(example = false)]
    accept_bound_tokens: bool,
    /// Whether an audience in the `azp` claim is accepted.
    #[schema(example = false)]
    accept_azp: bool,
    /// Whether the service connects to public addresses only: true if an API client has set a URL of the provider.
    #[schema(example = true)]
    public_addresses_only: bool,
}

fn verify() -> Ref {
    named::VERIFY_METHOD.reference("How tokens are verified.")
}

impl From<&StoredProvider> for IdentityProviderView {
    fn from(stored: &StoredProvider) -> Self {
        Self {
            id: stored.id,
            settings: ProviderSettingsView::from(&stored.provider),
            created_at: stored.created_at,
        }
    }
}

impl From<&IdentityProvider> for ProviderSettingsView {
    fn from(provider: &IdentityProvider) -> Self {
        let client_id = match &provider.verify {
            TokenVerification::Introspection { client_id, .. } => Some(client_id.clone()),
            _ => None,
        };
        Self {
            issuer: provider.issuer.clone(),
            verify: provider.verify.as_str(),
            audiences: provider.audiences.clone(),
            endpoint: provider.verify.endpoint().map(str::to_owned),
            client_id,
            accept_any_audience: provider.verify == TokenVerification::Userinfo,
            accept_id_tokens: provider.accept.id_tokens,
            accept_bound_tokens: provider.accept.bound_tokens,
            accept_azp: provider.accept.azp,
            public_addresses_only: provider.is_guarded,
        }
    }
}
