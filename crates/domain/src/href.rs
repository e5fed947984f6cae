//! Links.

use std::{net::Ipv6Addr, str::FromStr};

use crate::{Invalid, Line, Rule, words::quoted};

/// A link to a page, as RFC 3986 writes it: http or https, without user name and password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Href(String);

impl Href {
    /// The longest link.
    pub const MAX: usize = 2_000;

    /// The link as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Href {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let line: Line<{ Self::MAX }> = text.parse()?;
        let refuse = |why: &str| {
            let message = format!("{} {why}", quoted(text));
            Err(Invalid::new(Rule::InvalidFormat, message))
        };
        let after_scheme = ["http://", "https://"].iter().find_map(|scheme| {
            let (head, tail) = text.split_at_checked(scheme.len())?;
            head.eq_ignore_ascii_case(scheme).then_some(tail)
        });
        let Some(after_scheme) = after_scheme else {
            return refuse("is not a link: expected one that begins with http:// or https://");
        };
        let authority = after_scheme
            .split(['/', '?', '#', '\\'])
            .next()
            .unwrap_or("");
        if authority.contains('@') {
            return refuse("contains a user name or password, which a link must not carry");
        }
        let (host, port) = host_and_port(authority);
        let address = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let is_address = address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
        if host.is_empty() || (host.contains(':') && !is_address) {
            return refuse("has no host");
        }
        if port.is_some_and(|port| port.parse::<u16>().is_err() || port.starts_with('+')) {
            return refuse("has a port that is none");
        }
        let rest = after_scheme.get(authority.len()..).unwrap_or_default();
        if rest.matches('#').count() > 1
            || !is_percent_encoded(rest)
            || (!is_address && !is_percent_encoded(host))
        {
            return refuse("contains a character that must be percent-encoded");
        }
        Ok(Self(line.as_str().to_owned()))
    }
}

/// What stands before and after the colon of an authority; an address in brackets has colons of its own.
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

/// Whether a part of a link has only the characters that RFC 3986 lets stand as they are, and `%` only
/// before two hexadecimal digits.
fn is_percent_encoded(part: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~:/?#@!$&'()*+,;=".contains(&b);
    let mut bytes = part.bytes();
    while let Some(byte) = bytes.next() {
        let mut hexadecimal = || bytes.next().is_some_and(|b| b.is_ascii_hexdigit());
        let fine = if byte == b'%' {
            hexadecimal() && hexadecimal()
        } else {
            plain(byte)
        };
        if !fine {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links() {
        for good in [
            "https://a.example",
            "HTTP://a.example:8080/p?q=1#f",
            "https://[::1]/",
            "https://a.example/x@y",
            "https://[::1]:8443/x",
            "https://a.example:8443",
            "https://a.example/%C3%A4?a=%20&b=(c)#d/e",
        ] {
            assert!(good.parse::<Href>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "a.example",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://",
            "https:///p",
            "https://u:p@a.example/",
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
            assert!(bad.parse::<Href>().is_err(), "{bad}");
        }
    }
}
