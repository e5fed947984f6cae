//! Text with a bound: the types say how long it may be and whether it may have lines.
//!
//! Length is counted in characters (Unicode scalar values), as the documentation of the fields
//! promises. No control characters: PostgreSQL cannot store NUL, and the others only serve to
//! confuse terminals and logs.

use std::{fmt, str::FromStr};

use crate::{Invalid, Rule};

fn bounded(text: &str, max: usize, control_allowed: &[char]) -> Result<(), Invalid> {
    // Most texts are ASCII and short, and that is seen much faster than characters are counted.
    let plain = |byte: u8| (b' '..=b'~').contains(&byte);
    if text.len() <= max && text.bytes().all(plain) {
        return Ok(());
    }
    let length = text.chars().count();
    if length > max {
        let message = format!("has {length} characters; at most {max} are allowed");
        return Err(Invalid::new(Rule::TooLong, message));
    }
    let forbidden = text
        .chars()
        .find(|c| c.is_control() && !control_allowed.contains(c));
    if let Some(control) = forbidden {
        let message = format!(
            "contains the control character {}, which is not allowed",
            control.escape_unicode()
        );
        return Err(Invalid::new(Rule::InvalidFormat, message));
    }
    Ok(())
}

macro_rules! bounded_text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name<const MAX: usize>(String);

        impl<const MAX: usize> $name<MAX> {
            /// The text, verbatim.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<const MAX: usize> fmt::Display for $name<MAX> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

bounded_text! {
    /// One line of text, not blank, of at most `MAX` characters. Kept verbatim.
    Line
}

bounded_text! {
    /// Text that may have several lines, or none, of at most `MAX` characters. Kept verbatim.
    Prose
}

bounded_text! {
    /// Visible ASCII characters without a space, such as a token has, at least one and at most `MAX`.
    Word
}

impl<const MAX: usize> FromStr for Word<MAX> {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        bounded(text, MAX, &[])?;
        if text.is_empty() {
            return Err(Invalid::new(Rule::Blank, "must not be blank"));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = "has characters other than visible ASCII ones";
            return Err(Invalid::new(Rule::InvalidFormat, message));
        }
        Ok(Self(text.to_owned()))
    }
}

impl<const MAX: usize> FromStr for Line<MAX> {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        bounded(text, MAX, &[])?;
        if text.trim().is_empty() {
            return Err(Invalid::new(Rule::Blank, "must not be blank"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl<const MAX: usize> FromStr for Prose<MAX> {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        bounded(text, MAX, &['\n', '\r', '\t'])?;
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_characters_not_bytes() {
        assert!("ééééé".parse::<Line<5>>().is_ok());
        assert_eq!("éééééé".parse::<Line<5>>().unwrap_err().rule, Rule::TooLong);
    }

    #[test]
    fn a_line_is_not_blank_and_prose_has_lines() {
        assert_eq!(" \u{a0}".parse::<Line<5>>().unwrap_err().rule, Rule::Blank);
        assert_eq!(
            "a\nb".parse::<Line<5>>().unwrap_err().rule,
            Rule::InvalidFormat
        );
        assert!("a\nb".parse::<Prose<5>>().is_ok());
        assert!("".parse::<Prose<5>>().is_ok());
        assert_eq!(
            "a\0".parse::<Prose<5>>().unwrap_err().rule,
            Rule::InvalidFormat
        );
    }
}
