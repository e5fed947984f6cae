//! The cookie of a staff member's session.

use axum::http::{HeaderMap, HeaderValue, header};
use jiff::SignedDuration;

/// The prefix makes browsers accept the cookie only from this host, for all paths, over HTTPS or from localhost.
pub const NAME: &str = "__Host-perennial-console";

const MAX_VALUE_BYTES: usize = 1_024;

/// Returns the value of the cookie if the request has it exactly once.
pub fn find(headers: &HeaderMap) -> Option<&[u8]> {
    find_named(headers, NAME)
}

/// Returns the value of a cookie if the request has it exactly once.
pub fn find_named<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a [u8]> {
    let pairs = { headers.get_all(header::COOKIE).iter() }
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    let mut values = pairs.filter_map(|pair| {
        let pair = pair.trim_ascii().strip_prefix(name.as_bytes())?;
        pair.strip_prefix(b"=")
    });
    let value = values.next().filter(|_| values.next().is_none())?;
    Some(value).filter(|value| (1..=MAX_VALUE_BYTES).contains(&value.len()))
}

/// Returns the header that stores a cookie for this long.
pub fn set(
    name: &str,
    value: &str,
    max_age: SignedDuration,
    same_site: &str,
) -> Option<HeaderValue> {
    let seconds = max_age.as_secs();
    let cookie = format!(
        "{name}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite={same_site}"
    );
    HeaderValue::from_str(&cookie).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::COOKIE, HeaderValue::from_str(line).unwrap());
        }
        headers
    }

    #[test]
    fn cookie_is_found_among_others() {
        let lines = ["a=1; __Host-perennial-console=secret;b=2", "c=3"];
        assert_eq!(find(&headers(&lines)), Some(&b"secret"[..]));
        let split = ["a=1", "__Host-perennial-console=secret"];
        assert_eq!(find(&headers(&split)), Some(&b"secret"[..]));
    }

    #[test]
    fn missing_empty_repeated_and_longer_named_cookies_are_not_found() {
        for lines in [
            &["a=1"][..],
            &["__Host-perennial-console="],
            &["__Host-perennial-console"],
            &["__Host-perennial-console2=x"],
            &["x__Host-perennial-console=x"],
            &["__Host-perennial-console=x; __Host-perennial-console=y"],
            &["__Host-perennial-console=x", "__Host-perennial-console=x"],
        ] {
            assert_eq!(find(&headers(lines)), None, "{lines:?}");
        }
    }
}
