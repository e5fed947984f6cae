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

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use moka::sync::Cache;
use perennial_domain::TenantId;
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
const MOST: u64 = 100_000;
/// The longest token that is looked at.
const MAX_BYTES: usize = 2_048;

/// Makes and verifies access tokens.
pub struct Tokens {
    /// Ourselves, as tokens name us.
    issuer: Arc<str>,
    keyring: Keyring,
    /// What was verified before, by a hash of the token: signatures are costly.
    remembered: Cache<u128, Arc<Verified>>,
    /// The key of that hash. Nobody knows it, so nobody can make two tokens that look the same.
    hash: SipHasher13,
}

impl Tokens {
    /// Tokens of the service at this address.
    pub fn new(issuer: Arc<str>, keyring: Keyring) -> Self {
        Self {
            issuer,
            keyring,
            remembered: Cache::builder()
                .max_capacity(MOST)
                .time_to_live(Duration::from_mins(15))
                .build(),
            hash: SipHasher13::new_with_key(&Randomness.bytes()),
        }
    }

    /// The keys that verify our tokens.
    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    fn hash(&self, token: &str) -> u128 {
        self.hash.hash(token.as_bytes()).as_u128()
    }

    /// What an access token says, if it is remembered as one of ours.
    pub fn recall(&self, token: &str) -> Option<Arc<Verified>> {
        self.remembered.get(&self.hash(token))
    }

    /// What an access token says, if it is one of ours.
    pub async fn verify(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Option<Arc<Verified>>, Error> {
        if token.len() > MAX_BYTES {
            return Ok(None);
        }
        let read = access::read(token, &self.issuer, &self.keyring, now).await?;
        let verified = read.map(Arc::new);
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
        now: Timestamp,
    ) -> Result<bool, Error> {
        Ok(verified.is_for(tenant, now) && self.keyring.accepts(verified.key, now).await?)
    }
}
