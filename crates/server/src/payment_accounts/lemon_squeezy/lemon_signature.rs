//! The header `X-Signature`: an HMAC-SHA256 over the body, in hexadecimal digits. It has no time, so a repeated notification
//! is recognized by its id only.

use axum::http::HeaderMap;
use jiff::Timestamp;
use secrecy::SecretString;

use crate::payment_accounts::notification_signature::{
    ClaimedSignature, SignatureError, check_signatures, single_header,
};

const HEADER: &str = "x-signature";

/// Checks that a notification is authentic. `_now` is unused: the signature has no time.
pub fn verify(
    secrets: &[SecretString],
    headers: &HeaderMap,
    body: &[u8],
    _now: Timestamp,
) -> Result<(), SignatureError> {
    let header = single_header(headers, HEADER)?;
    let claimed = ClaimedSignature::parse(header).ok_or(SignatureError::InvalidHeader)?;
    check_signatures(secrets, &[body], &[claimed])
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;
    use crate::payment_accounts::notification_signature::test_support::hex_signature;

    const BODY: &[u8] = br#"{"meta":{}}"#;

    fn check(secrets: &[&str], values: &[&str]) -> Result<(), SignatureError> {
        let secrets: Vec<SecretString> = secrets.iter().map(|text| (*text).into()).collect();
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HEADER, HeaderValue::from_str(value).unwrap());
        }
        verify(&secrets, &headers, BODY, Timestamp::UNIX_EPOCH)
    }

    /// Name, secrets, headers and result.
    type SignatureCase<'a> = (
        &'a str,
        &'a [&'a str],
        Vec<&'a str>,
        Result<(), SignatureError>,
    );

    #[test]
    fn signature_must_be_of_a_live_secret_over_the_body() {
        use SignatureError::{InvalidHeader, Mismatch};
        let signed = |secret| hex_signature(secret, &[BODY]);
        let (old, new) = (signed("old-secret"), signed("new-secret"));
        let flipped = {
            let mut flipped = new.clone();
            let last = flipped.pop().unwrap();
            flipped.push(if last == '0' { '1' } else { '0' });
            flipped
        };
        let both: &[&str] = &["old-secret", "new-secret"];
        let one: &[&str] = &["new-secret"];
        let cases: Vec<SignatureCase<'_>> = vec![
            ("of the old secret", both, vec![&old], Ok(())),
            ("of the new secret", both, vec![&new], Ok(())),
            ("of an expired secret", one, vec![&old], Err(Mismatch)),
            ("one bit off", one, vec![&flipped], Err(Mismatch)),
            (
                "another account's secret",
                &["other-secret"],
                vec![&new],
                Err(Mismatch),
            ),
            ("no secret", &[], vec![&new], Err(Mismatch)),
            ("missing", one, vec![], Err(InvalidHeader)),
            ("repeated", one, vec![&new, &new], Err(InvalidHeader)),
            (
                "two in one header",
                one,
                vec![&old, &new],
                Err(InvalidHeader),
            ),
            ("empty", one, vec![""], Err(InvalidHeader)),
            ("garbage", one, vec!["sha256=<>"], Err(InvalidHeader)),
        ];
        for (name, secrets, values, expected) in cases {
            assert_eq!(check(secrets, &values), expected, "{name}");
        }
        let empty = signed("");
        assert_eq!(check(&[""], &[&empty]), Err(Mismatch));
    }
}
