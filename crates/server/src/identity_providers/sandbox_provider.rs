//! The identity provider of a sandbox: signs tokens for any email address, so that users can sign up
//! before a real provider is configured.
//!
//! It does not exist in live mode. Its issuer is a URN, so no operator can configure it as a provider.

use std::time::Instant;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, encode};
use perennial_domain::Email;
use secrecy::SecretString;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{IdentityProvider, ProviderKey, ProviderMetadata};
use crate::{config::MasterKey, crypto};

const ISSUER: &str = "urn:perennial:sandbox";
const AUDIENCE: &str = "perennial-sandbox";
const KEY_ID: &str = "sandbox";

pub struct SandboxProvider {
    encoding_key: EncodingKey,
    decoding_key: DecodingKey,
}

impl SandboxProvider {
    /// Derives the provider's key from the master key, so that all instances share it.
    pub fn from_master_key(master: &MasterKey) -> anyhow::Result<Self> {
        let seed = crypto::sandbox_issuer_seed(master);
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed)?;
        Ok(Self {
            encoding_key: EncodingKey::from_ed_der(pair.to_pkcs8()?.as_ref()),
            decoding_key: DecodingKey::from_ed_der(pair.public_key().as_ref()),
        })
    }

    /// Issues a token for the user with this email address.
    pub fn issue_token(
        &self,
        email: &Email,
        now: Timestamp,
        ttl: SignedDuration,
    ) -> anyhow::Result<SecretString> {
        let seconds = now.as_second();
        let claims = json!({
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": BASE64.encode(Sha256::digest(email.normalized())),
            "email": email.as_str(),
            "email_verified": true,
            "iat": seconds,
            "exp": seconds.saturating_add(ttl.as_secs()),
        });
        let header = Header {
            typ: Some("at+jwt".to_owned()),
            kid: Some(KEY_ID.to_owned()),
            ..Header::new(Algorithm::EdDSA)
        };
        Ok(encode(&header, &claims, &self.encoding_key)?.into())
    }

    pub(super) fn provider() -> IdentityProvider {
        IdentityProvider::new(ISSUER, &[AUDIENCE])
    }

    /// Returns the issuer and the metadata that a real provider would publish.
    pub(super) fn metadata(&self) -> (&'static str, ProviderMetadata) {
        let fetched_at = Instant::now();
        let key = ProviderKey {
            id: KEY_ID.to_owned(),
            algorithm: Some(Algorithm::EdDSA),
            verifier: self.decoding_key.clone(),
            fetched_at,
        };
        let metadata = ProviderMetadata {
            keys: vec![key],
            userinfo_endpoint: None,
            introspection_endpoint: None,
            fetched_at,
        };
        (ISSUER, metadata)
    }
}
