//! Refresh tokens: a key id, a session id, its salt, a generation and a MAC.
//!
//! Each new token of a session has the next generation. The MAC's key is derived from the master key
//! that the key id names and the session's salt. A token can therefore be computed again at any time
//! and is not stored. Because the token contains the salt, a forged one that names a configured master
//! key is rejected without a database read.
//!
//! Tokens of a master key that was replaced can no longer be computed. `perennial keys rewrap` stores
//! digests of those that devices still have ([`RefreshKeys::digests_to_carry`]).

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use perennial_domain::{Id, SessionId, TenantId};
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{
    crypto::{DerivedKeys, KeyId, PurposeKeys},
    db::Error,
    randomness::Randomness,
};

/// Lets secret scanners recognize a leaked token.
const PREFIX: &str = "prn_rt_";
const VERSION: u8 = 1;
const MAC_BYTES: usize = 32;

/// SHA-256 of a refresh token's bytes.
pub type TokenDigest = [u8; 32];

/// Random input of a session's MAC key, and the master key that it is combined with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Salt {
    pub bytes: [u8; 16],
    pub key: KeyId,
}

/// Issues and verifies refresh tokens.
#[derive(Clone)]
pub struct RefreshKeys(pub DerivedKeys);

/// The parts of a refresh token, not verified.
#[derive(Clone, Copy)]
pub struct ParsedRefreshToken {
    pub session: SessionId,
    pub generation: u32,
    pub salt: Salt,
    mac: [u8; MAC_BYTES],
    pub digest: TokenDigest,
}

impl RefreshKeys {
    /// Returns the salt of a new session.
    pub fn new_salt(&self, randomness: Randomness) -> Salt {
        Salt {
            bytes: randomness.bytes(),
            key: self.0.in_use().id,
        }
    }

    /// Returns the refresh token of this generation of a session. Fails if the salt's master key is not
    /// configured.
    pub fn issue(
        &self,
        tenant: TenantId,
        session: SessionId,
        salt: &Salt,
        generation: u32,
    ) -> Result<SecretString, Error> {
        let keys = self.keys_of(salt.key).ok_or_else(|| {
            let message =
                "a session's master key is not configured; see docs/runbooks/leaked-master-key";
            Error::Unavailable(message.to_owned())
        })?;
        let bytes = token_bytes(keys, tenant, session, salt, generation);
        Ok(format!("{PREFIX}{}", BASE64.encode(bytes)).into())
    }

    /// Returns whether the token was issued for this tenant with one of the configured master keys.
    /// Takes constant time.
    pub fn verify(&self, token: &ParsedRefreshToken, tenant: TenantId) -> bool {
        self.keys_of(token.salt.key).is_some_and(|keys| {
            mac(keys, tenant, token.session, &token.salt, token.generation)
                .verify_slice(&token.mac)
                .is_ok()
        })
    }

    /// Returns whether the token names a master key that is not configured.
    pub fn is_of_unknown_key(&self, token: &ParsedRefreshToken) -> bool {
        self.keys_of(token.salt.key).is_none()
    }

    fn keys_of(&self, id: KeyId) -> Option<&PurposeKeys> {
        self.0.all().find(|keys| keys.id == id)
    }

    /// Returns the digests of the tokens that a device may have of a session whose master key is being
    /// replaced: of the current and the previous generation. Returns `None` if the session's master key is
    /// not configured.
    pub fn digests_to_carry(
        &self,
        tenant: TenantId,
        session: SessionId,
        salt: &Salt,
        generation: u32,
    ) -> Option<Vec<TokenDigest>> {
        let keys = self.keys_of(salt.key)?;
        let generations = [Some(generation), generation.checked_sub(1)];
        let digest = |generation| digest(&token_bytes(keys, tenant, session, salt, generation));
        Some(generations.into_iter().flatten().map(digest).collect())
    }
}

fn token_bytes(
    keys: &PurposeKeys,
    tenant: TenantId,
    session: SessionId,
    salt: &Salt,
    generation: u32,
) -> Vec<u8> {
    let mac = mac(keys, tenant, session, salt, generation).finalize();
    let mut bytes = version_and_key_id(salt);
    bytes.extend(session.uuid().as_bytes());
    bytes.extend(generation.to_be_bytes());
    bytes.extend(salt.bytes);
    bytes.extend(mac.into_bytes());
    bytes
}

fn version_and_key_id(salt: &Salt) -> Vec<u8> {
    let KeyId([a, b, c, d]) = salt.key;
    vec![VERSION, a, b, c, d]
}

#[expect(
    clippy::expect_used,
    reason = "HKDF-SHA256 can derive 32 bytes, and HMAC accepts keys of any length"
)]
fn mac(
    keys: &PurposeKeys,
    tenant: TenantId,
    session: SessionId,
    salt: &Salt,
    generation: u32,
) -> Hmac<Sha256> {
    let mut key = [0; 32];
    Hkdf::<Sha256>::new(Some(&salt.bytes), &keys.refresh_tokens)
        .expand(b"perennial refresh token of a session", &mut key)
        .expect("32 bytes can be derived");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC accepts any key length");
    mac.update(&version_and_key_id(salt));
    mac.update(tenant.uuid().as_bytes());
    mac.update(session.uuid().as_bytes());
    mac.update(&generation.to_be_bytes());
    mac
}

fn digest(token: &[u8]) -> TokenDigest {
    Sha256::digest(token).into()
}

impl ParsedRefreshToken {
    /// Parses a token without verifying it.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64.decode(text.strip_prefix(PREFIX)?).ok()?;
        let (key, rest) = bytes.strip_prefix(&[VERSION])?.split_first_chunk()?;
        let (session, rest) = rest.split_first_chunk()?;
        let (generation, rest) = rest.split_first_chunk()?;
        let (salt, mac) = rest.split_first_chunk()?;
        Some(Self {
            session: SessionId::new(Uuid::from_bytes(*session)),
            generation: u32::from_be_bytes(*generation),
            salt: Salt {
                bytes: *salt,
                key: KeyId(*key),
            },
            mac: mac.try_into().ok()?,
            digest: digest(&bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::config::{MasterKey, MasterKeys};

    fn refresh_keys(present: &MasterKey, previous: Option<&MasterKey>) -> RefreshKeys {
        RefreshKeys(DerivedKeys::new(&MasterKeys {
            present: present.clone(),
            previous: previous.cloned(),
        }))
    }

    fn ids() -> (TenantId, SessionId) {
        let (tenant, session) = (Uuid::from_u128(1), Uuid::from_u128(2));
        (TenantId::new(tenant), SessionId::new(session))
    }

    #[test]
    fn verify_accepts_only_the_issued_token() {
        let [key, other] = [(); 2].map(|()| refresh_keys(&MasterKey::generate(Randomness), None));
        let (tenant, session) = ids();
        let salt = key.new_salt(Randomness);
        let token = key.issue(tenant, session, &salt, 7).unwrap();
        let text = token.expose_secret();
        let again = key.issue(tenant, session, &salt, 7).unwrap();
        assert_eq!(text, again.expose_secret());
        let parsed = ParsedRefreshToken::parse(text).unwrap();
        assert_eq!((parsed.session, parsed.generation), (session, 7));
        assert_eq!(parsed.salt, salt);
        assert!(key.verify(&parsed, tenant));
        assert!(!other.verify(&parsed, tenant));
        for salt in [
            Salt {
                bytes: [4; 16],
                ..salt
            },
            Salt {
                key: KeyId([0; 4]),
                ..salt
            },
        ] {
            assert!(!key.verify(&ParsedRefreshToken { salt, ..parsed }, tenant));
        }
        assert!(!key.verify(&parsed, TenantId::new(Uuid::from_u128(9))));
        // A token with any character changed, added or removed is rejected.
        for position in 0..text.len() {
            for character in ["A", "-", "=", "."] {
                let mut altered = text.to_owned();
                altered.replace_range(position..=position, character);
                let accepted = ParsedRefreshToken::parse(&altered)
                    .is_some_and(|parsed| key.verify(&parsed, tenant));
                assert_eq!(accepted, altered == text, "{altered}");
            }
        }
        for altered in [
            &text[1..],
            &text[..text.len() - 1],
            &format!("{text}A"),
            "",
            PREFIX,
        ] {
            let parsed = ParsedRefreshToken::parse(altered);
            assert!(!parsed.is_some_and(|parsed| key.verify(&parsed, tenant)));
        }
    }

    #[test]
    fn tokens_of_the_previous_master_key_are_verified_and_carried() {
        let [old, new] = [(); 2].map(|()| MasterKey::generate(Randomness));
        let (before, both) = (refresh_keys(&old, None), refresh_keys(&new, Some(&old)));
        let after = refresh_keys(&new, None);
        let (tenant, session) = ids();
        let salt = before.new_salt(Randomness);
        let parsed = |generation| {
            let token = before.issue(tenant, session, &salt, generation).unwrap();
            // All instances compute the same token.
            let again = both.issue(tenant, session, &salt, generation).unwrap();
            assert_eq!(token.expose_secret(), again.expose_secret());
            ParsedRefreshToken::parse(token.expose_secret()).unwrap()
        };
        assert!(before.verify(&parsed(7), tenant) && both.verify(&parsed(7), tenant));
        assert!(!after.verify(&parsed(7), tenant));
        assert!(after.is_of_unknown_key(&parsed(7)));
        let carried = both.digests_to_carry(tenant, session, &salt, 7).unwrap();
        for generation in 0..10 {
            let is_carried = carried.contains(&parsed(generation).digest);
            assert_eq!(is_carried, [6, 7].contains(&generation), "{generation}");
        }
        assert!(after.issue(tenant, session, &salt, 7).is_err());
        assert!(after.digests_to_carry(tenant, session, &salt, 7).is_none());
        // Sessions continue with the previous key until the database names the present one.
        assert_eq!(both.new_salt(Randomness).key, salt.key);
        assert!(both.0.select(&both.0.present().check));
        assert_eq!(
            both.new_salt(Randomness).key,
            after.new_salt(Randomness).key
        );
    }
}
