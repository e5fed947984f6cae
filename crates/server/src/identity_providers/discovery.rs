//! Cache of issuers' discovery documents and signing keys.
//!
//! Entries are fetched on first use, and again after ten minutes or when a token names an unknown
//! key, because providers rotate keys. To limit requests for forged key ids, an issuer is
//! contacted at most every 30 seconds, and concurrent requests share one fetch. The fetch runs in
//! its own task, so that a client that disconnects does not cancel it. While a provider is
//! unavailable, its last metadata is used for up to a day.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey,
    jwk::{Jwk, JwkSet, KeyOperations, PublicKeyUse},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::{ProviderHttpClient, TokenError};

#[derive(Debug, Clone, Copy)]
pub struct DiscoveryTiming {
    /// Age at which metadata is fetched again.
    pub refresh_after: Duration,
    /// Minimum time between two fetches from the same issuer.
    pub min_fetch_interval: Duration,
}

impl Default for DiscoveryTiming {
    fn default() -> Self {
        Self {
            refresh_after: Duration::from_mins(10),
            min_fetch_interval: Duration::from_secs(30),
        }
    }
}

/// Minimum time between two fetches from an issuer without cached metadata.
const UNCACHED_FETCH_INTERVAL: Duration = Duration::from_secs(1);
/// How long metadata is used while the issuer is unavailable.
const STALE_TTL: Duration = Duration::from_hours(24);

/// A public key of an issuer.
#[derive(Clone)]
pub struct ProviderKey {
    /// Empty if the key has no `kid`.
    pub id: String,
    /// The only algorithm to use the key with, if the issuer names one.
    pub algorithm: Option<Algorithm>,
    pub(super) verifier: DecodingKey,
    pub(super) fetched_at: Instant,
}

/// The endpoints from an issuer's discovery document, and its keys.
pub struct ProviderMetadata {
    /// The keys that verify signatures and have a supported type.
    pub keys: Vec<ProviderKey>,
    pub userinfo_endpoint: Option<String>,
    pub introspection_endpoint: Option<String>,
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: Option<String>,
    pub(super) fetched_at: Instant,
}

#[derive(Deserialize)]
struct DiscoveryDocument {
    issuer: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    introspection_endpoint: Option<String>,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
}

#[derive(Default)]
struct IssuerEntry {
    metadata: ArcSwapOption<ProviderMetadata>,
    /// When the last fetch finished, successful or not. Locked during a fetch.
    last_fetch: Arc<tokio::sync::Mutex<Option<Instant>>>,
}

/// Metadata by issuer. Not bounded: only issuers that operators have configured are looked up.
pub(super) struct DiscoveryCache {
    http: ProviderHttpClient,
    timing: DiscoveryTiming,
    /// The sandbox's own issuer, which is never fetched.
    sandbox: Option<(&'static str, Arc<ProviderMetadata>)>,
    issuers: Mutex<HashMap<String, Arc<IssuerEntry>>>,
}

impl DiscoveryCache {
    pub(super) fn new(
        http: ProviderHttpClient,
        timing: DiscoveryTiming,
        sandbox: Option<(&'static str, ProviderMetadata)>,
    ) -> Self {
        Self {
            http,
            timing,
            sandbox: sandbox.map(|(issuer, metadata)| (issuer, Arc::new(metadata))),
            issuers: Mutex::default(),
        }
    }

    pub(super) async fn metadata(&self, issuer: &str) -> Result<Arc<ProviderMetadata>, TokenError> {
        self.metadata_with(issuer, |_| true).await
    }

    /// Returns an issuer's key by its id. With `newer_than`, prefers metadata fetched after that
    /// instant.
    pub(super) async fn key(
        &self,
        issuer: &str,
        id: &str,
        newer_than: Option<Instant>,
    ) -> Result<ProviderKey, TokenError> {
        let is_sufficient = |metadata: &ProviderMetadata| {
            newer_than.is_none_or(|instant| metadata.fetched_at > instant)
                && metadata.key(id).is_some()
        };
        let metadata = self.metadata_with(issuer, is_sufficient).await?;
        let key = metadata.key(id).cloned();
        key.ok_or_else(|| TokenError::invalid("signed with an unknown key"))
    }

    /// Returns cached metadata if it is sufficient and fresh. Otherwise fetches it, and falls back
    /// to the cached metadata if the issuer is unavailable or was contacted recently.
    async fn metadata_with(
        &self,
        issuer: &str,
        is_sufficient: impl Fn(&ProviderMetadata) -> bool,
    ) -> Result<Arc<ProviderMetadata>, TokenError> {
        if let Some((_, metadata)) = self.sandbox.as_ref().filter(|(own, _)| *own == issuer) {
            return Ok(metadata.clone());
        }
        let entry = {
            let mut issuers = self.issuers.lock().unwrap_or_else(PoisonError::into_inner);
            issuers.entry(issuer.to_owned()).or_default().clone()
        };
        let cached = || {
            let metadata = entry.metadata.load_full();
            metadata.filter(|metadata| metadata.fetched_at.elapsed() < STALE_TTL)
        };
        let is_fresh =
            |metadata: &ProviderMetadata| metadata.fetched_at.elapsed() < self.timing.refresh_after;
        let mut last_fetch = match cached().filter(|metadata| is_sufficient(metadata)) {
            Some(metadata) if is_fresh(&metadata) => return Ok(metadata),
            // While another request is fetching, the stale metadata is sufficient.
            Some(metadata) => match entry.last_fetch.clone().try_lock_owned() {
                Ok(last_fetch) => last_fetch,
                Err(_) => return Ok(metadata),
            },
            None => entry.last_fetch.clone().lock_owned().await,
        };
        // Another request may have fetched while this one waited for the lock.
        let metadata = cached();
        let interval = if metadata.is_some() {
            self.timing.min_fetch_interval
        } else {
            UNCACHED_FETCH_INTERVAL
        };
        let is_too_soon = last_fetch.is_some_and(|instant| instant.elapsed() < interval);
        match metadata {
            Some(metadata) if is_too_soon || (is_sufficient(&metadata) && is_fresh(&metadata)) => {
                return Ok(metadata);
            }
            None if is_too_soon => {
                let reason = format!("{issuer} was unavailable a moment ago");
                return Err(TokenError::ProviderUnavailable(reason));
            }
            _ => {}
        }
        let (http, issuer, fetched) = (self.http.clone(), issuer.to_owned(), entry.clone());
        let fetch = tokio::spawn(async move {
            let result = fetch(&http, &issuer).await;
            *last_fetch = Some(Instant::now());
            match result {
                Ok(metadata) => {
                    fetched.metadata.store(Some(Arc::new(metadata)));
                    Ok(())
                }
                Err(reason) => {
                    tracing::warn!(issuer, reason, "identity provider unavailable");
                    super::count_failure(issuer, "discovery");
                    Err(reason)
                }
            }
        });
        let result = fetch.await.unwrap_or_else(|error| Err(error.to_string()));
        let reason = result.err().unwrap_or_default();
        cached().ok_or(TokenError::ProviderUnavailable(reason))
    }
}

async fn fetch(http: &ProviderHttpClient, issuer: &str) -> Result<ProviderMetadata, String> {
    let url = format!(
        "{}/.well-known/openid-configuration",
        issuer.trim_end_matches('/')
    );
    let document: DiscoveryDocument = get(http, &url).await?;
    if document.issuer != issuer {
        return Err(format!(
            "{url}: the issuer is {}, expected {issuer}",
            document.issuer
        ));
    }
    let DiscoveryDocument {
        jwks_uri,
        userinfo_endpoint,
        introspection_endpoint,
        authorization_endpoint,
        token_endpoint,
        ..
    } = document;
    let endpoints = [
        &userinfo_endpoint,
        &introspection_endpoint,
        &authorization_endpoint,
        &token_endpoint,
    ];
    for endpoint in endpoints.into_iter().flatten().chain([&jwks_uri]) {
        if issuer.starts_with("https://") && !endpoint.starts_with("https://") {
            return Err(format!(
                "{url}: {endpoint} must start with https://, like the issuer"
            ));
        }
    }
    let set: JwkSet = get(http, &jwks_uri).await?;
    let fetched_at = Instant::now();
    Ok(ProviderMetadata {
        keys: set
            .keys
            .iter()
            .filter_map(|jwk| signature_key(jwk, fetched_at))
            .collect(),
        userinfo_endpoint,
        introspection_endpoint,
        authorization_endpoint,
        token_endpoint,
        fetched_at,
    })
}

async fn get<T: DeserializeOwned>(http: &ProviderHttpClient, url: &str) -> Result<T, String> {
    http.get(url, None).await?.parse(url)
}

impl ProviderMetadata {
    /// Returns the key with this id. If the id is empty, returns the only key, if there is only one.
    fn key(&self, id: &str) -> Option<&ProviderKey> {
        match self.keys.as_slice() {
            [only] if id.is_empty() => Some(only),
            _ if id.is_empty() => None,
            keys => keys.iter().find(|key| key.id == id),
        }
    }
}

/// Converts a public key that can verify signatures. Symmetric keys are ignored: anyone who can
/// verify with them can also sign.
fn signature_key(jwk: &Jwk, fetched_at: Instant) -> Option<ProviderKey> {
    let usage = jwk.common.public_key_use.as_ref();
    let for_signatures = usage.is_none_or(|usage| *usage == PublicKeyUse::Signature);
    let operations = jwk.common.key_operations.as_ref();
    let can_verify = operations.is_none_or(|all| all.contains(&KeyOperations::Verify));
    let algorithm = match &jwk.common.key_algorithm {
        None => None,
        Some(algorithm) => Some(algorithm.to_string().parse().ok()?),
    };
    let verifier = DecodingKey::from_jwk(jwk).ok()?;
    let is_public = verifier.family() != AlgorithmFamily::Hmac;
    (for_signatures && can_verify && is_public).then(|| ProviderKey {
        id: jwk.common.key_id.clone().unwrap_or_default(),
        algorithm,
        verifier,
        fetched_at,
    })
}
