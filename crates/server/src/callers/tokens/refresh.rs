//! Refresh tokens: a session, its salt, a generation, and a proof that we said so.
//!
//! The proof is an HMAC under a key derived from the master key and the session's salt. So a token can be made
//! again whenever it is asked for again, none is stored, and a copy of the database is worth nothing. And since
//! the token names the salt, what we have not made is refused without asking the database.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use perennial_domain::{Id, SessionId, TenantId};
use secrecy::SecretString;
use sha2::Sha256;
use uuid::Uuid;

/// What every refresh token begins with, so that one that lies about is known for what it is.
const PREFIX: &str = "prn_rt_";
/// The form of what follows.
const VERSION: u8 = 1;
const PROOF: usize = 32;

/// The random part of a session's keys.
pub type Salt = [u8; 16];

/// The key from which all sessions' keys are derived.
#[derive(Clone)]
pub struct RefreshKey(pub [u8; 32]);

/// A refresh token that somebody has sent.
#[derive(Clone, Copy)]
pub struct Presented {
    /// The session that it names.
    pub session: SessionId,
    /// The generation that it names.
    pub generation: u32,
    /// The salt that it names.
    pub salt: Salt,
    proof: [u8; PROOF],
}

impl RefreshKey {
    /// The token of a session's generation.
    pub fn token(
        &self,
        tenant: TenantId,
        session: SessionId,
        salt: &Salt,
        generation: u32,
    ) -> SecretString {
        let proof = self.proof(tenant, session, salt, generation).finalize();
        let mut bytes = vec![VERSION];
        bytes.extend(session.uuid().as_bytes());
        bytes.extend(generation.to_be_bytes());
        bytes.extend(salt);
        bytes.extend(proof.into_bytes());
        format!("{PREFIX}{}", BASE64.encode(bytes)).into()
    }

    /// Whether we have made this token, for this tenant.
    pub fn has_made(&self, token: &Presented, tenant: TenantId) -> bool {
        let proof = self.proof(tenant, token.session, &token.salt, token.generation);
        // Takes as long for a proof that is nearly right.
        proof.verify_slice(&token.proof).is_ok()
    }

    #[expect(
        clippy::expect_used,
        reason = "HKDF-SHA256 gives 32 bytes, and HMAC takes keys of any length"
    )]
    fn proof(
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
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any length is fine");
        mac.update(&[VERSION]);
        mac.update(tenant.uuid().as_bytes());
        mac.update(session.uuid().as_bytes());
        mac.update(&generation.to_be_bytes());
        mac
    }
}

impl Presented {
    /// Reads a token without believing it.
    pub fn read(text: &str) -> Option<Self> {
        let bytes = BASE64.decode(text.strip_prefix(PREFIX)?).ok()?;
        let (version, rest) = bytes.split_first()?;
        let (session, rest) = rest.split_first_chunk()?;
        let (generation, rest) = rest.split_first_chunk()?;
        let (salt, proof) = rest.split_first_chunk()?;
        (*version == VERSION).then_some(())?;
        Some(Self {
            session: SessionId::new(Uuid::from_bytes(*session)),
            generation: u32::from_be_bytes(*generation),
            salt: *salt,
            proof: proof.try_into().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn the_same_again_and_nothing_else() {
        let (key, other) = (RefreshKey([1; 32]), RefreshKey([2; 32]));
        let tenant = TenantId::new(Uuid::from_u128(1));
        let session = SessionId::new(Uuid::from_u128(2));
        let salt = [3; 16];
        let token = key.token(tenant, session, &salt, 7);
        let text = token.expose_secret();
        assert_eq!(text, key.token(tenant, session, &salt, 7).expose_secret());
        let read = Presented::read(text).unwrap();
        assert_eq!((read.session, read.generation), (session, 7));
        assert!(key.has_made(&read, tenant));
        assert!(!other.has_made(&read, tenant));
        let salted = Presented {
            salt: [4; 16],
            ..read
        };
        assert!(!key.has_made(&salted, tenant));
        assert!(!key.has_made(&read, TenantId::new(Uuid::from_u128(9))));
        // Any character changed, added or left out: not a token, or not one that we made.
        for position in 0..text.len() {
            for character in ["A", "-", "=", "."] {
                let mut altered = text.to_owned();
                altered.replace_range(position..=position, character);
                let ours =
                    Presented::read(&altered).is_some_and(|read| key.has_made(&read, tenant));
                assert_eq!(ours, altered == text, "{altered}");
            }
        }
        for altered in [
            &text[1..],
            &text[..text.len() - 1],
            &format!("{text}A"),
            "",
            PREFIX,
        ] {
            let read = Presented::read(altered);
            assert!(!read.is_some_and(|read| key.has_made(&read, tenant)));
        }
    }
}
