//! What an issuer publishes: its discovery document and its keys.
//!
//! Fetched when first needed, and again after ten minutes or when a token names a key that is not
//! among them, since providers rotate their keys. Whoever invents key ids must not make us ask the
//! provider for each: at most every 30 seconds, and once for all who wait. Asking is a task of its own,
//! so that a caller who hangs up does not end it for the others. If a provider is away, what it
//! published before still holds, for a day.

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

use super::{Refusal, Web};

/// How often an issuer is asked.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// How long what was published counts as fresh.
    pub fresh: Duration,
    /// How often it is asked at most.
    pub seldom: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            fresh: Duration::from_mins(10),
            seldom: Duration::from_secs(30),
        }
    }
}

/// How often an issuer is asked of whom nothing is known yet.
const UNKNOWN: Duration = Duration::from_secs(1);
/// How long what was published holds while the issuer is away.
const HOLDS: Duration = Duration::from_hours(24);

/// A key that signs tokens.
#[derive(Clone)]
pub struct Key {
    /// Its name; empty if it has none.
    pub id: String,
    /// What it may be used with; any that its kind allows if the issuer does not say.
    pub algorithm: Option<Algorithm>,
    pub(super) verifier: DecodingKey,
    pub(super) fetched: Instant,
}

/// What an issuer publishes.
pub struct Published {
    /// Its keys, as far as they are for signatures and of a kind that we know.
    pub keys: Vec<Key>,
    /// Where it tells who somebody is.
    pub userinfo_endpoint: Option<String>,
    /// Where it tells whether a token is good.
    pub introspection_endpoint: Option<String>,
    pub(super) fetched: Instant,
}

/// What we read of a discovery document.
#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    introspection_endpoint: Option<String>,
}

/// What is known of one issuer.
#[derive(Default)]
struct Issuer {
    published: ArcSwapOption<Published>,
    /// When it last answered, or did not. Held while asking.
    asked: Arc<tokio::sync::Mutex<Option<Instant>>>,
}

/// What is known of all issuers: as many as operators have listed.
pub(super) struct Issuers {
    web: Web,
    patience: Patience,
    /// The issuer that is ourselves, in a sandbox: what it publishes is known, and never asked for.
    own: Option<(&'static str, Arc<Published>)>,
    known: Mutex<HashMap<String, Arc<Issuer>>>,
}

impl Issuers {
    pub(super) fn new(
        web: Web,
        patience: Patience,
        own: Option<(&'static str, Published)>,
    ) -> Self {
        Self {
            web,
            patience,
            own: own.map(|(name, published)| (name, Arc::new(published))),
            known: Mutex::default(),
        }
    }

    /// What an issuer publishes.
    pub(super) async fn published(&self, issuer: &str) -> Result<Arc<Published>, Refusal> {
        self.that_has(issuer, |_| true).await
    }

    /// The key of an issuer that has this name; fetched after an instant, if one is given and the issuer
    /// has not been asked just now.
    pub(super) async fn key(
        &self,
        issuer: &str,
        id: &str,
        after: Option<Instant>,
    ) -> Result<Key, Refusal> {
        let has = |published: &Published| {
            after.is_none_or(|after| published.fetched > after) && published.key(id).is_some()
        };
        let published = self.that_has(issuer, has).await?;
        let key = published.key(id).cloned();
        key.ok_or_else(|| Refusal::token("its key is not one of the issuer's"))
    }

    /// What an issuer publishes: what is known, if that has it and is fresh, else what the issuer says now,
    /// else what it said before.
    async fn that_has(
        &self,
        name: &str,
        has: impl Fn(&Published) -> bool,
    ) -> Result<Arc<Published>, Refusal> {
        if let Some((_, published)) = self.own.as_ref().filter(|(own, _)| *own == name) {
            return Ok(published.clone());
        }
        let issuer = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.entry(name.to_owned()).or_default().clone()
        };
        let known = || {
            let published = issuer.published.load_full();
            published.filter(|published| published.fetched.elapsed() < HOLDS)
        };
        let is_fresh = |published: &Published| published.fetched.elapsed() < self.patience.fresh;
        let mut asked = match known().filter(|published| has(published)) {
            Some(published) if is_fresh(&published) => return Ok(published),
            // What we have will do while somebody else asks for news.
            Some(published) => match issuer.asked.clone().try_lock_owned() {
                Ok(asked) => asked,
                Err(_) => return Ok(published),
            },
            None => issuer.asked.clone().lock_owned().await,
        };
        // Somebody else may have asked while we waited.
        let known_now = known();
        let pause = if known_now.is_some() {
            self.patience.seldom
        } else {
            UNKNOWN
        };
        let lately = asked.is_some_and(|asked| asked.elapsed() < pause);
        match known_now {
            Some(published) if lately || (has(&published) && is_fresh(&published)) => {
                return Ok(published);
            }
            None if lately => {
                let why = format!("{name} did not answer a moment ago");
                return Err(Refusal::Unavailable(why));
            }
            _ => {}
        }
        let (web, name, asking) = (self.web.clone(), name.to_owned(), issuer.clone());
        let asking = tokio::spawn(async move {
            let fetched = fetch(&web, &name).await;
            *asked = Some(Instant::now());
            match fetched {
                Ok(published) => {
                    asking.published.store(Some(Arc::new(published)));
                    Ok(())
                }
                Err(why) => {
                    tracing::warn!(issuer = name, why, "cannot ask an identity provider");
                    Err(why)
                }
            }
        });
        let outcome = asking.await.unwrap_or_else(|error| Err(error.to_string()));
        let why = outcome.err().unwrap_or_default();
        known().ok_or(Refusal::Unavailable(why))
    }
}

async fn fetch(web: &Web, issuer: &str) -> Result<Published, String> {
    let discovery = format!(
        "{}/.well-known/openid-configuration",
        issuer.trim_end_matches('/')
    );
    let Discovery {
        issuer: said,
        jwks_uri,
        userinfo_endpoint,
        introspection_endpoint,
    } = read(web, &discovery).await?;
    if said != issuer {
        return Err(format!(
            "{discovery}: it says that its issuer is {said}, and not {issuer}"
        ));
    }
    let others = [&userinfo_endpoint, &introspection_endpoint];
    for endpoint in others.into_iter().flatten().chain([&jwks_uri]) {
        if issuer.starts_with("https://") && !endpoint.starts_with("https://") {
            return Err(format!(
                "{discovery}: {endpoint} does not begin with https://, so anybody on the way could answer there"
            ));
        }
    }
    let set: JwkSet = read(web, &jwks_uri).await?;
    let fetched = Instant::now();
    let usable = |jwk: &Jwk| usable(jwk, fetched);
    Ok(Published {
        keys: set.keys.iter().filter_map(usable).collect(),
        userinfo_endpoint,
        introspection_endpoint,
        fetched,
    })
}

async fn read<T: DeserializeOwned>(web: &Web, url: &str) -> Result<T, String> {
    web.get(url, None).await?.read(url)
}

impl Published {
    /// The key with this name; the only one, if the token names none.
    fn key(&self, id: &str) -> Option<&Key> {
        match self.keys.as_slice() {
            [only] if id.is_empty() => Some(only),
            _ if id.is_empty() => None,
            keys => keys.iter().find(|key| key.id == id),
        }
    }
}

/// A key that can verify signatures. Secrets cannot: who knows one can also sign.
fn usable(jwk: &Jwk, fetched: Instant) -> Option<Key> {
    let usage = jwk.common.public_key_use.as_ref();
    let for_signatures = usage.is_none_or(|usage| *usage == PublicKeyUse::Signature);
    let operations = jwk.common.key_operations.as_ref();
    let may_verify = operations.is_none_or(|all| all.contains(&KeyOperations::Verify));
    let algorithm = match &jwk.common.key_algorithm {
        None => None,
        Some(named) => Some(named.to_string().parse().ok()?),
    };
    let verifier = DecodingKey::from_jwk(jwk).ok()?;
    let public = verifier.family() != AlgorithmFamily::Hmac;
    (for_signatures && may_verify && public).then(|| Key {
        id: jwk.common.key_id.clone().unwrap_or_default(),
        algorithm,
        verifier,
        fetched,
    })
}
