//! Exact amounts of money, without floating point.
//!
//! The text of a JSON number is parsed into a [`Decimal`] and converted exactly to an integer number
//! of minor units ([`Money`]), or rejected. Output is a JSON number with the currency's number of
//! decimal places: `19.90` for USD, `1990` for JPY, `1.990` for KWD.

use std::{fmt, str::FromStr};

use crate::{Currency, Rule, ValidationError, suggest::quoted};

/// The maximum amount in minor units. It is far below 2^53, so that sums are exact in `i64` and in JSON
/// parsers that use floating point.
pub const MAX_MINOR_UNITS: i64 = 1_000_000_000_000;

/// A decimal number of arbitrary precision: `digits × 10^exponent`.
///
/// It is parsed from JSON number syntax, including exponents. Leading zeros, `NaN` and `Infinity` are
/// rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    /// Significant digits without leading or trailing zeros; empty for zero.
    digits: String,
    exponent: i64,
}

impl FromStr for Decimal {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        Self::parse_json(text).ok_or_else(|| {
            let message = format!("{} is not a decimal number", quoted(text));
            ValidationError::new(Rule::InvalidFormat, message)
        })
    }
}

impl Decimal {
    fn parse_json(text: &str) -> Option<Self> {
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
        let exponent = exponent.map_or(Some(0), |text| {
            let magnitude = text.strip_prefix(['+', '-']).unwrap_or(text);
            // Larger exponents are out of range for every currency, so they are capped.
            let value = magnitude.parse::<i64>().unwrap_or(i64::MAX).min(1_000_000);
            let signed = if text.starts_with('-') { -value } else { value };
            all_digits(magnitude).then_some(signed)
        })?;

        let fraction = fraction.unwrap_or("");
        let mantissa_digits = [whole, fraction].concat();
        let without_trailing_zeros = mantissa_digits.trim_end_matches('0');
        let digits = without_trailing_zeros.trim_start_matches('0');
        let trailing_zeros = mantissa_digits.len() - without_trailing_zeros.len();
        let shift = i64::try_from(trailing_zeros).ok()? - i64::try_from(fraction.len()).ok()?;
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

    /// Returns the number if it is an integer, saturating at the bounds of `i64`.
    pub fn to_i64_saturating(&self) -> Option<i64> {
        if self.digits.is_empty() {
            return Some(0);
        }
        let zeros = usize::try_from(self.exponent).ok()?;
        let bound = if self.negative { i64::MIN } else { i64::MAX };
        // An `i64` has at most 19 digits.
        if self.digits.len() + zeros > 19 {
            return Some(bound);
        }
        let sign = if self.negative { "-" } else { "" };
        let text = format!("{sign}{}{}", self.digits, "0".repeat(zeros));
        Some(text.parse().unwrap_or(bound))
    }
}

/// An amount of money in minor units of its currency, from 0 to [`MAX_MINOR_UNITS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Money {
    minor_units: i64,
    currency: Currency,
}

impl Money {
    /// Converts a decimal number exactly. Fails if it is out of range or has too many decimal places.
    pub fn from_decimal(decimal: &Decimal, currency: Currency) -> Result<Self, ValidationError> {
        let out_of_range = || {
            let max = Self {
                minor_units: MAX_MINOR_UNITS,
                currency,
            };
            let message = format!("must be from 0 to {max} {currency}");
            ValidationError::new(Rule::OutOfRange, message)
        };
        if decimal.digits.is_empty() {
            return Ok(Self {
                minor_units: 0,
                currency,
            });
        }
        if decimal.negative {
            return Err(out_of_range());
        }
        let scale = currency.scale();
        let zeros = decimal.exponent + i64::from(scale);
        if zeros < 0 {
            let message = format!("must have at most {scale} decimal places for {currency}");
            return Err(ValidationError::new(Rule::AmountScaleInvalid, message));
        }
        let minor_units = u32::try_from(zeros)
            .ok()
            .and_then(|zeros| 10_i64.checked_pow(zeros))
            .zip(decimal.digits.parse::<i64>().ok())
            .and_then(|(factor, digits)| digits.checked_mul(factor))
            .ok_or_else(out_of_range)?;
        Self::from_minor_units(minor_units, currency).ok_or_else(out_of_range)
    }

    /// Creates an amount from minor units, if it is in range.
    pub fn from_minor_units(minor_units: i64, currency: Currency) -> Option<Self> {
        (0..=MAX_MINOR_UNITS)
            .contains(&minor_units)
            .then_some(Self {
                minor_units,
                currency,
            })
    }

    /// Returns the number of minor units, such as cents for USD.
    pub fn minor_units(self) -> i64 {
        self.minor_units
    }

    /// Returns the amount in major units.
    pub fn to_decimal(self) -> Decimal {
        let digits = self.minor_units.to_string();
        let trimmed = digits.trim_end_matches('0');
        let zeros = i64::try_from(digits.len() - trimmed.len()).unwrap_or(0);
        Decimal {
            negative: false,
            digits: trimmed.to_owned(),
            exponent: match trimmed {
                "" => 0,
                _ => zeros - i64::from(self.currency.scale()),
            },
        }
    }

    /// Returns the currency.
    pub fn currency(self) -> Currency {
        self.currency
    }
}

/// Formats the number with the currency's decimal places, without the currency: `19.90`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            minor_units,
            currency,
        } = *self;
        let signed = SignedMoney {
            minor_units,
            currency,
        };
        signed.fmt(f)
    }
}

/// An amount of money that can be negative, in minor units of its currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedMoney {
    /// Minor units, such as cents for USD.
    pub minor_units: i64,
    /// The currency.
    pub currency: Currency,
}

/// Formats the number with the currency's decimal places, without the currency: `-19.90`.
impl fmt::Display for SignedMoney {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = format_minor_units(i128::from(self.minor_units), self.currency);
        f.write_str(&amount)
    }
}

/// Formats minor units with the currency's decimal places, without the currency: `-19.90`. For sums
/// that may exceed a [`SignedMoney`].
pub fn format_minor_units(minor_units: i128, currency: Currency) -> String {
    let scale = usize::from(currency.scale());
    let sign = if minor_units < 0 { "-" } else { "" };
    let magnitude = minor_units.unsigned_abs();
    if scale == 0 {
        return format!("{sign}{magnitude}");
    }
    let unit = 10_u128.pow(u32::from(currency.scale()));
    let (whole, fraction) = (magnitude / unit, magnitude % unit);
    format!("{sign}{whole}.{fraction:0scale$}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str, currency: &str) -> Result<String, Rule> {
        let currency = currency.parse().unwrap();
        text.parse::<Decimal>()
            .and_then(|decimal| Money::from_decimal(&decimal, currency))
            .map(|money| money.to_string())
            .map_err(|error| error.rule)
    }

    #[test]
    fn amount_is_exact_or_rejected() {
        assert_eq!(parse("19.99", "USD").unwrap(), "19.99");
        assert_eq!(parse("19.9900", "USD").unwrap(), "19.99");
        assert_eq!(parse("1e2", "USD").unwrap(), "100.00");
        assert_eq!(parse("1999e-2", "USD").unwrap(), "19.99");
        assert_eq!(parse("-0", "USD").unwrap(), "0.00");
        assert_eq!(parse("-0.00e5", "USD").unwrap(), "0.00");
        assert_eq!(parse("1500", "JPY").unwrap(), "1500");
        assert_eq!(parse("1.5", "KWD").unwrap(), "1.500");
        assert_eq!(parse("10000000000.00", "USD").unwrap(), "10000000000.00");

        assert_eq!(parse("10000000000.01", "USD"), Err(Rule::OutOfRange));
        assert_eq!(parse("12345678901234567.89", "USD"), Err(Rule::OutOfRange));
        assert_eq!(parse("-0.01", "USD"), Err(Rule::OutOfRange));
        assert_eq!(parse("1e400", "USD"), Err(Rule::OutOfRange));
        assert_eq!(parse("1E1000000000", "USD"), Err(Rule::OutOfRange));
        assert_eq!(
            parse("1E99999999999999999999", "USD"),
            Err(Rule::OutOfRange)
        );
        assert_eq!(parse("0.005", "USD"), Err(Rule::AmountScaleInvalid));
        assert_eq!(parse("1e-400", "USD"), Err(Rule::AmountScaleInvalid));
        assert_eq!(parse("0.5", "JPY"), Err(Rule::AmountScaleInvalid));
        assert_eq!(parse("0.0005", "KWD"), Err(Rule::AmountScaleInvalid));
        for text in [
            "",
            "-",
            ".5",
            "5.",
            "007",
            "1e",
            "1e+",
            "+1",
            "--1",
            "NaN",
            "Infinity",
            "-Infinity",
            "1_0",
            "1,5",
            "0x1",
            " 1",
            "١",
        ] {
            assert_eq!(parse(text, "USD"), Err(Rule::InvalidFormat), "{text}");
        }
    }

    #[test]
    fn integer_in_any_notation_converts_to_i64() {
        let integer = |text: &str| text.parse::<Decimal>().unwrap().to_i64_saturating();
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

        #[test]
        fn formatted_amount_parses_to_the_same_amount(minor in 0..=MAX_MINOR_UNITS, code in prop::sample::select(vec!["USD", "JPY", "KWD"])) {
            let money = Money::from_minor_units(minor, code.parse().unwrap()).unwrap();
            let decimal: Decimal = money.to_string().parse().unwrap();
            prop_assert_eq!(&money.to_decimal(), &decimal);
            prop_assert_eq!(Money::from_decimal(&decimal, money.currency()), Ok(money));
        }

        #[test]
        fn conversion_agrees_with_rust_decimal(
            whole in 0_u64..100_000_000_000,
            fraction in "[0-9]{0,6}",
            exponent in -6_i32..6,
            code in prop::sample::select(vec!["USD", "JPY", "KWD"]),
        ) {
            let currency: Currency = code.parse().unwrap();
            let mantissa = if fraction.is_empty() { whole.to_string() } else { format!("{whole}.{fraction}") };
            let actual = format!("{mantissa}e{exponent}").parse().and_then(|d| Money::from_decimal(&d, currency));

            let scaled = rust_decimal::Decimal::from_scientific(&format!("{mantissa}e{}", exponent + i32::from(currency.scale()))).unwrap();
            let expected = if !scaled.fract().is_zero() {
                Err(Rule::AmountScaleInvalid)
            } else if scaled > rust_decimal::Decimal::from(MAX_MINOR_UNITS) {
                Err(Rule::OutOfRange)
            } else {
                Ok(i64::try_from(scaled).unwrap())
            };
            prop_assert_eq!(actual.map(Money::minor_units).map_err(|error| error.rule), expected);
        }

        #[test]
        fn parsing_never_panics(text in "[-+0-9eE.]{0,40}") {
            let _ = text.parse::<Decimal>().and_then(|d| Money::from_decimal(&d, "USD".parse().unwrap()));
        }
    }
}
