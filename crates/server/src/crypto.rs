//! Key derivation from the master key, and encryption of secrets in the database.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use hkdf::Hkdf;
use secrecy::SecretString;
use sha2::Sha256;

use crate::config::MasterKey;

/// Returns a value that identifies the master key without revealing it. It is stored in the database,
/// so that a wrong master key is detected at startup.
pub fn master_key_check(master: &MasterKey) -> [u8; 32] {
    derive(master, "perennial master key check")
}

/// Derives the key that signs pagination cursors.
pub fn cursor_key(master: &MasterKey) -> [u8; 32] {
    derive(master, "perennial cursors")
}

/// Derives the key that authenticates refresh tokens.
pub fn refresh_token_key(master: &MasterKey) -> [u8; 32] {
    derive(master, "perennial refresh tokens")
}

/// Derives the seed of the signing key of a sandbox's built-in identity provider.
pub fn sandbox_issuer_seed(master: &MasterKey) -> [u8; 32] {
    derive(master, "perennial sandbox issuer")
}

/// Derives a key for one purpose by HKDF-SHA256. Keys of different purposes are independent.
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

/// An encrypted secret: the nonce, the ciphertext of AES-256-GCM and its tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSecret(pub Vec<u8>);

/// The key that encrypts secrets which the service must be able to read: private signing keys, and
/// its client secrets at identity providers.
#[derive(Clone)]
pub struct SealingKey([u8; 32]);

/// The secret was encrypted with another master key or for another owner, or it was modified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot decrypt a secret with this master key")]
pub struct UnsealError;

impl SealingKey {
    pub fn derive(master: &MasterKey) -> Self {
        Self(derive(master, "perennial sealed secrets"))
    }

    /// Encrypts a secret for an owner. The result cannot be decrypted for another owner.
    #[expect(
        clippy::expect_used,
        reason = "AES-256-GCM fails only for texts of gigabytes"
    )]
    pub fn seal(&self, secret: &str, owner: &str) -> SealedSecret {
        let mut text = secret.as_bytes().to_vec();
        let nonce = self
            .cipher()
            .seal_in_place_append_tag(Aad::from(owner), &mut text)
            .expect("a short text can be encrypted");
        let nonce: &[u8] = nonce.as_ref();
        SealedSecret([nonce, &text].concat())
    }

    /// Decrypts a secret that was encrypted for this owner.
    pub fn open(&self, sealed: &SealedSecret, owner: &str) -> Result<SecretString, UnsealError> {
        let (nonce, text) = sealed.0.split_at_checked(NONCE_LEN).ok_or(UnsealError)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| UnsealError)?;
        let mut text = text.to_vec();
        let secret = self
            .cipher()
            .open_in_place(nonce, Aad::from(owner), &mut text)
            .map_err(|_| UnsealError)?;
        let secret = std::str::from_utf8(secret).map_err(|_| UnsealError)?;
        Ok(secret.into())
    }

    #[expect(clippy::expect_used, reason = "an AES-256 key has 32 bytes")]
    fn cipher(&self) -> RandomizedNonceKey {
        RandomizedNonceKey::new(&AES_256_GCM, &self.0).expect("a key of 32 bytes")
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::randomness::Randomness;

    #[test]
    fn sealed_secret_opens_only_unmodified_for_its_owner_and_key() {
        let [key, other_key] =
            [(); 2].map(|()| SealingKey::derive(&MasterKey::generate(Randomness)));
        let sealed = key.seal("hush", "a");
        assert_eq!(key.open(&sealed, "a").unwrap().expose_secret(), "hush");
        assert_ne!(key.seal("hush", "a"), sealed, "the nonce is random");
        assert!(!sealed.0.windows(4).any(|window| window == b"hush"));
        assert!(key.open(&sealed, "b").is_err() && other_key.open(&sealed, "a").is_err());
        for position in 0..sealed.0.len() {
            let mut modified = sealed.clone();
            modified.0[position] ^= 1;
            assert!(key.open(&modified, "a").is_err(), "{position}");
        }
        assert!(key.open(&SealedSecret(vec![0; 5]), "a").is_err());
    }
}
