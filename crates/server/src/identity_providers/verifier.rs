//! Selects the provider of a token, verifies the token and returns the user's identity.

use std::sync::Arc;

use jiff::Timestamp;
use perennial_domain::TenantId;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::Value;

use super::{
    DiscoveryTiming, Identity, IdentityClaims, IdentityProvider, ProviderHttpClient,
    ProviderMetadata, SandboxProvider, TokenError, TokenVerification, claims,
    discovery::DiscoveryCache, jwt, opaque, provider_cache::ProviderCache,
};
use crate::{
    crypto::DerivedKeys,
    db::{Databases, Error},
    http::outbound::AddressGuard,
};

const MAX_TOKEN_BYTES: usize = 16 * 1024;

pub struct IdentityVerifier {
    /// For providers whose URLs come from the operator.
    open: ProviderSource,
    /// For providers whose URLs come from API clients.
    guarded: ProviderSource,
    /// Decrypts client secrets.
    sealing: DerivedKeys,
    providers: ProviderCache,
    /// The sandbox's own provider, which every tenant accepts. `None` outside a sandbox.
    sandbox: Option<IdentityProvider>,
}

/// Requests to providers, and what they have published.
pub(super) struct ProviderSource {
    pub(super) http: ProviderHttpClient,
    discovery: DiscoveryCache,
}

impl IdentityVerifier {
    /// Creates a verifier. `guard` applies to guarded providers.
    pub fn new(
        timing: DiscoveryTiming,
        sealing: DerivedKeys,
        sandbox: Option<&SandboxProvider>,
        guard: AddressGuard,
    ) -> anyhow::Result<Self> {
        let source = |guard, sandbox_metadata| {
            let http = ProviderHttpClient::new(guard)?;
            anyhow::Ok(ProviderSource {
                discovery: DiscoveryCache::new(http.clone(), timing, sandbox_metadata),
                http,
            })
        };
        Ok(Self {
            open: source(None, sandbox.map(SandboxProvider::metadata))?,
            guarded: source(Some(guard), None)?,
            sealing,
            providers: ProviderCache::new(),
            sandbox: sandbox.map(|_| SandboxProvider::provider()),
        })
    }

    /// Verifies a token with the tenant's providers.
    pub async fn authenticate(
        &self,
        db: &Databases,
        tenant: TenantId,
        token: &str,
        now: Timestamp,
    ) -> Result<Result<Identity, TokenError>, Error> {
        let mut providers = self.providers.list(db, tenant).await?.to_vec();
        providers.extend(self.sandbox.clone());
        Ok(self.verify(&providers, token, now).await)
    }

    /// Returns a provider's metadata, from the cache or the issuer.
    pub async fn metadata(
        &self,
        provider: &IdentityProvider,
    ) -> Result<Arc<ProviderMetadata>, TokenError> {
        let source = self.source(provider);
        source.discovery.metadata(&provider.issuer).await
    }

    pub(super) fn source(&self, provider: &IdentityProvider) -> &ProviderSource {
        if provider.is_guarded {
            &self.guarded
        } else {
            &self.open
        }
    }

    /// Verifies a token with the given providers.
    pub async fn verify(
        &self,
        providers: &[IdentityProvider],
        token: &str,
        now: Timestamp,
    ) -> Result<Identity, TokenError> {
        let is_printable = token.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_printable || !(1..=MAX_TOKEN_BYTES).contains(&token.len()) {
            return Err(TokenError::invalid(
                "must be 1 to 16384 printable ASCII characters",
            ));
        }
        let provider = select_provider(providers, token)?;
        let identity = self.identify(provider, token, now).await;
        if let Err(TokenError::ProviderUnavailable(_)) = &identity {
            super::count_failure(provider.issuer.clone(), "sign_in");
        }
        identity
    }

    async fn identify(
        &self,
        provider: &IdentityProvider,
        token: &str,
        now: Timestamp,
    ) -> Result<Identity, TokenError> {
        let claims = self.verify_with(provider, token, now).await?;
        let has_userinfo = provider.verify != TokenVerification::Userinfo;
        let token = has_userinfo.then_some(token);
        self.complete_identity(provider, claims, token).await
    }

    /// Returns the identity with these claims. A missing email address is read from the userinfo endpoint, with `token`.
    pub(super) async fn complete_identity(
        &self,
        provider: &IdentityProvider,
        claims: IdentityClaims,
        token: Option<&str>,
    ) -> Result<Identity, TokenError> {
        let mut identity = Identity {
            issuer: provider.issuer.clone(),
            subject: claims.subject,
            email: valid_email(claims.email),
            email_verified: claims.email_verified.as_ref().is_some_and(is_true),
            authenticated_at: claims.authenticated_at,
        };
        let is_complete = identity.email.is_some() && claims.email_verified.is_some();
        if !is_complete && let Some(token) = token {
            self.add_email(provider, &mut identity, token).await?;
        }
        Ok(identity)
    }

    async fn verify_with(
        &self,
        provider: &IdentityProvider,
        token: &str,
        now: Timestamp,
    ) -> Result<IdentityClaims, TokenError> {
        if provider.verify != TokenVerification::Jwt {
            jwt::check_unverified_kind(token, provider)?;
        }
        match &provider.verify {
            TokenVerification::Jwt => self.verify_jwt(provider, token, now).await,
            TokenVerification::Introspection {
                endpoint,
                client_id,
                secret,
            } => {
                let endpoint = match endpoint {
                    Some(endpoint) => endpoint.clone(),
                    None => self.introspection_endpoint(provider).await?,
                };
                let secret = self.sealing.open(secret, &provider.issuer);
                let secret =
                    secret.map_err(|error| TokenError::ProviderUnavailable(error.to_string()))?;
                let client = (client_id.as_str(), secret.expose_secret());
                opaque::introspect(
                    &self.source(provider).http,
                    &endpoint,
                    client,
                    provider,
                    token,
                    now,
                )
                .await
            }
            TokenVerification::Tokeninfo { endpoint } => {
                opaque::tokeninfo(&self.source(provider).http, endpoint, provider, token, now).await
            }
            TokenVerification::Userinfo => {
                let Some(userinfo) = self.get_userinfo(provider, token).await? else {
                    let reason = format!("{} has no userinfo endpoint", provider.issuer);
                    return Err(TokenError::ProviderUnavailable(reason));
                };
                Ok(IdentityClaims {
                    subject: claims::check_subject(userinfo.sub)?,
                    email: userinfo.email,
                    email_verified: userinfo.email_verified,
                    authenticated_at: None,
                })
            }
        }
    }

    pub(super) async fn verify_jwt(
        &self,
        provider: &IdentityProvider,
        token: &str,
        now: Timestamp,
    ) -> Result<IdentityClaims, TokenError> {
        let header = jwt::parse_header(token)?;
        let (issuer, key_id) = (&provider.issuer, &header.key_id);
        let discovery = &self.source(provider).discovery;
        let key = discovery.key(issuer, key_id, None).await?;
        match jwt::verify(token, &header, &key, provider, now) {
            // The issuer may have replaced the key by another with the same id.
            Err(TokenError::InvalidSignature) => {
                let newer_than = Some(key.fetched_at);
                let key = discovery.key(issuer, key_id, newer_than).await?;
                jwt::verify(token, &header, &key, provider, now)
            }
            result => result,
        }
    }

    async fn introspection_endpoint(
        &self,
        provider: &IdentityProvider,
    ) -> Result<String, TokenError> {
        let issuer = &provider.issuer;
        let metadata = self.metadata(provider).await?;
        metadata.introspection_endpoint.clone().ok_or_else(|| {
            TokenError::ProviderUnavailable(format!("{issuer} has no introspection endpoint"))
        })
    }

    /// Sets the email fields from the userinfo endpoint. Does nothing if the issuer has no such
    /// endpoint.
    async fn add_email(
        &self,
        provider: &IdentityProvider,
        identity: &mut Identity,
        token: &str,
    ) -> Result<(), TokenError> {
        let Some(userinfo) = self.get_userinfo(provider, token).await? else {
            return Ok(());
        };
        if userinfo.sub != identity.subject {
            return Err(TokenError::invalid(
                "the userinfo endpoint returned another subject",
            ));
        }
        identity.email = valid_email(userinfo.email);
        identity.email_verified = userinfo.email_verified.as_ref().is_some_and(is_true);
        Ok(())
    }

    /// Returns the response of the issuer's userinfo endpoint, or `None` if the issuer has no such
    /// endpoint.
    async fn get_userinfo(
        &self,
        provider: &IdentityProvider,
        token: &str,
    ) -> Result<Option<UserinfoResponse>, TokenError> {
        let metadata = self.metadata(provider).await?;
        let Some(endpoint) = &metadata.userinfo_endpoint else {
            return Ok(None);
        };
        let http = &self.source(provider).http;
        let response = http.get(endpoint, Some(token)).await;
        let response = response.map_err(TokenError::ProviderUnavailable)?;
        match response.status {
            // The token lacks the scope, or the provider has revoked it.
            401 | 403 => Err(TokenError::invalid("rejected by the userinfo endpoint")),
            _ => response
                .parse(endpoint)
                .map_err(TokenError::ProviderUnavailable),
        }
    }
}

/// Returns the provider that the token names as issuer, or the provider of opaque tokens if it
/// names none.
fn select_provider<'a>(
    providers: &'a [IdentityProvider],
    token: &str,
) -> Result<&'a IdentityProvider, TokenError> {
    let issuer = jwt::unverified_issuer(token);
    let provider = providers.iter().find(|provider| match &issuer {
        Some(issuer) => provider.issuer == *issuer,
        None => provider.verify != TokenVerification::Jwt,
    });
    provider.ok_or_else(|| match issuer {
        Some(_) => TokenError::unknown_issuer(),
        None => TokenError::invalid("not a JWT, and no provider of opaque tokens is configured"),
    })
}

#[derive(Deserialize)]
struct UserinfoResponse {
    sub: String,
    email: Option<String>,
    email_verified: Option<Value>,
}

/// Returns the email address if it has 1 to 254 bytes and no control characters.
fn valid_email(email: Option<String>) -> Option<String> {
    email.filter(|email| (1..=254).contains(&email.len()) && !email.contains(char::is_control))
}

/// Accepts `true` and, as some providers send it, `"true"`.
fn is_true(value: &Value) -> bool {
    *value == true || *value == "true"
}
