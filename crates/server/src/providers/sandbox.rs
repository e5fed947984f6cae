//! A sandbox is its own identity provider, so that one can sign up before one has another. In live mode nobody
//! makes one of these, and its issuer is not an address that could be listed.

use std::time::Instant;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, DecodingKey};
use perennial_domain::Email;
use secrecy::SecretString;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Key, Provider, Published, Verify};
use crate::{config::MasterKey, keys};

const ISSUER: &str = "urn:perennial:sandbox";
const AUDIENCE: &str = "perennial-sandbox";
const KEY_ID: &str = "sandbox";

/// Makes tokens for whomever one likes.
pub struct Sandbox(Ed25519KeyPair);

impl Sandbox {
    /// The one of this master key; every instance of a sandbox has the same.
    pub fn of(master: &MasterKey) -> anyhow::Result<Self> {
        let seed = keys::sandbox_seed(master);
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed);
        let pair = pair.map_err(|_| anyhow::anyhow!("the sandbox's key cannot be made"))?;
        Ok(Self(pair))
    }

    /// A token that proves the user with this e-mail address, for a while.
    pub fn token(&self, email: &Email, now: Timestamp, lasts: SignedDuration) -> SecretString {
        let seconds = now.as_second();
        let claims = json!({
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": BASE64.encode(Sha256::digest(email.key())),
            "email": email.as_str(),
            "email_verified": true,
            "iat": seconds,
            "exp": seconds.saturating_add(lasts.as_secs()),
        });
        let header = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": KEY_ID});
        let [header, claims] = [header, claims].map(|part| BASE64.encode(part.to_string()));
        let message = format!("{header}.{claims}");
        let signature = BASE64.encode(self.0.sign(message.as_bytes()));
        format!("{message}.{signature}").into()
    }

    /// Itself, as if an operator had listed it.
    pub(super) fn listed() -> Provider {
        Provider {
            issuer: ISSUER.to_owned(),
            audiences: vec![AUDIENCE.to_owned()],
            verify: Verify::Jwt,
        }
    }

    /// What it would publish, if it were elsewhere.
    pub(super) fn published(&self) -> (&'static str, Published) {
        let fetched = Instant::now();
        let key = Key {
            id: KEY_ID.to_owned(),
            algorithm: Some(Algorithm::EdDSA),
            verifier: DecodingKey::from_ed_der(self.0.public_key().as_ref()),
            fetched,
        };
        let published = Published {
            keys: vec![key],
            userinfo_endpoint: None,
            introspection_endpoint: None,
            fetched,
        };
        (ISSUER, published)
    }
}
