//! The tokens that a user's device gets at sign-in.
//!
//! - The **access token** ([`access_token`]) is a JWT that is valid for 15 minutes. It names the
//!   user and the session and is signed with a key of the [`Keyring`]. This service also checks
//!   that the session is active. Other services can verify the token with our published keys, but
//!   notice a revocation only when the token expires.
//! - The **refresh token** ([`refresh_token`]) names a session and a generation, with a MAC. It is
//!   computed, not stored: the same session, generation and master key always give the same token.
//!
//! A copy of the database is not enough to create either: signing keys are encrypted with the
//! master key, and MAC keys are derived from it.

use std::{sync::Arc, time::Instant};

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use perennial_domain::TenantId;
use quick_cache::sync::Cache;
use serde::de::DeserializeOwned;
use siphasher::sip128::SipHasher13;

mod access_token;
mod keyring;
mod refresh_token;
mod signing_key;
pub mod table;

pub use crate::crypto::KeyId;
pub use access_token::{IssuedToken, VerifiedToken};
pub use keyring::{KeyRotation, Keyring, ensure_signing_key, rotate_signing_key, sealing_owner};
pub use refresh_token::{ParsedRefreshToken, RefreshKeys, Salt, TokenDigest};
pub use signing_key::SigningAlgorithm;

use crate::{crypto::SealedSecret, db::Error, randomness::Randomness};

const MAX_TOKEN_BYTES: usize = 2_048;

/// Issues and verifies access tokens.
pub struct AccessTokens {
    /// Value of the claim `iss`.
    issuer: Arc<str>,
    keyring: Keyring,
    /// Hot path: verified tokens, by a SipHash with a random key, which makes collisions
    /// unpredictable (measured: a session check has 30,000 instructions, a signature verification
    /// alone about 400,000).
    verified: Cache<u128, VerifiedToken>,
    hasher: SipHasher13,
}

impl AccessTokens {
    /// Caches up to `cache_entries` verified tokens, beyond which the least used are evicted.
    pub fn new(issuer: Arc<str>, keyring: Keyring, cache_entries: usize) -> Self {
        Self {
            issuer,
            keyring,
            verified: Cache::new(cache_entries),
            hasher: SipHasher13::new_with_key(&Randomness.bytes()),
        }
    }

    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    fn cache_key(&self, token: &[u8]) -> u128 {
        self.hasher.hash(token).as_u128()
    }

    /// Returns the contents of a token that was verified before.
    pub fn cached(&self, token: &[u8]) -> Option<VerifiedToken> {
        self.verified.get(&self.cache_key(token))
    }

    /// Verifies issuer and signature of a token. Returns `None` if we did not issue it.
    pub async fn verify(
        &self,
        token: &[u8],
        now: Timestamp,
    ) -> Result<Option<VerifiedToken>, Error> {
        let text = std::str::from_utf8(token).ok();
        let Some(text) = text.filter(|text| text.len() <= MAX_TOKEN_BYTES) else {
            return Ok(None);
        };
        let verified = access_token::verify(text, &self.issuer, &self.keyring, now).await?;
        if let Some(verified) = &verified {
            self.verified
                .insert(self.cache_key(token), verified.clone());
        }
        Ok(verified)
    }

    /// Returns whether a verified token is for this tenant, has not expired, and its key is still
    /// accepted. Does not check the session.
    pub async fn is_valid(
        &self,
        verified: &VerifiedToken,
        tenant: TenantId,
        instant: Instant,
        now: Timestamp,
    ) -> Result<bool, Error> {
        if !verified.is_valid_for(tenant, now) {
            return Ok(false);
        }
        self.keyring.accepts(verified.key, instant, now).await
    }
}

/// Decodes a JWT and verifies its signature, but none of its claims.
pub fn decode_signed<T: DeserializeOwned>(
    token: &str,
    algorithm: Algorithm,
    key: &DecodingKey,
) -> jsonwebtoken::errors::Result<T> {
    let mut signature_only = Validation::new(algorithm);
    signature_only.required_spec_claims.clear();
    signature_only.validate_exp = false;
    signature_only.validate_aud = false;
    Ok(jsonwebtoken::decode(token, key, &signature_only)?.claims)
}
