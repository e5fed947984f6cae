//! Currencies.

use std::{cmp::Ordering, fmt, str::FromStr};

use crate::{Rule, ValidationError, suggest::quoted};

/// An ISO 4217 currency with a defined number of decimal places. Precious metals and test codes have
/// none and are rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency {
    iso: iso_currency::Currency,
    scale: u8,
}

impl Currency {
    /// Returns the currency with this code, in upper case.
    pub fn from_code(code: &str) -> Option<Self> {
        let iso = iso_currency::Currency::from_code(code)?;
        let scale = u8::try_from(iso.exponent()?).ok()?;
        Some(Self { iso, scale })
    }

    /// Returns the code in upper case: `USD`.
    pub fn code(self) -> &'static str {
        self.iso.code()
    }

    /// Returns the number of decimal places: 2 for USD, 0 for JPY, 3 for KWD.
    pub fn scale(self) -> u8 {
        self.scale
    }
}

impl PartialOrd for Currency {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Currency {
    fn cmp(&self, other: &Self) -> Ordering {
        self.code().cmp(other.code())
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl FromStr for Currency {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        Self::from_code(&text.to_ascii_uppercase()).ok_or_else(|| {
            let message = format!(
                "{} is not a supported currency; must be an ISO 4217 code such as \"USD\", \"EUR\" or \"JPY\"",
                quoted(text)
            );
            ValidationError::new(Rule::UnknownValue, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn currency_parses_in_any_case_and_unknown_is_rejected() {
        assert_eq!("usd".parse::<Currency>().unwrap().code(), "USD");
        for text in ["", "US", "XAU", "XXX", "DOGE", "ÜSD"] {
            assert_eq!(
                text.parse::<Currency>().unwrap_err().rule,
                Rule::UnknownValue
            );
        }
    }
}
