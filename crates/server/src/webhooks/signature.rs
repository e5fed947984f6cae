//! Signatures of webhook requests by the Standard Webhooks specification, scheme `v1`: HMAC-SHA256 over
//! `{id}.{timestamp}.{body}`.
//!
//! Knows neither endpoints nor events, so that a command can sign requests too.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use sha2::Sha256;

use crate::randomness::Randomness;

/// The first characters of a displayed secret. They are not part of the key.
const PREFIX: &str = "whsec_";
const MIN_KEY_BYTES: usize = 24;
const MAX_KEY_BYTES: usize = 64;

/// The key that signs the requests to an endpoint: 24 to 64 bytes, displayed as `whsec_` and base64.
#[derive(Debug, Clone)]
pub struct WebhookSecret(SecretSlice<u8>);

/// A text is not a webhook secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be whsec_ and the base64 text of 24 to 64 bytes")]
pub struct InvalidWebhookSecret;

impl WebhookSecret {
    /// Generates a key of 32 random bytes.
    pub fn generate(randomness: Randomness) -> Self {
        let key: [u8; 32] = randomness.bytes();
        Self(key.to_vec().into())
    }

    /// Parses a displayed secret.
    pub fn parse(text: &str) -> Result<Self, InvalidWebhookSecret> {
        let encoded = text.strip_prefix(PREFIX).ok_or(InvalidWebhookSecret)?;
        let key = BASE64_STANDARD
            .decode(encoded)
            .map_err(|_| InvalidWebhookSecret)?;
        if !(MIN_KEY_BYTES..=MAX_KEY_BYTES).contains(&key.len()) {
            return Err(InvalidWebhookSecret);
        }
        Ok(Self(key.into()))
    }

    /// Returns the text that a receiver is configured with.
    pub fn to_text(&self) -> SecretString {
        let encoded = BASE64_STANDARD.encode(self.0.expose_secret());
        format!("{PREFIX}{encoded}").into()
    }

    #[expect(clippy::expect_used, reason = "HMAC accepts keys of any length")]
    fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.expose_secret())
            .expect("HMAC accepts any key length");
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// Returns the names and values of the headers of a request. `id` identifies the message and is the same for
/// each attempt to deliver it. `timestamp` is the time of the attempt in Unix seconds. Each secret adds a
/// signature, so that a receiver can verify with an old or a new secret.
pub fn signature_headers(
    secrets: &[WebhookSecret],
    id: &str,
    timestamp: i64,
    body: &[u8],
) -> [(&'static str, String); 3] {
    let signatures = secrets
        .iter()
        .map(|secret| secret.sign(id, timestamp, body));
    let signatures: Vec<String> = signatures.collect();
    [
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", timestamp.to_string()),
        ("webhook-signature", signatures.join(" ")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the official libraries' tests.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const BODY: &str = r#"{"test": 2432232314}"#;

    #[test]
    fn signature_of_the_official_example_is_reproduced() {
        let secret = WebhookSecret::parse(SECRET).unwrap();
        let headers = signature_headers(&[secret], ID, 1_614_265_330, BODY.as_bytes());
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(
            headers,
            [
                ("webhook-id", ID.to_owned()),
                ("webhook-timestamp", "1614265330".to_owned()),
                ("webhook-signature", expected.to_owned()),
            ]
        );
    }

    #[test]
    fn several_secrets_add_a_signature_each() {
        let old = WebhookSecret::parse(SECRET).unwrap();
        let new = WebhookSecret::generate(Randomness);
        let [_, _, (_, old_only)] = signature_headers(std::slice::from_ref(&old), ID, 1, b"{}");
        let [_, _, (_, new_only)] = signature_headers(std::slice::from_ref(&new), ID, 1, b"{}");
        let [_, _, (_, both)] = signature_headers(&[new, old], ID, 1, b"{}");
        assert_eq!(both, format!("{new_only} {old_only}"));
    }

    #[test]
    fn secret_is_parsed_from_its_own_text_only() {
        let secret = WebhookSecret::generate(Randomness);
        let text = secret.to_text();
        let parsed = WebhookSecret::parse(text.expose_secret()).unwrap();
        assert_eq!(parsed.0.expose_secret(), secret.0.expose_secret());
        for invalid in [
            "",
            "whsec_",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLQ==",
            "WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ] {
            assert!(WebhookSecret::parse(invalid).is_err(), "{invalid}");
        }
    }
}
