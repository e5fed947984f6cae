//! Key derivation from the master keys, and encryption of secrets in the database.
//!
//! An installation uses one master key. During a rotation, two are configured: the present one and the
//! previous one, which it replaces. The database says which of them is in use, so that all instances
//! change at the same time ([`DerivedKeys::select`]). Values of both can be read.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use hkdf::Hkdf;
use secrecy::SecretString;
use sha2::Sha256;

use crate::config::{MasterKey, MasterKeys};

/// The first byte of a sealed secret.
const SEALED_VERSION: u8 = 1;

/// Identifies a master key without revealing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyId(pub [u8; 4]);

impl KeyId {
    /// Converts the id to the type of its columns.
    pub const fn to_column(self) -> i32 {
        i32::from_be_bytes(self.0)
    }

    pub const fn from_column(column: i32) -> Self {
        Self(column.to_be_bytes())
    }
}

/// The keys derived from one master key, one for each purpose.
pub struct PurposeKeys {
    pub id: KeyId,
    /// Identifies the master key without revealing it. It is stored in the database, so that a wrong
    /// master key is detected at startup.
    pub check: [u8; 32],
    /// Authenticates refresh tokens.
    pub refresh_tokens: [u8; 32],
    /// Signs pagination cursors.
    pub cursors: [u8; 32],
    /// Signs the ids of users in the custom data of checkouts at payment providers.
    pub user_tokens: [u8; 32],
    /// The seed of the signing key of a sandbox's built-in identity provider.
    pub sandbox_issuer: [u8; 32],
    /// Encrypts secrets which the service must be able to read: private signing keys, and its client
    /// secrets at identity providers.
    sealing: [u8; 32],
}

impl PurposeKeys {
    fn derive(master: &MasterKey) -> Self {
        let [a, b, c, d, ..] = derive(master, "perennial master key id");
        Self {
            id: KeyId([a, b, c, d]),
            check: derive(master, "perennial master key check"),
            refresh_tokens: derive(master, "perennial refresh tokens"),
            cursors: derive(master, "perennial cursors"),
            user_tokens: derive(master, "perennial user tokens of checkouts"),
            sandbox_issuer: derive(master, "perennial sandbox issuer"),
            sealing: derive(master, "perennial sealed secrets"),
        }
    }

    fn sealed_header(&self) -> [u8; 5] {
        let [a, b, c, d] = self.id.0;
        [SEALED_VERSION, a, b, c, d]
    }

    /// Returns the nonce, the ciphertext and its tag.
    #[expect(
        clippy::expect_used,
        reason = "AES-256-GCM fails only for texts of gigabytes"
    )]
    fn encrypt(&self, secret: &str, owner: &str) -> Vec<u8> {
        let mut text = secret.as_bytes().to_vec();
        let nonce = self
            .cipher()
            .seal_in_place_append_tag(Aad::from(owner), &mut text)
            .expect("a short text can be encrypted");
        let nonce: &[u8] = nonce.as_ref();
        [nonce, &text].concat()
    }

    fn decrypt(&self, sealed: &[u8], owner: &str) -> Option<SecretString> {
        let (nonce, text) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = text.to_vec();
        let secret = self
            .cipher()
            .open_in_place(nonce, Aad::from(owner), &mut text)
            .ok()?;
        Some(std::str::from_utf8(secret).ok()?.into())
    }

    #[expect(clippy::expect_used, reason = "an AES-256 key has 32 bytes")]
    fn cipher(&self) -> RandomizedNonceKey {
        RandomizedNonceKey::new(&AES_256_GCM, &self.sealing).expect("a key of 32 bytes")
    }
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

/// An encrypted secret: a version, a key id, and the nonce, ciphertext and tag of AES-256-GCM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSecret(pub Vec<u8>);

/// The secret was encrypted with another master key or for another owner, or it was modified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot decrypt a secret with this master key")]
pub struct UnsealError;

/// The keys derived from all configured master keys. Clones share which master key is in use.
#[derive(Clone)]
pub struct DerivedKeys(Arc<KeyState>);

struct KeyState {
    present: PurposeKeys,
    previous: Option<PurposeKeys>,
    uses_previous: AtomicBool,
    is_replaced: AtomicBool,
}

impl DerivedKeys {
    /// Derives all keys. Until [`Self::select`] is called, the previous master key is in use if it is
    /// configured.
    pub fn new(masters: &MasterKeys) -> Self {
        let previous = masters.previous.as_ref().map(PurposeKeys::derive);
        Self(Arc::new(KeyState {
            present: PurposeKeys::derive(&masters.present),
            uses_previous: AtomicBool::new(previous.is_some()),
            previous,
            is_replaced: AtomicBool::new(false),
        }))
    }

    /// Uses the master key with this check value from now on. Returns false if the master key is not
    /// configured.
    pub fn select(&self, check: &[u8]) -> bool {
        let uses_previous = self.previous().is_some_and(|keys| keys.check == check);
        let is_known = uses_previous || self.present().check == check;
        if is_known {
            self.0.uses_previous.store(uses_previous, Ordering::Relaxed);
        }
        self.0.is_replaced.store(!is_known, Ordering::Relaxed);
        is_known
    }

    /// Returns whether the database uses a master key that is not configured. Such an instance rejects
    /// tokens that other instances accept.
    pub fn is_replaced(&self) -> bool {
        self.0.is_replaced.load(Ordering::Relaxed)
    }

    pub fn present(&self) -> &PurposeKeys {
        &self.0.present
    }

    pub fn previous(&self) -> Option<&PurposeKeys> {
        self.0.previous.as_ref()
    }

    /// Returns the keys that protect new values.
    pub fn in_use(&self) -> &PurposeKeys {
        match self.previous() {
            Some(previous) if self.0.uses_previous.load(Ordering::Relaxed) => previous,
            _ => self.present(),
        }
    }

    pub fn all(&self) -> impl Iterator<Item = &PurposeKeys> {
        [Some(self.present()), self.previous()]
            .into_iter()
            .flatten()
    }

    /// Encrypts a secret for an owner. The result cannot be decrypted for another owner.
    pub fn seal(&self, secret: &str, owner: &str) -> SealedSecret {
        let keys = self.in_use();
        let encrypted = keys.encrypt(secret, owner);
        SealedSecret([keys.sealed_header().as_slice(), &encrypted].concat())
    }

    /// Decrypts a secret that was encrypted for this owner, with any of the master keys.
    pub fn open(&self, sealed: &SealedSecret, owner: &str) -> Result<SecretString, UnsealError> {
        let opened = self.all().find_map(|keys| {
            let encrypted = sealed.0.strip_prefix(&keys.sealed_header())?;
            keys.decrypt(encrypted, owner)
        });
        opened.ok_or(UnsealError)
    }

    /// Returns whether a secret was encrypted with the present master key.
    pub fn is_sealed_with_present(&self, sealed: &SealedSecret) -> bool {
        sealed.0.starts_with(&self.present().sealed_header())
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::randomness::Randomness;

    fn keys(present: &MasterKey, previous: Option<&MasterKey>) -> DerivedKeys {
        DerivedKeys::new(&MasterKeys {
            present: present.clone(),
            previous: previous.cloned(),
        })
    }

    #[test]
    fn sealed_secret_opens_only_unmodified_for_its_owner_and_key() {
        let [key, other_key] = [(); 2].map(|()| keys(&MasterKey::generate(Randomness), None));
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

    #[test]
    fn secrets_of_the_previous_key_open_until_it_is_removed() {
        let [old, new] = [(); 2].map(|()| MasterKey::generate(Randomness));
        let before = keys(&old, None);
        let sealed = before.seal("hush", "a");
        let both = keys(&new, Some(&old));
        assert!(both.open(&sealed, "a").is_ok() && !both.is_sealed_with_present(&sealed));
        // The previous key stays in use until the database names the present one.
        assert!(before.open(&both.seal("hush", "a"), "a").is_ok());
        assert!(both.select(&both.present().check));
        let resealed = both.seal("hush", "a");
        assert!(both.is_sealed_with_present(&resealed) && both.open(&resealed, "a").is_ok());

        let after = keys(&new, None);
        assert!(after.open(&resealed, "a").is_ok() && before.open(&resealed, "a").is_err());
        assert!(after.open(&sealed, "a").is_err());
    }

    #[test]
    fn unknown_master_key_in_use_is_reported() {
        let [old, new] = [(); 2].map(|()| MasterKey::generate(Randomness));
        let (left_behind, other) = (keys(&old, None), keys(&new, None));
        assert!(!left_behind.select(&other.present().check));
        assert!(left_behind.is_replaced());
        assert!(left_behind.select(&left_behind.present().check));
        assert!(!left_behind.is_replaced());
    }
}
