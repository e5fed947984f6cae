//! Money that never goes through a float.
//!
//! An amount arrives as the very characters of the JSON token ([`Decimal`]) and is turned into an
//! integer number of the currency's minor units ([`Money`]) exactly, or refused. It leaves as a
//! JSON number at the currency's own scale: `19.90` for USD, `1990` for JPY, `1.990` for KWD.

use std::{fmt, str::FromStr};

use crate::{Invalid, Rule, words::quoted};

/// The largest amount, in minor units. Far above any real price, far below what an `i64` and a
/// JSON reader's 2^53 hold, so that sums stay safe.
pub const MAX_MINOR_UNITS: i64 = 1_000_000_000_000;

/// An ISO 4217 currency that has minor units (gold and test codes have none).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency {
    iso: iso_currency::Currency,
    scale: u8,
}

impl Currency {
    /// The code in upper case: `USD`.
    pub fn code(self) -> &'static str {
        self.iso.code()
    }

    /// How many decimals an amount has: 2 for USD, 0 for JPY, 3 for KWD.
    pub fn scale(self) -> u8 {
        self.scale
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl FromStr for Currency {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        iso_currency::Currency::from_code(&text.to_ascii_uppercase())
            .and_then(|iso| {
                let scale = u8::try_from(iso.exponent()?).ok()?;
                Some(Self { iso, scale })
            })
            .ok_or_else(|| {
                let message = format!(
                    "{} is not a currency that can be paid in; expected an ISO 4217 code such as \"USD\", \"EUR\" or \"JPY\"",
                    quoted(text)
                );
                Invalid::new(Rule::UnknownValue, message)
            })
    }
}

/// A decimal number exactly as it was written: `digits × 10^exponent`.
///
/// Written as JSON writes numbers, exponents included; leading zeros, `NaN`, `Infinity` and the
/// like are not numbers there, and not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    /// Significant digits, without zeros at either end; empty for zero.
    digits: String,
    exponent: i64,
}

impl FromStr for Decimal {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::read(text).ok_or_else(|| {
            let message = format!("{} is not a decimal number", quoted(text));
            Invalid::new(Rule::InvalidFormat, message)
        })
    }
}

impl Decimal {
    fn read(text: &str) -> Option<Self> {
        let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());

        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (unsigned, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        if !all_digits(whole) || leading_zero || fraction.is_some_and(|f| !all_digits(f)) {
            return None;
        }
        let exponent = exponent.map_or(Some(0), |written| {
            let magnitude = written.strip_prefix(['+', '-']).unwrap_or(written);
            // An exponent past 10^6 is out of every range; where exactly does not matter.
            let value = magnitude.parse::<i64>().unwrap_or(i64::MAX).min(1_000_000);
            let signed = if written.starts_with('-') {
                -value
            } else {
                value
            };
            all_digits(magnitude).then_some(signed)
        })?;

        let fraction = fraction.unwrap_or("");
        let written = [whole, fraction].concat();
        let digits = written.trim_start_matches('0').trim_end_matches('0');
        let zeros_dropped = written.len() - written.trim_end_matches('0').len();
        let shift = i64::try_from(zeros_dropped).ok()? - i64::try_from(fraction.len()).ok()?;
        Some(Self {
            negative: negative && !digits.is_empty(),
            digits: digits.to_owned(),
            exponent: if digits.is_empty() {
                0
            } else {
                exponent + shift
            },
        })
    }
}

impl Decimal {
    /// The number, if it is whole; what no `i64` can hold becomes the nearest that one can.
    pub fn saturating_integer(&self) -> Option<i64> {
        if self.digits.is_empty() {
            return Some(0);
        }
        let zeros = usize::try_from(self.exponent).ok()?;
        let beyond = if self.negative { i64::MIN } else { i64::MAX };
        // 19 digits are as many as an i64 has.
        if self.digits.len() + zeros > 19 {
            return Some(beyond);
        }
        let sign = if self.negative { "-" } else { "" };
        let written = format!("{sign}{}{}", self.digits, "0".repeat(zeros));
        Some(written.parse().unwrap_or(beyond))
    }
}

/// An amount of money: minor units of a currency, from 0 to [`MAX_MINOR_UNITS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Money {
    minor: i64,
    currency: Currency,
}

impl Money {
    /// The amount that `decimal` says in `currency`, exactly.
    pub fn exact(decimal: &Decimal, currency: Currency) -> Result<Self, Invalid> {
        let out_of_range = || {
            let largest = Self {
                minor: MAX_MINOR_UNITS,
                currency,
            };
            let message = format!("must be from 0 to {largest} {currency}");
            Invalid::new(Rule::OutOfRange, message)
        };
        if decimal.digits.is_empty() {
            return Ok(Self { minor: 0, currency });
        }
        if decimal.negative {
            return Err(out_of_range());
        }
        let scale = currency.scale();
        let zeros = decimal.exponent + i64::from(scale);
        if zeros < 0 {
            let message = format!("{currency} has {scale} decimals; amounts are never rounded");
            return Err(Invalid::new(Rule::AmountScaleInvalid, message));
        }
        let minor = u32::try_from(zeros)
            .ok()
            .and_then(|zeros| 10_i64.checked_pow(zeros))
            .zip(decimal.digits.parse::<i64>().ok())
            .and_then(|(factor, digits)| digits.checked_mul(factor))
            .ok_or_else(out_of_range)?;
        Self::of_minor_units(minor, currency).ok_or_else(out_of_range)
    }

    /// An amount in minor units, if it is in range.
    pub fn of_minor_units(minor: i64, currency: Currency) -> Option<Self> {
        (0..=MAX_MINOR_UNITS)
            .contains(&minor)
            .then_some(Self { minor, currency })
    }

    /// Minor units: cents for USD.
    pub fn minor_units(self) -> i64 {
        self.minor
    }

    /// The number at the currency's scale.
    pub fn decimal(self) -> Decimal {
        let digits = self.minor.to_string();
        let trimmed = digits.trim_end_matches('0');
        let zeros = i64::try_from(digits.len() - trimmed.len()).unwrap_or(0);
        Decimal {
            negative: false,
            digits: trimmed.to_owned(),
            exponent: match trimmed {
                "" => 0,
                _ => zeros - i64::from(self.currency.scale),
            },
        }
    }

    /// The currency.
    pub fn currency(self) -> Currency {
        self.currency
    }
}

/// The number at the currency's scale, without the currency: `19.90`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = usize::from(self.currency.scale);
        if scale == 0 {
            return write!(f, "{}", self.minor);
        }
        let unit = 10_i64.pow(u32::from(self.currency.scale));
        write!(f, "{}.{:0scale$}", self.minor / unit, self.minor % unit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exact(text: &str, currency: &str) -> Result<String, Rule> {
        let currency = currency.parse().unwrap();
        text.parse::<Decimal>()
            .and_then(|decimal| Money::exact(&decimal, currency))
            .map(|money| money.to_string())
            .map_err(|invalid| invalid.rule)
    }

    #[test]
    fn currencies() {
        assert_eq!("usd".parse::<Currency>().unwrap().code(), "USD");
        for text in ["", "US", "XAU", "XXX", "DOGE", "ÜSD"] {
            assert_eq!(
                text.parse::<Currency>().unwrap_err().rule,
                Rule::UnknownValue
            );
        }
    }

    #[test]
    fn as_written_or_refused() {
        assert_eq!(exact("19.99", "USD").unwrap(), "19.99");
        assert_eq!(exact("19.9900", "USD").unwrap(), "19.99");
        assert_eq!(exact("1e2", "USD").unwrap(), "100.00");
        assert_eq!(exact("1999e-2", "USD").unwrap(), "19.99");
        assert_eq!(exact("-0", "USD").unwrap(), "0.00");
        assert_eq!(exact("-0.00e5", "USD").unwrap(), "0.00");
        assert_eq!(exact("1500", "JPY").unwrap(), "1500");
        assert_eq!(exact("1.5", "KWD").unwrap(), "1.500");
        assert_eq!(exact("10000000000.00", "USD").unwrap(), "10000000000.00");

        assert_eq!(exact("10000000000.01", "USD"), Err(Rule::OutOfRange));
        assert_eq!(exact("12345678901234567.89", "USD"), Err(Rule::OutOfRange));
        assert_eq!(exact("-0.01", "USD"), Err(Rule::OutOfRange));
        assert_eq!(exact("1e400", "USD"), Err(Rule::OutOfRange));
        assert_eq!(exact("1E1000000000", "USD"), Err(Rule::OutOfRange));
        assert_eq!(
            exact("1E99999999999999999999", "USD"),
            Err(Rule::OutOfRange)
        );
        assert_eq!(exact("0.005", "USD"), Err(Rule::AmountScaleInvalid));
        assert_eq!(exact("1e-400", "USD"), Err(Rule::AmountScaleInvalid));
        assert_eq!(exact("0.5", "JPY"), Err(Rule::AmountScaleInvalid));
        assert_eq!(exact("0.0005", "KWD"), Err(Rule::AmountScaleInvalid));
        for text in [
            "", "-", ".5", "5.", "007", "1e", "1e+", "+1", "NaN", "Infinity", "1_0", "1,5", "0x1",
            " 1", "١",
        ] {
            assert_eq!(exact(text, "USD"), Err(Rule::InvalidFormat), "{text}");
        }
    }

    #[test]
    fn integers_in_any_notation() {
        let integer = |text: &str| text.parse::<Decimal>().unwrap().saturating_integer();
        assert_eq!(integer("1.0"), Some(1));
        assert_eq!(integer("-1e2"), Some(-100));
        assert_eq!(integer("-0.0"), Some(0));
        assert_eq!(integer("1.5"), None);
        assert_eq!(integer("9223372036854775807"), Some(i64::MAX));
        assert_eq!(integer("9223372036854775808"), Some(i64::MAX));
        assert_eq!(integer("-1e400"), Some(i64::MIN));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// What is shown can be sent back and is the same, in every scale.
        #[test]
        fn round_trip(minor in 0..=MAX_MINOR_UNITS, code in prop::sample::select(vec!["USD", "JPY", "KWD"])) {
            let money = Money::of_minor_units(minor, code.parse().unwrap()).unwrap();
            let decimal: Decimal = money.to_string().parse().unwrap();
            prop_assert_eq!(&money.decimal(), &decimal);
            prop_assert_eq!(Money::exact(&decimal, money.currency()), Ok(money));
        }

        /// However a number is written, the amount is the one that a decimal library computes.
        #[test]
        fn agrees_with_a_decimal_library(
            whole in 0_u64..100_000_000_000,
            fraction in "[0-9]{0,6}",
            exponent in -6_i32..6,
            code in prop::sample::select(vec!["USD", "JPY", "KWD"]),
        ) {
            let currency: Currency = code.parse().unwrap();
            let mantissa = if fraction.is_empty() { whole.to_string() } else { format!("{whole}.{fraction}") };
            let ours = format!("{mantissa}e{exponent}").parse().and_then(|d| Money::exact(&d, currency));

            let scaled = rust_decimal::Decimal::from_scientific(&format!("{mantissa}e{}", exponent + i32::from(currency.scale()))).unwrap();
            let expected = if !scaled.fract().is_zero() {
                Err(Rule::AmountScaleInvalid)
            } else if scaled > rust_decimal::Decimal::from(MAX_MINOR_UNITS) {
                Err(Rule::OutOfRange)
            } else {
                Ok(i64::try_from(scaled).unwrap())
            };
            prop_assert_eq!(ours.map(Money::minor_units).map_err(|invalid| invalid.rule), expected);
        }

        /// Nothing that can be typed makes it panic.
        #[test]
        fn never_panics(text in "[-+0-9eE.]{0,40}") {
            let _ = text.parse::<Decimal>().and_then(|d| Money::exact(&d, "USD".parse().unwrap()));
        }
    }
}
