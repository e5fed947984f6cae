//! The header `Stripe-Signature`: `t=…,v1=…[,v1=…]`, an HMAC-SHA256 over `{t}.{body}` for each secret that is live at
//! Stripe. The key is the whole text of the secret, `whsec_` included.

use axum::http::HeaderMap;
use jiff::Timestamp;
use secrecy::SecretString;

use crate::payment_accounts::notification_signature::{
    ClaimedSignature, SignatureError, check_signatures, check_time, single_header,
};

const HEADER: &str = "stripe-signature";

/// Checks that a notification is authentic and recent.
pub fn verify(
    secrets: &[SecretString],
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Result<(), SignatureError> {
    let header = StripeSignature::parse(single_header(headers, HEADER)?)?;
    let seconds = header.time.parse();
    check_time(seconds.map_err(|_| SignatureError::InvalidHeader)?, now)?;
    let parts: [&[u8]; 3] = [header.time.as_bytes(), b".", body];
    check_signatures(secrets, &parts, &header.signatures)
}

struct StripeSignature<'a> {
    time: &'a str,
    signatures: Vec<ClaimedSignature>,
}

impl<'a> StripeSignature<'a> {
    /// Parses the header. Other schemes than `v1` are skipped, because Stripe sends `v0` for tests. A time that is repeated
    /// is rejected: the signature holds for one.
    fn parse(header: &'a str) -> Result<Self, SignatureError> {
        let (mut time, mut signatures) = (None, Vec::new());
        for item in header.split(',') {
            match item.trim().split_once('=') {
                Some(("t", _)) if time.is_some() => return Err(SignatureError::InvalidHeader),
                Some(("t", value)) => time = Some(value),
                Some(("v1", value)) => signatures.extend(ClaimedSignature::parse(value)),
                Some(_) => {}
                None => return Err(SignatureError::InvalidHeader),
            }
        }
        match time {
            Some(time) if !signatures.is_empty() => Ok(Self { time, signatures }),
            _ => Err(SignatureError::InvalidHeader),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;
    use crate::payment_accounts::notification_signature::test_support::hex_signature;

    const BODY: &[u8] = br#"{"id":"evt_1"}"#;
    const NOW: i64 = 1_800_000_000;

    fn v1(secret: &str, time: i64) -> String {
        let time = time.to_string();
        let signature = hex_signature(secret, &[time.as_bytes(), b".", BODY]);
        format!("v1={signature}")
    }

    fn check(secrets: &[&str], values: &[&str]) -> Result<(), SignatureError> {
        let secrets: Vec<SecretString> = secrets.iter().map(|text| (*text).into()).collect();
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HEADER, HeaderValue::from_str(value).unwrap());
        }
        verify(
            &secrets,
            &headers,
            BODY,
            Timestamp::from_second(NOW).unwrap(),
        )
    }

    /// Name, secrets, headers and result.
    type SignatureCase<'a> = (
        &'a str,
        &'a [&'a str],
        Vec<String>,
        Result<(), SignatureError>,
    );

    #[test]
    fn signature_must_be_of_a_live_secret_over_time_and_body() {
        use SignatureError::{InvalidHeader, Mismatch, NotRecent};
        let (old, new) = ("whsec_old", "whsec_new");
        let (one, both): (&[&str], &[&str]) = (&[new], &[old, new]);
        let signed = |time: i64| format!("t={time},{}", v1(new, time));
        let good = signed(NOW);
        let mut flipped = good.clone();
        let last = flipped.pop().unwrap();
        flipped.push(if last == '0' { '1' } else { '0' });
        let cases: Vec<SignatureCase<'_>> = vec![
            ("valid", both, vec![good.clone()], Ok(())),
            (
                "of the old secret",
                both,
                vec![format!("t={NOW},{}", v1(old, NOW))],
                Ok(()),
            ),
            (
                "second of several",
                one,
                vec![format!("t={NOW},{},{}", v1("whsec_x", NOW), v1(new, NOW))],
                Ok(()),
            ),
            (
                "other schemes beside it",
                one,
                vec![format!("t={NOW},v0=00,{},v2=x", v1(new, NOW))],
                Ok(()),
            ),
            (
                "spaces after commas",
                one,
                vec![format!("t={NOW}, {}", v1(new, NOW))],
                Ok(()),
            ),
            ("300 s old", one, vec![signed(NOW - 300)], Ok(())),
            ("301 s old", one, vec![signed(NOW - 301)], Err(NotRecent)),
            ("300 s ahead", one, vec![signed(NOW + 300)], Ok(())),
            ("301 s ahead", one, vec![signed(NOW + 301)], Err(NotRecent)),
            ("one bit off", one, vec![flipped], Err(Mismatch)),
            (
                "another account's secret",
                &["whsec_other"],
                vec![good.clone()],
                Err(Mismatch),
            ),
            ("no secret", &[], vec![good.clone()], Err(Mismatch)),
            (
                "empty secret",
                &[""],
                vec![format!("t={NOW},{}", v1("", NOW))],
                Err(Mismatch),
            ),
            (
                "signed for another time",
                one,
                vec![format!("t={},{}", NOW + 1, v1(new, NOW))],
                Err(Mismatch),
            ),
            (
                "v0 only",
                one,
                vec![good.replace("v1=", "v0=")],
                Err(InvalidHeader),
            ),
            ("missing", one, vec![], Err(InvalidHeader)),
            (
                "repeated",
                one,
                vec![good.clone(), good.clone()],
                Err(InvalidHeader),
            ),
            (
                "two times",
                one,
                vec![format!("t={NOW},{good}")],
                Err(InvalidHeader),
            ),
            ("no time", one, vec![v1(new, NOW)], Err(InvalidHeader)),
            (
                "not a time",
                one,
                vec![format!("t=now,{}", v1(new, NOW))],
                Err(InvalidHeader),
            ),
            ("empty", one, vec![String::new()], Err(InvalidHeader)),
            (
                "garbage",
                one,
                vec!["\"<,=>".to_owned()],
                Err(InvalidHeader),
            ),
        ];
        for (name, secrets, values, expected) in cases {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            assert_eq!(check(secrets, &values), expected, "{name}");
        }
    }
}
