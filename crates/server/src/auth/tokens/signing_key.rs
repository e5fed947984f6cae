//! A key that signs access tokens.
//!
//! Tokens are verified with `jsonwebtoken` but signed here, because `jsonwebtoken::encode` parses
//! the private key and derives the public key on every call (measured: 140,000 more instructions
//! per refresh, which has 317,000 in all).

use std::{fmt, str::FromStr};

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, Signature,
    },
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{Jwk, PublicKeyUse},
};
use serde::Serialize;
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SigningAlgorithm {
    /// Ed25519.
    EdDsa,
    /// ECDSA on P-256, for verifiers without Ed25519.
    Es256,
}

impl SigningAlgorithm {
    /// Returns the JWT header's `alg`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EdDsa => "EdDSA",
            Self::Es256 => "ES256",
        }
    }
}

impl fmt::Display for SigningAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SigningAlgorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "EdDSA" => Ok(Self::EdDsa),
            "ES256" => Ok(Self::Es256),
            _ => Err("must be EdDSA or ES256".to_owned()),
        }
    }
}

impl From<SigningAlgorithm> for Algorithm {
    fn from(algorithm: SigningAlgorithm) -> Self {
        match algorithm {
            SigningAlgorithm::EdDsa => Self::EdDSA,
            SigningAlgorithm::Es256 => Self::ES256,
        }
    }
}

/// A key could not be generated, decoded or used: a bug, or a damaged database.
#[derive(Debug, thiserror::Error)]
#[error("a signing key is unusable")]
pub struct UnusableKey;

enum PrivateKey {
    EdDsa(Ed25519KeyPair),
    Es256(EcdsaKeyPair),
}

pub(super) struct SigningKey {
    pub(super) id: Uuid,
    pub(super) algorithm: SigningAlgorithm,
    private: PrivateKey,
    pub(super) decoding_key: DecodingKey,
    /// The encoded header of every token that this key signs. Tokens with any other header are
    /// rejected.
    pub(super) header: String,
}

impl SigningKey {
    /// Generates a private key, in PKCS#8.
    pub(super) fn generate(algorithm: SigningAlgorithm) -> Result<Vec<u8>, UnusableKey> {
        let document = match algorithm {
            SigningAlgorithm::EdDsa => Ed25519KeyPair::generate().and_then(|pair| pair.to_pkcs8()),
            SigningAlgorithm::Es256 => EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)
                .and_then(|pair| pair.to_pkcs8v1()),
        };
        Ok(document.map_err(|_| UnusableKey)?.as_ref().to_vec())
    }

    pub(super) fn from_pkcs8(
        id: Uuid,
        algorithm: SigningAlgorithm,
        pkcs8: &[u8],
    ) -> Result<Self, UnusableKey> {
        let private = match algorithm {
            SigningAlgorithm::EdDsa => Ed25519KeyPair::from_pkcs8(pkcs8).map(PrivateKey::EdDsa),
            SigningAlgorithm::Es256 => {
                EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8)
                    .map(PrivateKey::Es256)
            }
        };
        let private = private.map_err(|_| UnusableKey)?;
        let header = format!(
            r#"{{"typ":"at+jwt","alg":"{algorithm}","kid":"{}"}}"#,
            id.simple()
        );
        Ok(Self {
            id,
            algorithm,
            decoding_key: match &private {
                PrivateKey::EdDsa(pair) => DecodingKey::from_ed_der(pair.public_key().as_ref()),
                PrivateKey::Es256(pair) => DecodingKey::from_ec_der(pair.public_key().as_ref()),
            },
            private,
            header: BASE64.encode(header),
        })
    }

    pub(super) fn public_key(&self) -> &[u8] {
        match &self.private {
            PrivateKey::EdDsa(pair) => pair.public_key().as_ref(),
            PrivateKey::Es256(pair) => pair.public_key().as_ref(),
        }
    }

    /// Encodes and signs a JWT.
    pub(super) fn sign_jwt(&self, claims: &impl Serialize) -> Result<String, UnusableKey> {
        let claims = serde_json::to_vec(claims).map_err(|_| UnusableKey)?;
        let message = format!("{}.{}", self.header, BASE64.encode(claims));
        let signature = BASE64.encode(self.sign(message.as_bytes())?);
        Ok(format!("{message}.{signature}"))
    }

    fn sign(&self, message: &[u8]) -> Result<Signature, UnusableKey> {
        match &self.private {
            PrivateKey::EdDsa(pair) => Ok(pair.sign(message)),
            PrivateKey::Es256(pair) => {
                let signature = pair.sign(&SystemRandom::new(), message);
                signature.map_err(|_| UnusableKey)
            }
        }
    }

    /// Returns the public key for publication (RFC 7517).
    pub(super) fn jwk(&self) -> Result<Jwk, UnusableKey> {
        let algorithm = Some(self.algorithm.into());
        let mut jwk =
            Jwk::from_decoding_key(&self.decoding_key, algorithm).map_err(|_| UnusableKey)?;
        jwk.common.key_id = Some(self.id.simple().to_string());
        jwk.common.public_key_use = Some(PublicKeyUse::Signature);
        Ok(jwk)
    }
}
