//! Refresh tokens: a session id, its salt, a generation and a MAC.
//!
//! Each new token of a session has the next generation. The MAC's key is derived from the
//! [`RefreshKey`] and the session's salt. A token can therefore be computed again at any time and is
//! not stored. Because the token contains the salt, a forged one is rejected without a database read.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use perennial_domain::{Id, SessionId, TenantId};
use secrecy::SecretString;
use sha2::Sha256;
use uuid::Uuid;

/// Lets secret scanners recognize a leaked token.
const PREFIX: &str = "prn_rt_";
/// Version of the token format.
const VERSION: u8 = 1;
const MAC_BYTES: usize = 32;

/// Random input of a session's MAC key.
pub type Salt = [u8; 16];

/// The key from which the MAC keys of all sessions are derived.
#[derive(Clone)]
pub struct RefreshKey(pub [u8; 32]);

/// The parts of a refresh token, not verified.
#[derive(Clone, Copy)]
pub struct ParsedRefreshToken {
    pub session: SessionId,
    pub generation: u32,
    pub salt: Salt,
    mac: [u8; MAC_BYTES],
}

impl RefreshKey {
    /// Returns the refresh token of this generation of a session.
    pub fn issue(
        &self,
        tenant: TenantId,
        session: SessionId,
        salt: &Salt,
        generation: u32,
    ) -> SecretString {
        let mac = self.mac(tenant, session, salt, generation).finalize();
        let mut bytes = vec![VERSION];
        bytes.extend(session.uuid().as_bytes());
        bytes.extend(generation.to_be_bytes());
        bytes.extend(salt);
        bytes.extend(mac.into_bytes());
        format!("{PREFIX}{}", BASE64.encode(bytes)).into()
    }

    /// Returns whether the token was issued with this key for this tenant. Takes constant time.
    pub fn verify(&self, token: &ParsedRefreshToken, tenant: TenantId) -> bool {
        let mac = self.mac(tenant, token.session, &token.salt, token.generation);
        mac.verify_slice(&token.mac).is_ok()
    }

    #[expect(
        clippy::expect_used,
        reason = "HKDF-SHA256 can derive 32 bytes, and HMAC accepts keys of any length"
    )]
    fn mac(
        &self,
        tenant: TenantId,
        session: SessionId,
        salt: &Salt,
        generation: u32,
    ) -> Hmac<Sha256> {
        let mut key = [0; 32];
        Hkdf::<Sha256>::new(Some(salt), &self.0)
            .expand(b"perennial refresh token of a session", &mut key)
            .expect("32 bytes can be derived");
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC accepts any key length");
        mac.update(&[VERSION]);
        mac.update(tenant.uuid().as_bytes());
        mac.update(session.uuid().as_bytes());
        mac.update(&generation.to_be_bytes());
        mac
    }
}

impl ParsedRefreshToken {
    /// Parses a token without verifying it.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64.decode(text.strip_prefix(PREFIX)?).ok()?;
        let (version, rest) = bytes.split_first()?;
        let (session, rest) = rest.split_first_chunk()?;
        let (generation, rest) = rest.split_first_chunk()?;
        let (salt, mac) = rest.split_first_chunk()?;
        (*version == VERSION).then_some(())?;
        Some(Self {
            session: SessionId::new(Uuid::from_bytes(*session)),
            generation: u32::from_be_bytes(*generation),
            salt: *salt,
            mac: mac.try_into().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn verify_accepts_only_the_issued_token() {
        let (key, other) = (RefreshKey([1; 32]), RefreshKey([2; 32]));
        let tenant = TenantId::new(Uuid::from_u128(1));
        let session = SessionId::new(Uuid::from_u128(2));
        let salt = [3; 16];
        let token = key.issue(tenant, session, &salt, 7);
        let text = token.expose_secret();
        assert_eq!(text, key.issue(tenant, session, &salt, 7).expose_secret());
        let parsed = ParsedRefreshToken::parse(text).unwrap();
        assert_eq!((parsed.session, parsed.generation), (session, 7));
        assert!(key.verify(&parsed, tenant));
        assert!(!other.verify(&parsed, tenant));
        let other_salt = ParsedRefreshToken {
            salt: [4; 16],
            ..parsed
        };
        assert!(!key.verify(&other_salt, tenant));
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
}
