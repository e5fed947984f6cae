//! Text types with a maximum length, which is counted in Unicode scalar values.
//!
//! Control characters are rejected: PostgreSQL cannot store NUL, and the others can corrupt
//! terminals and logs.

use std::{fmt, str::FromStr};

use crate::{Rule, ValidationError};

/// Checks the length, and rejects control characters that are not in `allowed_controls`.
fn check(text: &str, max: usize, allowed_controls: &[char]) -> Result<(), ValidationError> {
    // Fast path for short printable ASCII, which needs no counting of characters.
    let is_printable = |byte: u8| (b' '..=b'~').contains(&byte);
    if text.len() <= max && text.bytes().all(is_printable) {
        return Ok(());
    }
    let length = text.chars().count();
    if length > max {
        let message = format!("must have at most {max} characters; has {length}");
        return Err(ValidationError::new(Rule::TooLong, message));
    }
    let forbidden = text
        .chars()
        .find(|c| c.is_control() && !allowed_controls.contains(c));
    if let Some(control) = forbidden {
        let message = format!(
            "cannot contain the control character {}",
            control.escape_unicode()
        );
        return Err(ValidationError::new(Rule::InvalidFormat, message));
    }
    Ok(())
}

fn blank_error() -> ValidationError {
    ValidationError::new(Rule::Blank, "must not be blank")
}

macro_rules! bounded_text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name<const MAX: usize>(String);

        impl<const MAX: usize> $name<MAX> {
            /// Returns the text exactly as it was parsed.
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
    /// One line of text with at most `MAX` characters, not blank.
    SingleLine
}

bounded_text! {
    /// Text with at most `MAX` characters that may be empty and may contain line breaks and tabs.
    MultiLine
}

bounded_text! {
    /// A token: 1 to `MAX` visible ASCII characters, without spaces.
    AsciiToken
}

impl<const MAX: usize> FromStr for AsciiToken<MAX> {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        check(text, MAX, &[])?;
        if text.is_empty() {
            return Err(blank_error());
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = "must contain only visible ASCII characters";
            return Err(ValidationError::new(Rule::InvalidFormat, message));
        }
        Ok(Self(text.to_owned()))
    }
}

impl<const MAX: usize> FromStr for SingleLine<MAX> {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        check(text, MAX, &[])?;
        if text.trim().is_empty() {
            return Err(blank_error());
        }
        Ok(Self(text.to_owned()))
    }
}

impl<const MAX: usize> FromStr for MultiLine<MAX> {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        check(text, MAX, &['\n', '\r', '\t'])?;
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule<T: FromStr<Err = ValidationError>>(text: &str) -> Option<Rule> {
        text.parse::<T>().err().map(|error| error.rule)
    }

    #[test]
    fn length_is_counted_in_characters() {
        assert_eq!(rule::<SingleLine<5>>("ééééé"), None);
        assert_eq!(rule::<SingleLine<5>>("éééééé"), Some(Rule::TooLong));
    }

    #[test]
    fn single_line_with_blank_or_control_characters_is_rejected() {
        assert_eq!(rule::<SingleLine<5>>(" \u{a0}"), Some(Rule::Blank));
        assert_eq!(rule::<SingleLine<5>>("a\nb"), Some(Rule::InvalidFormat));
    }

    #[test]
    fn multi_line_accepts_line_breaks_and_empty_text() {
        assert_eq!(rule::<MultiLine<5>>("a\nb"), None);
        assert_eq!(rule::<MultiLine<5>>(""), None);
        assert_eq!(rule::<MultiLine<5>>("a\0"), Some(Rule::InvalidFormat));
    }
}
