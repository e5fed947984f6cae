//! What the signatures of all payment providers share: one header, HMAC-SHA256 in hexadecimal digits, several secrets, and a
//! time that must be recent.

use axum::http::HeaderMap;
use hex::FromHex;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

/// How far the time of a signature may be in the past or in the future, in seconds.
const MAX_CLOCK_DIFFERENCE: u64 = 300;

/// Why a notification is not authentic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error(
        "the signature header must be sent once, in the form that the payment provider documents"
    )]
    InvalidHeader,
    #[error(
        "the time of the signature must not differ from the current time by more than 5 minutes"
    )]
    NotRecent,
    #[error("no secret of the account made this signature over the body as it was received")]
    Mismatch,
}

/// An HMAC-SHA256 in hexadecimal digits, as a request claims it.
#[derive(Debug, Clone, Copy)]
pub struct ClaimedSignature([u8; 32]);

impl ClaimedSignature {
    /// Parses 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        FromHex::from_hex(text).ok().map(Self)
    }
}

/// Returns the value of a header that occurs exactly once.
pub fn single_header<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, SignatureError> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none());
    value
        .and_then(|value| value.to_str().ok())
        .ok_or(SignatureError::InvalidHeader)
}

/// Checks that the time of a signature, in Unix seconds, is recent.
pub fn check_time(seconds: i64, now: Timestamp) -> Result<(), SignatureError> {
    if seconds.abs_diff(now.as_second()) > MAX_CLOCK_DIFFERENCE {
        return Err(SignatureError::NotRecent);
    }
    Ok(())
}

/// Checks that one of the secrets made one of the signatures over the parts of a message. Compares in constant time. An
/// empty secret makes none.
pub fn check_signatures(
    secrets: &[SecretString],
    parts: &[&[u8]],
    claimed: &[ClaimedSignature],
) -> Result<(), SignatureError> {
    let is_authentic = secrets
        .iter()
        .filter(|secret| !secret.expose_secret().is_empty())
        .any(|secret| {
            let mac = sign(secret, parts);
            let matches = |ClaimedSignature(bytes): &ClaimedSignature| {
                mac.clone().verify_slice(bytes).is_ok()
            };
            claimed.iter().any(matches)
        });
    if is_authentic {
        Ok(())
    } else {
        Err(SignatureError::Mismatch)
    }
}

#[expect(clippy::expect_used, reason = "HMAC accepts keys of any length")]
fn sign(secret: &SecretString, parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes())
        .expect("HMAC accepts any key length");
    for part in parts {
        mac.update(part);
    }
    mac
}

#[cfg(test)]
pub mod test_support {
    //! Signs messages in tests.

    use super::*;

    /// Returns the hexadecimal digits of a signature.
    pub fn hex_signature(secret: &str, parts: &[&[u8]]) -> String {
        hex::encode(sign(&secret.into(), parts).finalize().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_is_parsed_from_64_hexadecimal_digits_only() {
        let digits = "0f".repeat(32);
        assert_eq!(ClaimedSignature::parse(&digits).unwrap().0, [15; 32]);
        assert!(ClaimedSignature::parse(&digits.to_uppercase()).is_some());
        let invalid = [
            String::new(),
            "0f".repeat(31),
            "0f".repeat(33),
            "+f".repeat(32),
            "0g".repeat(32),
            "é".repeat(32),
        ];
        for invalid in invalid {
            assert!(ClaimedSignature::parse(&invalid).is_none(), "{invalid}");
        }
    }

    #[test]
    fn time_may_differ_by_five_minutes_in_both_directions() {
        let now = Timestamp::from_second(1_000).unwrap();
        for (seconds, expected) in [
            (700, Ok(())),
            (1_300, Ok(())),
            (699, Err(SignatureError::NotRecent)),
            (1_301, Err(SignatureError::NotRecent)),
            (i64::MIN, Err(SignatureError::NotRecent)),
            (i64::MAX, Err(SignatureError::NotRecent)),
        ] {
            assert_eq!(check_time(seconds, now), expected, "{seconds}");
        }
    }

    #[test]
    fn empty_secret_is_never_accepted() {
        let signature = test_support::hex_signature("", &[b"body"]);
        let claimed = [ClaimedSignature::parse(&signature).unwrap()];
        let check = |secrets: &[SecretString]| check_signatures(secrets, &[b"body"], &claimed);
        assert_eq!(check(&["".into()]), Err(SignatureError::Mismatch));
        assert_eq!(check(&[]), Err(SignatureError::Mismatch));
    }
}
