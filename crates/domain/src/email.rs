//! Email addresses.
//!
//! An address is stored as it was entered and compared by its [normalized form](Email::normalized):
//! lower case, Unicode NFC, and the domain in its ASCII form (Punycode). Mail servers may distinguish
//! `Ada@` from `ada@`, but two accounts that differ only in case would confuse users.

use std::{fmt, str::FromStr};

use unicode_normalization::UnicodeNormalization;

use crate::{Rule, ValidationError};

/// The maximum length of an address (RFC 5321).
const MAX_BYTES: usize = 254;
/// The maximum length of the part before the `@` (RFC 5321).
const MAX_LOCAL_BYTES: usize = 64;

/// Characters with a meaning in mail headers. RFC 5321 allows them in quotes. They are rejected here,
/// because in practice such addresses are only used for attacks.
const SPECIAL: &str = "\"(),:;<>@[\\]";

/// An email address.
#[derive(Clone, PartialEq, Eq)]
pub struct Email {
    text: String,
    normalized: String,
}

impl Email {
    /// Returns the address exactly as it was entered.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the form that identifies the mailbox, for comparison and unique constraints.
    pub fn normalized(&self) -> &str {
        &self.normalized
    }

    /// Returns whether both addresses have the same normalized form.
    pub fn same_mailbox(&self, other: &Self) -> bool {
        self.normalized == other.normalized
    }
}

/// Hides the address, because debug output can reach logs.
impl fmt::Debug for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Email(…)")
    }
}

impl FromStr for Email {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        let invalid = |message: &str| Err(ValidationError::new(Rule::InvalidFormat, message));
        if text.len() > MAX_BYTES {
            let message = format!("must have at most {MAX_BYTES} bytes");
            return Err(ValidationError::new(Rule::TooLong, message));
        }
        if text.chars().any(is_invisible) {
            return invalid(
                "cannot contain white space, control characters or invisible characters",
            );
        }
        let Some((local, domain)) = text.rsplit_once('@') else {
            return invalid("is not an email address; expected a format such as ada@example.com");
        };
        let has_misplaced_dot =
            local.starts_with('.') || local.ends_with('.') || local.contains("..");
        let has_special = local.contains(|c| SPECIAL.contains(c));
        if local.is_empty() || local.len() > MAX_LOCAL_BYTES || has_misplaced_dot || has_special {
            return invalid(
                "is not an email address; the part before the @ must have 1 to 64 bytes, no quotes or \
                 brackets, and single dots only between other characters",
            );
        }
        let Some(domain) = domain_to_ascii(domain) else {
            return invalid("is not an email address; the part after the @ must be a domain name");
        };
        let local: String = local.to_lowercase().nfc().collect();
        Ok(Self {
            text: text.to_owned(),
            normalized: format!("{local}@{domain}"),
        })
    }
}

/// Returns the ASCII form of a domain name, if it is valid.
fn domain_to_ascii(text: &str) -> Option<String> {
    let ascii = idna::domain_to_ascii(text).ok()?;
    let is_label = |label: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_allowed)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    (ascii.len() <= 253 && ascii.split('.').all(is_label)).then_some(ascii)
}

/// Returns whether a character is invisible or changes how its neighbors are displayed. Such characters
/// are used to imitate the address of another user.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || c.is_whitespace()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(text: &str) -> String {
        text.parse::<Email>().unwrap().normalized().to_owned()
    }

    #[test]
    fn equivalent_addresses_normalize_to_the_same_form() {
        assert_eq!(normalized("ada@example.com"), "ada@example.com");
        for variant in ["ADA@EXAMPLE.COM", "Ada@Example.com", "ada@eXample.com"] {
            assert_eq!(normalized(variant), normalized("ada@example.com"));
        }
        // Precomposed and combining accents.
        assert_eq!(
            normalized("andr\u{e9}@example.com"),
            normalized("Andre\u{301}@example.com")
        );
        // Unicode and Punycode domains.
        assert_eq!(
            normalized("a@b\u{fc}cher.example"),
            normalized("a@XN--bcher-kva.example")
        );
        // Different mailboxes.
        assert_ne!(
            normalized("a.da@example.com"),
            normalized("ada@example.com")
        );
        assert_ne!(
            normalized("ada+x@example.com"),
            normalized("ada@example.com")
        );
        assert_ne!(
            normalized("\u{430}da@example.com"),
            normalized("ada@example.com")
        );
    }

    #[test]
    fn as_str_returns_the_input_and_debug_hides_it() {
        let email: Email = "Ada.Lovelace@Example.com".parse().unwrap();
        assert_eq!(email.as_str(), "Ada.Lovelace@Example.com");
        assert!(!format!("{email:?}").contains("Ada"));
    }

    #[test]
    fn malformed_address_is_rejected() {
        let long_local = format!("{}@example.com", "a".repeat(65));
        let long_domain = format!("a@{}.com", "b".repeat(250));
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
            &long_local,
            &long_domain,
        ] {
            assert!(text.parse::<Email>().is_err(), "{text:?}");
        }
    }
}
