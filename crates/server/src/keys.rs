//! Keys, all derived from the master key, and what is sealed under them.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use hkdf::Hkdf;
use secrecy::SecretString;
use sha2::Sha256;

use crate::config::MasterKey;

/// A value by which a database recognises the master key that it was set up with, without learning
/// anything about it.
pub fn check_value(master: &MasterKey) -> [u8; 32] {
    derive(master, "perennial master key check")
}

/// The key that signs cursors.
pub fn cursor_key(master: &MasterKey) -> [u8; 32] {
    derive(master, "perennial cursors")
}

/// The key that all refresh tokens are proven by.
pub fn refresh_key(master: &MasterKey) -> [u8; 32] {
    derive(master, "perennial refresh tokens")
}

/// The seed of the key by which a sandbox is its own identity provider.
pub fn sandbox_seed(master: &MasterKey) -> [u8; 32] {
    derive(master, "perennial sandbox issuer")
}

/// A secret at rest: a nonce, and what AES-256-GCM made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed(pub Vec<u8>);

/// The key that seals what the service must be able to use: the private halves of its signing keys, and other
/// people's secrets, such as its client secret at a provider.
#[derive(Clone)]
pub struct SealingKey([u8; 32]);

/// It was sealed with another master key, or for something else, or was altered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sealed secret cannot be opened with this master key")]
pub struct CannotOpen;

impl SealingKey {
    /// Derived from the master key.
    pub fn of(master: &MasterKey) -> Self {
        Self(derive(master, "perennial sealed secrets"))
    }

    /// Seals a secret for this owner alone: moved to another's row, it does not open.
    #[expect(
        clippy::expect_used,
        reason = "AES-256-GCM fails only for texts of gigabytes"
    )]
    pub fn seal(&self, secret: &str, owner: &str) -> Sealed {
        let mut text = secret.as_bytes().to_vec();
        let nonce = self
            .cipher()
            .seal_in_place_append_tag(Aad::from(owner), &mut text)
            .expect("a short text can be sealed");
        let nonce: &[u8] = nonce.as_ref();
        Sealed([nonce, &text].concat())
    }

    /// Opens what was sealed for this owner.
    pub fn open(&self, sealed: &Sealed, owner: &str) -> Result<SecretString, CannotOpen> {
        let (nonce, text) = sealed.0.split_at_checked(NONCE_LEN).ok_or(CannotOpen)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| CannotOpen)?;
        let mut text = text.to_vec();
        let opened = self
            .cipher()
            .open_in_place(nonce, Aad::from(owner), &mut text)
            .map_err(|_| CannotOpen)?;
        let opened = std::str::from_utf8(opened).map_err(|_| CannotOpen)?;
        Ok(opened.into())
    }

    #[expect(clippy::expect_used, reason = "32 bytes are what AES-256 takes")]
    fn cipher(&self) -> RandomizedNonceKey {
        RandomizedNonceKey::new(&AES_256_GCM, &self.0).expect("a key of 32 bytes")
    }
}

/// A key for one purpose; different purposes have unrelated keys.
#[expect(
    clippy::expect_used,
    reason = "HKDF-SHA256 fails only for outputs longer than 8160 bytes"
)]
fn derive(master: &MasterKey, purpose: &str) -> [u8; 32] {
    let mut key = [0; 32];
    Hkdf::<Sha256>::new(None, master.expose())
        .expand(purpose.as_bytes(), &mut key)
        .expect("32 bytes can be derived");
    key
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::randomness::Randomness;

    #[test]
    fn sealed_for_one_owner_under_one_key() {
        let [one, other] = [(); 2].map(|()| SealingKey::of(&MasterKey::generate(Randomness)));
        let sealed = one.seal("hush", "a");
        assert_eq!(one.open(&sealed, "a").unwrap().expose_secret(), "hush");
        assert_ne!(one.seal("hush", "a"), sealed, "never the same twice");
        assert!(!sealed.0.windows(4).any(|window| window == b"hush"));
        assert!(one.open(&sealed, "b").is_err() && other.open(&sealed, "a").is_err());
        for position in 0..sealed.0.len() {
            let mut altered = sealed.clone();
            altered.0[position] ^= 1;
            assert!(one.open(&altered, "a").is_err(), "{position}");
        }
        assert!(one.open(&Sealed(vec![0; 5]), "a").is_err());
    }
}
