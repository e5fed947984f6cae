//! E-mail addresses: how one is written, and when two are the same.
//!
//! An address is shown as it was written and compared by its [key](Email::key): lower case, composed
//! letters, the domain as its name servers know it. Mail systems may tell `Ada@` from `ada@`; people do
//! not, and an account that differs from another by that alone is a trap.

use std::{fmt, str::FromStr};

use unicode_normalization::UnicodeNormalization;

use crate::{Invalid, Rule};

/// As many bytes as a mail server takes.
const MAX_BYTES: usize = 254;
const MAX_LOCAL_BYTES: usize = 64;

/// Characters that have a meaning in a mail's header; an address that needs them in quotation marks is
/// allowed by the standard, and used by nobody but those who look for gaps.
const SPECIAL: &str = "\"(),:;<>@[\\]";

/// An e-mail address.
#[derive(Clone, PartialEq, Eq)]
pub struct Email {
    written: String,
    key: String,
}

impl Email {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// What it is compared by.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether both are one mailbox, as people see it.
    pub fn is_same(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

/// Says nothing of it: debug output ends up in logs.
impl fmt::Debug for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Email(…)")
    }
}

impl FromStr for Email {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refuse = |message: &str| Err(Invalid::new(Rule::InvalidFormat, message));
        if text.len() > MAX_BYTES {
            let message = format!("has more than {MAX_BYTES} bytes, and so is no e-mail address");
            return Err(Invalid::new(Rule::TooLong, message));
        }
        if text.chars().any(is_invisible) {
            return refuse("contains white space, a control or an invisible character");
        }
        let Some((local, domain)) = text.rsplit_once('@') else {
            return refuse("is not an e-mail address; expected one such as ada@example.com");
        };
        let dots = local.starts_with('.') || local.ends_with('.') || local.contains("..");
        let special = local.contains(|c| SPECIAL.contains(c));
        if local.is_empty() || local.len() > MAX_LOCAL_BYTES || dots || special {
            return refuse(
                "is not an e-mail address: before the @ stand 1 to 64 bytes, without quotation marks and the like",
            );
        }
        let Some(domain) = host(domain) else {
            return refuse("is not an e-mail address: behind the @ stands no domain name");
        };
        let local: String = local.to_lowercase().nfc().collect();
        Ok(Self {
            written: text.to_owned(),
            key: format!("{local}@{domain}"),
        })
    }
}

/// A domain as its name servers know it.
fn host(text: &str) -> Option<String> {
    let ascii = idna::domain_to_ascii(text).ok()?;
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    (ascii.len() <= 253 && ascii.split('.').all(is_label)).then_some(ascii)
}

/// What cannot be seen, or changes how the rest is seen: such an address is somebody else's in disguise.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || c.is_whitespace()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> String {
        text.parse::<Email>().unwrap().key().to_owned()
    }

    #[test]
    fn twins_are_one() {
        assert_eq!(key("ada@example.com"), "ada@example.com");
        for twin in ["ADA@EXAMPLE.COM", "Ada@Example.com", "ada@eXample.com"] {
            assert_eq!(key(twin), key("ada@example.com"));
        }
        // One letter, or a letter and an accent.
        assert_eq!(
            key("andr\u{e9}@example.com"),
            key("Andre\u{301}@example.com")
        );
        // One domain, in letters or as its name servers know it.
        assert_eq!(key("a@b\u{fc}cher.example"), key("a@XN--bcher-kva.example"));
        // These are different people.
        assert_ne!(key("a.da@example.com"), key("ada@example.com"));
        assert_ne!(key("ada+x@example.com"), key("ada@example.com"));
        assert_ne!(key("\u{430}da@example.com"), key("ada@example.com"));
    }

    #[test]
    fn written_as_it_was() {
        let email: Email = "Ada.Lovelace@Example.com".parse().unwrap();
        assert_eq!(email.as_str(), "Ada.Lovelace@Example.com");
        assert!(!format!("{email:?}").contains("Ada"));
    }

    #[test]
    fn what_is_none() {
        let long = format!("{}@example.com", "a".repeat(65));
        let longer = format!("a@{}.com", "b".repeat(250));
        for text in [
            "",
            "@",
            "a",
            "a@",
            "@b.com",
            "a b@c.com",
            "a@b c.com",
            "\"a b\"@c.com",
            "\"a\"@c.com",
            "a@b@c.com",
            "a@[127.0.0.1]",
            "a@b..com",
            ".a@b.com",
            "a.@b.com",
            "a..b@c.com",
            "a@-b.com",
            "a@b-.com",
            "a@.com",
            "a@b.com.",
            "a\r\nBcc: x@y.com@b.com",
            "a@b.com\r\n",
            "a@b.com\0",
            "a\u{200b}@b.com",
            "a\u{202e}@b.com",
            "<a@b.com>",
            "Ada <a@b.com>",
            "a,b@c.com",
            &long,
            &longer,
        ] {
            assert!(text.parse::<Email>().is_err(), "{text:?}");
        }
    }
}
