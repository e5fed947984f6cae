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
use sha2::{Digest, Sha256};

mod access;
mod keyring;
mod refresh;
mod signing_key;
pub mod table;

pub use access::{Issued, Verified};
pub use keyring::{Keyring, Rotation, ensure_key, rotate};
pub use refresh::{Presented, RefreshKey, Salt};
pub use signing_key::Algorithm;

use crate::{db::Error, keys::Sealed};

/// How many access tokens are remembered as verified.
const MOST: u64 = 100_000;
/// The longest token that is looked at.
const MAX_BYTES: usize = 2_048;

/// Makes and verifies access tokens.
pub struct Tokens {
    /// Ourselves, as tokens name us.
    issuer: Arc<str>,
    keyring: Keyring,
    /// What was verified before, by the hash of the token: signatures are costly.
    remembered: Cache<[u8; 32], Arc<Verified>>,
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
        }
    }

    /// The keys that verify our tokens.
    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// What an access token says, if it is one of ours for this tenant and has not expired. Whether its
    /// session lives is another question.
    pub async fn verify(
        &self,
        token: &str,
        tenant: TenantId,
        now: Timestamp,
    ) -> Result<Option<Arc<Verified>>, Error> {
        if token.len() > MAX_BYTES {
            return Ok(None);
        }
        let hash: [u8; 32] = Sha256::digest(token).into();
        let verified = match self.remembered.get(&hash) {
            Some(verified) => verified,
            None => match access::read(token, &self.issuer, &self.keyring, now).await? {
                None => return Ok(None),
                Some(verified) => {
                    let verified = Arc::new(verified);
                    self.remembered.insert(hash, verified.clone());
                    verified
                }
            },
        };
        let fits = verified.is_for(tenant, now) && self.keyring.accepts(verified.key, now).await?;
        Ok(fits.then_some(verified))
    }
}
