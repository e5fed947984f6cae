//! URLs of web pages.

use std::{net::Ipv6Addr, str::FromStr};

use crate::{Rule, SingleLine, ValidationError, suggest::quoted};

/// An absolute `http` or `https` URL in RFC 3986 syntax, without a user name or password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Href(String);

impl Href {
    /// The maximum length in characters.
    pub const MAX: usize = 2_000;

    /// Returns the URL exactly as it was parsed.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Href {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        let line: SingleLine<{ Self::MAX }> = text.parse()?;
        let invalid = |reason: &str| {
            let message = format!("{} {reason}", quoted(text));
            Err(ValidationError::new(Rule::InvalidFormat, message))
        };
        let after_scheme = ["http://", "https://"].iter().find_map(|scheme| {
            let (head, tail) = text.split_at_checked(scheme.len())?;
            head.eq_ignore_ascii_case(scheme).then_some(tail)
        });
        let Some(after_scheme) = after_scheme else {
            return invalid("must start with http:// or https://");
        };
        let authority = after_scheme
            .split(['/', '?', '#', '\\'])
            .next()
            .unwrap_or("");
        if authority.contains('@') {
            return invalid("cannot contain a user name or password");
        }
        let (host, port) = host_and_port(authority);
        let ipv6 = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let is_ipv6 = ipv6.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
        if host.is_empty() || (host.contains(':') && !is_ipv6) {
            return invalid("must have a host");
        }
        if port.is_some_and(|port| port.parse::<u16>().is_err() || port.starts_with('+')) {
            return invalid("has an invalid port; must be from 0 to 65535");
        }
        let rest = after_scheme.get(authority.len()..).unwrap_or_default();
        if rest.matches('#').count() > 1
            || !is_percent_encoded(rest)
            || (!is_ipv6 && !is_percent_encoded(host))
        {
            return invalid("contains a character that must be percent-encoded");
        }
        Ok(Self(line.as_str().to_owned()))
    }
}

/// Splits an authority into host and port. An IPv6 address in brackets also contains colons.
fn host_and_port(authority: &str) -> (&str, Option<&str>) {
    let after_brackets = authority.rfind(']').map_or(0, |at| at + 1);
    match authority
        .get(after_brackets..)
        .unwrap_or_default()
        .rfind(':')
    {
        None => (authority, None),
        Some(colon) => {
            let (host, port) = authority.split_at(after_brackets + colon);
            (host, port.get(1..))
        }
    }
}

/// Returns whether a URL component has only characters that RFC 3986 allows unencoded, and `%` only
/// before two hexadecimal digits.
fn is_percent_encoded(component: &str) -> bool {
    let is_unencoded = |b: u8| b.is_ascii_alphanumeric() || b"-._~:/?#@!$&'()*+,;=".contains(&b);
    let mut bytes = component.bytes();
    while let Some(byte) = bytes.next() {
        let mut next_is_hex = || bytes.next().is_some_and(|b| b.is_ascii_hexdigit());
        let is_valid = if byte == b'%' {
            next_is_hex() && next_is_hex()
        } else {
            is_unencoded(byte)
        };
        if !is_valid {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Malformed input: 49.
    /// The number is from `docs/reference/malformed-input.md`.
    #[test]
    fn valid_urls_parse_and_others_are_rejected() {
        for valid in [
            "https://a.example",
            "HTTP://a.example:8080/p?q=1#f",
            "https://[::1]/",
            "https://a.example/x@y",
            "https://[::1]:8443/x",
            "https://a.example:8443",
            "https://a.example/%C3%A4?a=%20&b=(c)#d/e",
        ] {
            assert!(valid.parse::<Href>().is_ok(), "{valid}");
        }
        for invalid in [
            "",
            "a.example",
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "vbscript:x",
            "data:text/html,x",
            "file:///etc/passwd",
            "ftp://a.example/",
            "//a.example/",
            "/relative",
            "http:",
            "https://",
            "https:///p",
            "https://u:p@a.example/",
            "https://u@a.example/",
            "\thttps://a.example/",
            "https://a.example\\@b.example",
            "https://a b.example",
            "https://:80/",
            "http:/a",
            "https://ä.example/",
            "https://a.example/ö",
            "https://a.example/%zz",
            "https://a.example/%",
            "https://a.example/#a#b",
            "https://a.example/[b]",
            "https://a:port/",
            "https://a:99999/",
            "https://[::1",
            "https://::1/",
            "https://::80/",
            "https://a:b:80/",
            "https://[zz]/",
            "https://a%zz",
        ] {
            assert!(invalid.parse::<Href>().is_err(), "{invalid}");
        }
    }
}
