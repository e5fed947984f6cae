//! Our own tokens: what a user's device holds after a sign-in.
//!
//! - The **access token** ([`access`]) is a JWT that lives for 15 minutes. It names the user and the session,
//!   and is signed by a key of the [`Keyring`]. Here every use of it also asks whether the session still
//!   lives; another service can verify it by our published keys, and then learns of a sign-out when the
//!   token ends.
//! - The **refresh token** ([`refresh`]) is a name of the session and a generation, with a proof that we made
//!   it. It is computed, not stored: the same session and generation always give the same token.
//!
//! Nothing in the database can be used as either: private keys are sealed under the master key, and the
//! proofs are made under keys derived from it.

use std::{sync::Arc, time::Instant};

use jiff::Timestamp;
use perennial_domain::TenantId;
use quick_cache::sync::Cache;
use siphasher::sip128::SipHasher13;

mod access;
mod keyring;
mod refresh;
mod signing_key;
pub mod table;

pub use access::{Issued, Verified};
pub use keyring::{Keyring, Rotation, ensure_key, rotate};
pub use refresh::{Presented, RefreshKey, Salt};
pub use signing_key::Algorithm;

use crate::{db::Error, keys::Sealed, randomness::Randomness};

/// How many access tokens are remembered as verified.
const MOST: usize = 100_000;
/// The longest token that is looked at.
const MAX_BYTES: usize = 2_048;

/// Makes and verifies access tokens.
pub struct Tokens {
    /// Ourselves, as tokens name us.
    issuer: Arc<str>,
    keyring: Keyring,
    /// What was verified before, by a hash of the token: signatures are costly.
    remembered: Cache<u128, Verified>,
    /// The key of that hash. Nobody knows it, so nobody can make two tokens that look the same.
    hash: SipHasher13,
}

impl Tokens {
    /// Tokens of the service at this address.
    pub fn new(issuer: Arc<str>, keyring: Keyring) -> Self {
        Self {
            issuer,
            keyring,
            remembered: Cache::new(MOST),
            hash: SipHasher13::new_with_key(&Randomness.bytes()),
        }
    }

    /// The keys that verify our tokens.
    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    fn hash(&self, token: &[u8]) -> u128 {
        self.hash.hash(token).as_u128()
    }

    /// What an access token says, if it is remembered as one of ours.
    pub fn recall(&self, token: &[u8]) -> Option<Verified> {
        self.remembered.get(&self.hash(token))
    }

    /// What an access token says, if it is one of ours.
    pub async fn verify(&self, token: &[u8], now: Timestamp) -> Result<Option<Verified>, Error> {
        let text = std::str::from_utf8(token).ok();
        let Some(text) = text.filter(|text| text.len() <= MAX_BYTES) else {
            return Ok(None);
        };
        let verified = access::read(text, &self.issuer, &self.keyring, now).await?;
        if let Some(verified) = &verified {
            self.remembered.insert(self.hash(token), verified.clone());
        }
        Ok(verified)
    }

    /// Whether a token of ours is good for this tenant at `now`. Whether its session lives is another question.
    pub async fn accepts(
        &self,
        verified: &Verified,
        tenant: TenantId,
        instant: Instant,
        now: Timestamp,
    ) -> Result<bool, Error> {
        if !verified.is_for(tenant, now) {
            return Ok(false);
        }
        self.keyring.accepts(verified.key, instant, now).await
    }
}
