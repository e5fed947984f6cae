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
use crate::crypto::{DerivedKeys, PurposeKeys};

const ISSUER: &str = "urn:perennial:sandbox";
const AUDIENCE: &str = "perennial-sandbox";

pub struct SandboxProvider {
    /// The id and the key that signs new tokens.
    signing_key: (String, EncodingKey),
    /// The ids and keys of all configured master keys.
    verifying_keys: Vec<(String, DecodingKey)>,
}

impl SandboxProvider {
    /// Derives the provider's keys from the master keys, so that all instances share them. Signs with
    /// the master key in use.
    pub fn new(keys: &DerivedKeys) -> anyhow::Result<Self> {
        let pair = |keys: &PurposeKeys| Ed25519KeyPair::from_seed_unchecked(&keys.sandbox_issuer);
        let key_id = |keys: &PurposeKeys| format!("sandbox-{:08x}", keys.id.to_column());
        let verifying_keys = keys.all().map(|keys| {
            let key = DecodingKey::from_ed_der(pair(keys)?.public_key().as_ref());
            Ok((key_id(keys), key))
        });
        let in_use = keys.in_use();
        let signing_key = EncodingKey::from_ed_der(pair(in_use)?.to_pkcs8()?.as_ref());
        Ok(Self {
            signing_key: (key_id(in_use), signing_key),
            verifying_keys: verifying_keys.collect::<anyhow::Result<_>>()?,
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
        let (key_id, key) = &self.signing_key;
        let header = Header {
            typ: Some("at+jwt".to_owned()),
            kid: Some(key_id.clone()),
            ..Header::new(Algorithm::EdDSA)
        };
        Ok(encode(&header, &claims, key)?.into())
    }

    pub(super) fn provider() -> IdentityProvider {
        IdentityProvider::new(ISSUER, &[AUDIENCE])
    }

    /// Returns the issuer and the metadata that a real provider would publish.
    pub(super) fn metadata(&self) -> (&'static str, ProviderMetadata) {
        let fetched_at = Instant::now();
        let keys = self.verifying_keys.iter().map(|(id, key)| ProviderKey {
            id: id.clone(),
            algorithm: Some(Algorithm::EdDSA),
            verifier: key.clone(),
            fetched_at,
        });
        let metadata = ProviderMetadata {
            keys: keys.collect(),
            userinfo_endpoint: None,
            introspection_endpoint: None,
            authorization_endpoint: None,
            token_endpoint: None,
            fetched_at,
        };
        (ISSUER, metadata)
    }
}
