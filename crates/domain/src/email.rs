//! Email addresses.
//!
//! An address is stored as it was entered and compared by its [normalized form](Email::normalized):
//! lower case, Unicode NFC, and the domain in its ASCII form (Punycode). Mail servers may distinguish
//! `Ada@` from `ada@`, but two accounts that differ only in case would confuse users.
//!
//! Addresses must meet the *email profile*: the part before the `@` follows the Email Security
//! Profile of UTS #39, section 3.3, with the restriction level Highly Restrictive. Otherwise the
//! normalized form could belong to another mailbox: the Kelvin sign U+212A has the lower case `k`.
//! Identity providers can report other addresses: a [`ReportedEmail`].

use std::{fmt, str::FromStr};

use unicode_normalization::UnicodeNormalization;
use unicode_security::{GeneralSecurityProfile, RestrictionLevel, RestrictionLevelDetection};

use crate::{Rule, ValidationError};

/// The maximum length of an address (RFC 5321).
const MAX_BYTES: usize = 254;
/// The maximum length of the part before the `@` (RFC 5321).
const MAX_LOCAL_BYTES: usize = 64;

/// Characters with a meaning in mail headers. RFC 5321 allows them in quotes. They are rejected here,
/// because in practice such addresses are only used for attacks.
const SPECIAL: &str = "\"(),:;<>@[\\]";

/// An email address that meets the email profile.
#[derive(Clone, PartialEq, Eq)]
pub struct Email {
    text: String,
    normalized: String,
}

impl Email {
    /// Returns the address of an account. Does not check the profile, because a newer version of Unicode may
    /// reject an address that was accepted.
    pub fn from_stored(text: &str) -> Result<Self, ValidationError> {
        let (_, normalized) = check_syntax(text)?;
        let text = text.to_owned();
        Ok(Self { text, normalized })
    }

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

/// An email address that an identity provider reports. It need not meet the email profile; then no account
/// can have it.
#[derive(Clone)]
pub struct ReportedEmail {
    text: String,
    email: Result<Email, ValidationError>,
}

impl ReportedEmail {
    /// Returns the address, or an error if it does not meet the email profile.
    pub fn email(&self) -> Result<&Email, &ValidationError> {
        self.email.as_ref()
    }

    /// Returns whether both are the same mailbox. Without the email profile, addresses must be equal
    /// character by character.
    pub fn same_mailbox(&self, other: &Self) -> bool {
        match (&self.email, &other.email) {
            (Ok(own), Ok(other)) => own.same_mailbox(other),
            _ => self.text == other.text,
        }
    }
}

impl FromStr for ReportedEmail {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        check_syntax(text)?;
        let (text, email) = (text.to_owned(), text.parse());
        Ok(Self { text, email })
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
        let email = Self::from_stored(text)?;
        let local = text.rsplit_once('@').map_or(text, |(local, _)| local);
        if !meets_profile(local) {
            return invalid(
                "cannot have look-alike characters, letters of different scripts or digits of different number systems \
                 before the @",
            );
        }
        Ok(email)
    }
}

/// The beginning of an email address, in the form of [`Email::normalized`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailPrefix(String);

impl EmailPrefix {
    /// Returns the first normalized address that can have the prefix, and a text after the last one, in the
    /// order of their bytes.
    pub fn bounds(&self) -> (&str, String) {
        (&self.0, format!("{}{}", self.0, char::MAX))
    }
}

impl FromStr for EmailPrefix {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        if text.len() > MAX_BYTES {
            let message = format!("must have at most {MAX_BYTES} bytes");
            return Err(ValidationError::new(Rule::TooLong, message));
        }
        if text.is_empty() {
            return Err(ValidationError::new(Rule::Blank, "must not be blank"));
        }
        if text.chars().any(is_invisible) {
            return invalid(
                "cannot contain white space, control characters or invisible characters",
            );
        }
        Ok(Self(text.to_lowercase().nfc().collect()))
    }
}

fn invalid<T>(message: &str) -> Result<T, ValidationError> {
    Err(ValidationError::new(Rule::InvalidFormat, message))
}

/// Checks everything but the email profile. Returns the part before the `@`, and the normalized form.
fn check_syntax(text: &str) -> Result<(&str, String), ValidationError> {
    if text.len() > MAX_BYTES {
        let message = format!("must have at most {MAX_BYTES} bytes");
        return Err(ValidationError::new(Rule::TooLong, message));
    }
    if text.chars().any(is_invisible) {
        return invalid("cannot contain white space, control characters or invisible characters");
    }
    let Some((local, domain)) = text.rsplit_once('@') else {
        return invalid("is not an email address; expected a format such as ada@example.com");
    };
    let has_misplaced_dot = local.starts_with('.') || local.ends_with('.') || local.contains("..");
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
    let normalized: String = local.to_lowercase().nfc().collect();
    Ok((local, format!("{normalized}@{domain}")))
}

/// Returns whether the part before the `@` meets UTS #39, section 3.3: characters outside ASCII have
/// the status Allowed and are unchanged by NFKC, the scripts meet the restriction level, and all digits
/// are of one number system.
fn meets_profile(local: &str) -> bool {
    if local.is_ascii() {
        return true;
    }
    let composed: String = local.nfc().collect();
    let is_allowed = |c: char| c.is_ascii() || GeneralSecurityProfile::identifier_allowed(c);
    // Checked before NFC too, which turns the Kelvin sign into the letter K.
    let has_allowed_characters = local.chars().chain(composed.chars()).all(is_allowed);
    // Without ASCII punctuation, which addresses may have and identifiers may not.
    let letters: String = composed
        .chars()
        .filter(|c| !c.is_ascii() || c.is_ascii_alphanumeric())
        .collect();
    // Unicode puts the ten digits of a number system into one row of 16 code points, which has no
    // digits of another system.
    let mut number_systems = letters
        .chars()
        .filter(|c| c.is_numeric())
        .map(|c| u32::from(c) >> 4);
    let first = number_systems.next();
    has_allowed_characters
        && composed.chars().eq(composed.nfkc())
        && letters
            .as_str()
            .check_restriction_level(RestrictionLevel::HighlyRestrictive)
        && number_systems.all(|system| Some(system) == first)
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
mod tests;
