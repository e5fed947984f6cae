//! Identity providers: from an outside token to a verified identity, or to why not.
//!
//! A provider is listed for a tenant by its *issuer* and the *audiences* that its tokens may be meant
//! for: a token that the same provider gave to another product must not open this one. Everything else
//! is found through the issuer's discovery document ([`published`]): its keys and its userinfo endpoint.
//! Nothing that the token itself says about keys (`jku`, `x5u`, `jwk`) is ever followed.
//!
//! | file | what |
//! |---|---|
//! | `published.rs` | what an issuer publishes, remembered and fetched again when needed |
//! | `jwt.rs` | a signed token, verified by the issuer's keys |
//! | `opaque.rs` | any other token: its issuer is asked |
//! | `checks.rs` | issuer, audience, time, subject: what must hold for both |
//! | `web.rs` | asking another server, with limits on time and size |
//! | `listed.rs` | which ones a tenant has; adding and removing them |
//! | `sandbox.rs` | the one that a sandbox is itself |
//! | `table.rs` | where they are listed |

use jiff::Timestamp;
use perennial_domain::TenantId;
use secrecy::ExposeSecret;
use serde::Deserialize;

use crate::{
    db::{Db, Error},
    keys::{Sealed, SealingKey},
};

mod checks;
mod jwt;
pub mod listed;
mod opaque;
mod published;
mod sandbox;
pub mod table;
mod web;

use listed::Listed;
use published::Issuers;
pub use published::{Key, Patience, Published};
pub use sandbox::Sandbox;
use web::{Answer, Web};

/// The longest token that is looked at.
const MAX_BYTES: usize = 16 * 1024;

/// A provider whose tokens a tenant accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// What its tokens say of who made them, character by character.
    pub issuer: String,
    /// For whom a token must be meant: one of these.
    pub audiences: Vec<String>,
    /// How its tokens are verified.
    pub verify: Verify,
}

/// How a provider's tokens are verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verify {
    /// They are JWTs, signed by keys that it publishes.
    Jwt,
    /// It is asked at its introspection endpoint.
    Introspection {
        /// The endpoint, if its discovery document does not say.
        endpoint: Option<String>,
        /// Who asks.
        client_id: String,
        /// With what, sealed under the master key.
        secret: Sealed,
    },
    /// It is asked at its token-info endpoint.
    Tokeninfo {
        /// The endpoint.
        endpoint: String,
    },
    /// It is asked whose a token is, and does not say for whom it was made.
    Userinfo,
}

impl Verify {
    /// The word that we store and print.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Jwt => "jwt",
            Self::Introspection { .. } => "introspection",
            Self::Tokeninfo { .. } => "tokeninfo",
            Self::Userinfo => "userinfo",
        }
    }
}

/// What a verified token, or its issuer, says of whoever has it.
struct Said {
    subject: String,
    email: Option<String>,
    email_verified: Option<serde_json::Value>,
}

/// Who somebody is, as a provider vouches for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The provider.
    pub issuer: String,
    /// Its name for the user, which never changes.
    pub subject: String,
    /// The user's e-mail address, if the provider says one.
    pub email: Option<String>,
    /// Whether the provider vouches for that too.
    pub email_verified: bool,
}

/// Why a token proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The signature is not one of this key's.
    #[error("the token is refused: its signature is not right")]
    Signature,
    /// Something is wrong with the token. For an operator's eyes: callers are told one thing for all.
    #[error("the token is refused: {0}")]
    Token(String),
    /// The provider cannot be asked right now, and what it published is not known.
    #[error("the identity provider cannot be asked right now: {0}")]
    Unavailable(String),
}

impl Refusal {
    fn token(why: impl Into<String>) -> Self {
        Self::Token(why.into())
    }
}

/// Verifies tokens; remembers what issuers publish.
pub struct Providers {
    web: Web,
    issuers: Issuers,
    sealing: SealingKey,
    listed: Listed,
    sandbox: Option<Provider>,
}

impl Providers {
    /// One that knows nothing yet. The key opens what is sealed in the list of providers. A sandbox is one of
    /// them, for every tenant.
    pub fn new(
        patience: Patience,
        sealing: SealingKey,
        sandbox: Option<&Sandbox>,
    ) -> anyhow::Result<Self> {
        let web = Web::new()?;
        Ok(Self {
            issuers: Issuers::new(web.clone(), patience, sandbox.map(Sandbox::published)),
            web,
            sealing,
            listed: Listed::new(),
            sandbox: sandbox.map(|_| Sandbox::listed()),
        })
    }

    /// Who has this token, if one of the tenant's providers vouches for it at `now`.
    pub async fn prove(
        &self,
        db: &Db,
        tenant: TenantId,
        token: &str,
        now: Timestamp,
    ) -> Result<Result<Identity, Refusal>, Error> {
        let mut listed = self.listed.of(db, tenant).await?.to_vec();
        listed.extend(self.sandbox.clone());
        Ok(self.verify(&listed, token, now).await)
    }

    /// What an issuer publishes, as far as that can be had now.
    pub async fn published(&self, issuer: &str) -> Result<std::sync::Arc<Published>, Refusal> {
        self.issuers.published(issuer).await
    }

    /// Who has this token, if one of the `listed` providers vouches for it at `now`.
    pub async fn verify(
        &self,
        listed: &[Provider],
        token: &str,
        now: Timestamp,
    ) -> Result<Identity, Refusal> {
        let visible = token.bytes().all(|byte| byte.is_ascii_graphic());
        if !visible || !(1..=MAX_BYTES).contains(&token.len()) {
            return Err(Refusal::token(
                "it is empty, too long, or not made of visible characters",
            ));
        }
        let provider = who_could_say(listed, token)?;
        let said = match &provider.verify {
            Verify::Jwt => self.verify_jwt(provider, token, now).await?,
            Verify::Introspection {
                endpoint,
                client_id,
                secret,
            } => {
                let published = self.introspection_endpoint(provider, endpoint.as_ref());
                let endpoint = published.await?;
                let secret = self.sealing.open(secret, &provider.issuer);
                let secret = secret.map_err(|error| Refusal::Unavailable(error.to_string()))?;
                let client = (client_id.as_str(), secret.expose_secret());
                opaque::introspect(&self.web, &endpoint, client, provider, token, now).await?
            }
            Verify::Tokeninfo { endpoint } => {
                opaque::tokeninfo(&self.web, endpoint, provider, token, now).await?
            }
            Verify::Userinfo => {
                let Some(info) = self.ask_userinfo(&provider.issuer, token).await? else {
                    let why = format!("{} has no userinfo endpoint", provider.issuer);
                    return Err(Refusal::Unavailable(why));
                };
                checks::subject(info.sub.clone())?;
                info.into()
            }
        };
        let mut identity = Identity {
            issuer: provider.issuer.clone(),
            subject: said.subject,
            email: fit(said.email),
            email_verified: said.email_verified.as_ref().is_some_and(is_true),
        };
        let says_enough = identity.email.is_some() && said.email_verified.is_some();
        if !says_enough && provider.verify != Verify::Userinfo {
            self.complete(&mut identity, token).await?;
        }
        Ok(identity)
    }

    async fn verify_jwt(
        &self,
        provider: &Provider,
        token: &str,
        now: Timestamp,
    ) -> Result<Said, Refusal> {
        let unverified = jwt::read(token)?;
        let (issuer, key_id) = (&provider.issuer, &unverified.key_id);
        let key = self.issuers.key(issuer, key_id, None).await?;
        match jwt::verify(token, &unverified, &key, provider, now) {
            // A key can be replaced by another of the same name.
            Err(Refusal::Signature) => {
                let anew = self.issuers.key(issuer, key_id, Some(key.fetched)).await?;
                jwt::verify(token, &unverified, &anew, provider, now)
            }
            verified => verified,
        }
    }

    async fn introspection_endpoint(
        &self,
        provider: &Provider,
        given: Option<&String>,
    ) -> Result<String, Refusal> {
        if let Some(given) = given {
            return Ok(given.clone());
        }
        let published = self.issuers.published(&provider.issuer).await?;
        published.introspection_endpoint.clone().ok_or_else(|| {
            Refusal::Unavailable(format!("{} has no introspection endpoint", provider.issuer))
        })
    }

    /// Adds the e-mail address that the token does not carry, or does not vouch for.
    async fn complete(&self, identity: &mut Identity, token: &str) -> Result<(), Refusal> {
        let Some(info) = self.ask_userinfo(&identity.issuer, token).await? else {
            return Ok(());
        };
        if info.sub != identity.subject {
            return Err(Refusal::token("userinfo is about another subject"));
        }
        identity.email = fit(info.email);
        identity.email_verified = info.email_verified.as_ref().is_some_and(is_true);
        Ok(())
    }

    /// Asks an issuer whose a token is, if it answers such questions.
    async fn ask_userinfo(&self, issuer: &str, token: &str) -> Result<Option<UserInfo>, Refusal> {
        let published = self.issuers.published(issuer).await?;
        let Some(endpoint) = &published.userinfo_endpoint else {
            return Ok(None);
        };
        let answer = self.web.get(endpoint, Some(token)).await;
        let answer = answer.map_err(Refusal::Unavailable)?;
        match answer.status {
            // A token without the scope for it, or one that the provider has ended meanwhile.
            401 | 403 => Err(Refusal::token(
                "the provider's userinfo endpoint refuses it",
            )),
            _ => answer.read(endpoint).map_err(Refusal::Unavailable),
        }
    }
}

/// The provider that could vouch for a token: the one that it names, or, if it names none, the one whose
/// tokens do not.
fn who_could_say<'a>(listed: &'a [Provider], token: &str) -> Result<&'a Provider, Refusal> {
    let named = jwt::issuer(token);
    let found = listed.iter().find(|provider| match &named {
        Some(issuer) => provider.issuer == *issuer,
        None => provider.verify != Verify::Jwt,
    });
    found.ok_or_else(|| match named {
        Some(_) => Refusal::token("its issuer is not listed"),
        None => Refusal::token("it is not a signed JWT, and no provider of other tokens is listed"),
    })
}

impl From<UserInfo> for Said {
    fn from(info: UserInfo) -> Self {
        Self {
            subject: info.sub,
            email: info.email,
            email_verified: info.email_verified,
        }
    }
}

/// What we read of a userinfo answer.
#[derive(Deserialize)]
struct UserInfo {
    sub: String,
    email: Option<String>,
    email_verified: Option<serde_json::Value>,
}

/// An e-mail address that could be one.
fn fit(email: Option<String>) -> Option<String> {
    email.filter(|email| (1..=254).contains(&email.len()) && !email.contains(char::is_control))
}

/// `true`, or the text of it, which some providers send.
fn is_true(value: &serde_json::Value) -> bool {
    *value == true || *value == "true"
}
