//! A short text that is put together on the stack, for what is new with every answer: where it goes to, it is copied
//! anyway.

use std::fmt;

/// Up to 64 bytes.
pub(super) struct Brief {
    bytes: [u8; 64],
    length: usize,
}

impl Brief {
    pub(super) const fn new() -> Self {
        Self {
            bytes: [0; 64],
            length: 0,
        }
    }

    pub(super) fn as_str(&self) -> &str {
        let (text, _) = self.bytes.split_at(self.length);
        // Whole strings went in.
        std::str::from_utf8(text).unwrap_or_default()
    }
}

impl fmt::Write for Brief {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let (_, room) = self.bytes.split_at_mut(self.length);
        let (place, _) = room.split_at_mut_checked(part.len()).ok_or(fmt::Error)?;
        place.copy_from_slice(part.as_bytes());
        self.length += part.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out() {
        let mut brief = Brief::new();
        assert!(write!(brief, "é{}", 7).is_ok());
        assert!(brief.write_str(&"x".repeat(61)).is_ok());
        assert_eq!(brief.as_str().len(), 64);
        assert!(brief.write_str("x").is_err() && brief.write_str("").is_ok());
        assert!(brief.as_str().starts_with("é7x"));
    }
}
