//! A key that signs access tokens.

use std::{fmt, str::FromStr};

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair,
        Ed25519KeyPair, KeyPair, UnparsedPublicKey,
    },
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use serde_json::{Value, json};
use uuid::Uuid;

/// How a key signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Ed25519.
    EdDsa,
    /// ECDSA on P-256, for verifiers that know nothing newer.
    Es256,
}

impl Algorithm {
    /// The word in a token's header.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EdDsa => "EdDSA",
            Self::Es256 => "ES256",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "EdDSA" => Ok(Self::EdDsa),
            "ES256" => Ok(Self::Es256),
            _ => Err("expected EdDSA or ES256".to_owned()),
        }
    }
}

/// The library refused a key, or to use it: a mistake of ours, or a damaged database.
#[derive(Debug, thiserror::Error)]
#[error("a signing key cannot be used")]
pub struct Unusable;

enum Pair {
    EdDsa(Ed25519KeyPair),
    Es256(EcdsaKeyPair),
}

/// A key that signs access tokens.
pub(super) struct SigningKey {
    pub(super) id: Uuid,
    pub(super) algorithm: Algorithm,
    pair: Pair,
    /// The first part of every token that it signs. A token with any other header is not ours, so nothing
    /// that somebody else wrote into one is ever read.
    pub(super) header: String,
}

impl SigningKey {
    /// A new private key, as it is kept.
    pub(super) fn generate(algorithm: Algorithm) -> Result<Vec<u8>, Unusable> {
        let document = match algorithm {
            Algorithm::EdDsa => Ed25519KeyPair::generate().and_then(|pair| pair.to_pkcs8()),
            Algorithm::Es256 => EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)
                .and_then(|pair| pair.to_pkcs8v1()),
        };
        Ok(document.map_err(|_| Unusable)?.as_ref().to_vec())
    }

    /// A key that was kept.
    pub(super) fn open(id: Uuid, algorithm: Algorithm, private: &[u8]) -> Result<Self, Unusable> {
        let pair = match algorithm {
            Algorithm::EdDsa => Ed25519KeyPair::from_pkcs8(private).map(Pair::EdDsa),
            Algorithm::Es256 => {
                EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, private).map(Pair::Es256)
            }
        };
        let header = format!(
            r#"{{"typ":"at+jwt","alg":"{algorithm}","kid":"{}"}}"#,
            id.simple()
        );
        Ok(Self {
            id,
            algorithm,
            pair: pair.map_err(|_| Unusable)?,
            header: BASE64.encode(header),
        })
    }

    /// The half that everybody may have.
    pub(super) fn public(&self) -> &[u8] {
        match &self.pair {
            Pair::EdDsa(pair) => pair.public_key().as_ref(),
            Pair::Es256(pair) => pair.public_key().as_ref(),
        }
    }

    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Unusable> {
        match &self.pair {
            Pair::EdDsa(pair) => Ok(pair.sign(message).as_ref().to_vec()),
            Pair::Es256(pair) => {
                let signature = pair.sign(&SystemRandom::new(), message);
                Ok(signature.map_err(|_| Unusable)?.as_ref().to_vec())
            }
        }
    }

    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match self.algorithm {
            Algorithm::EdDsa => {
                UnparsedPublicKey::new(&ED25519, self.public()).verify(message, signature)
            }
            Algorithm::Es256 => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.public())
                .verify(message, signature),
        };
        verified.is_ok()
    }

    /// As it is published (RFC 7517).
    pub(super) fn jwk(&self) -> Value {
        let (id, algorithm) = (self.id.simple().to_string(), self.algorithm.as_str());
        match self.algorithm {
            Algorithm::EdDsa => {
                let x = BASE64.encode(self.public());
                json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": id, "use": "sig", "alg": algorithm})
            }
            Algorithm::Es256 => {
                // A byte that says "both coordinates", and the two.
                let point = self.public().get(1..).unwrap_or_default();
                let (x, y) = point.split_at_checked(32).unwrap_or_default();
                let (x, y) = (BASE64.encode(x), BASE64.encode(y));
                json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": id, "use": "sig", "alg": algorithm})
            }
        }
    }
}
