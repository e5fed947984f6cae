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
//! | `jwt.rs` | a signed token: signature, issuer, audience, time |
//! | `web.rs` | asking another server, with limits on time and size |
//! | `listed.rs` | adding and removing them |
//! | `table.rs` | which providers a tenant has |

use jiff::Timestamp;
use serde::Deserialize;

mod jwt;
pub mod listed;
mod published;
pub mod table;
mod web;

use published::Issuers;
pub use published::{Key, Patience, Published};
use web::{Answer, Web};

/// A provider whose tokens a tenant accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// What its tokens say of who made them, character by character.
    pub issuer: String,
    /// For whom a token must be meant: one of these.
    pub audiences: Vec<String>,
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
}

impl Providers {
    /// One that knows nothing yet.
    pub fn new(patience: Patience) -> anyhow::Result<Self> {
        let web = Web::new()?;
        Ok(Self {
            issuers: Issuers::new(web.clone(), patience),
            web,
        })
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
        let unverified = jwt::read(token)?;
        let Some(provider) = listed.iter().find(|one| one.issuer == unverified.issuer) else {
            return Err(Refusal::token("its issuer is not listed"));
        };
        let (issuer, key_id) = (&provider.issuer, &unverified.key_id);
        let key = self.issuers.key(issuer, key_id, None).await?;
        let verified = jwt::verify(token, &unverified, &key, provider, now);
        let claims = match verified {
            // A key can be replaced by another of the same name.
            Err(Refusal::Signature) => {
                let anew = self.issuers.key(issuer, key_id, Some(key.fetched)).await?;
                jwt::verify(token, &unverified, &anew, provider, now)?
            }
            verified => verified?,
        };
        let mut identity = Identity {
            issuer: provider.issuer.clone(),
            subject: claims.subject,
            email: fit(claims.email),
            email_verified: claims.email_verified.as_ref().is_some_and(is_true),
        };
        if identity.email.is_none() || claims.email_verified.is_none() {
            self.ask_userinfo(&mut identity, token).await?;
        }
        Ok(identity)
    }

    /// Asks the provider for the e-mail address that the token does not carry, or does not vouch for.
    async fn ask_userinfo(&self, identity: &mut Identity, token: &str) -> Result<(), Refusal> {
        let published = self.issuers.published(&identity.issuer).await?;
        let Some(endpoint) = &published.userinfo_endpoint else {
            return Ok(());
        };
        let answer = self.web.get(endpoint, Some(token)).await;
        let Answer { status, body } = answer.map_err(Refusal::Unavailable)?;
        match status {
            200 => {}
            // A token without the scope for it, or one that the provider has ended meanwhile.
            401 | 403 => {
                return Err(Refusal::token(
                    "the provider's userinfo endpoint refuses it",
                ));
            }
            _ => {
                let why = format!("its userinfo endpoint answered {status}");
                return Err(Refusal::Unavailable(why));
            }
        }
        let info: UserInfo = serde_json::from_slice(&body).map_err(|error| {
            Refusal::Unavailable(format!("its userinfo endpoint answered nonsense: {error}"))
        })?;
        if info.sub != identity.subject {
            return Err(Refusal::token("userinfo is about another subject"));
        }
        identity.email = fit(info.email);
        identity.email_verified = info.email_verified.as_ref().is_some_and(is_true);
        Ok(())
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
