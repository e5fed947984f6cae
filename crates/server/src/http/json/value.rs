//! Parsers for single JSON values.

use std::{fmt::Display, str::FromStr};

use jiff::Timestamp;
use perennial_domain::{Decimal, Rfc3339Timestamp, Rule, ValidationError};
use serde_json::value::RawValue;

use super::MAX_ERRORS;

/// Why a value is invalid.
#[derive(Debug)]
pub enum ValueError {
    /// The expected JSON type, with its article: "a string".
    WrongType(&'static str),
    Invalid(ValidationError),
    /// The error of each invalid item of a list or object, with its index or key.
    Items(Vec<(String, ValueError)>),
}

impl From<ValidationError> for ValueError {
    fn from(error: ValidationError) -> Self {
        Self::Invalid(error)
    }
}

/// Parses a JSON string into any type that implements `FromStr`.
pub fn text<T: FromStr<Err = ValidationError>>(raw: &RawValue) -> Result<T, ValueError> {
    let text: String =
        serde_json::from_str(raw.get()).map_err(|_| ValueError::WrongType("a string"))?;
    Ok(text.parse()?)
}

/// Parses a value of an enum. Unlike in the base API, it must be in lower case, so that requests and responses
/// share a schema.
pub fn exact<T: FromStr<Err = ValidationError> + Display>(raw: &RawValue) -> Result<T, ValueError> {
    let value: T = text(raw)?;
    let expected = value.to_string();
    if serde_json::from_str::<String>(raw.get()).is_ok_and(|sent| sent == expected) {
        return Ok(value);
    }
    let message = format!("must be written as \"{expected}\"");
    Err(ValidationError::new(Rule::InvalidFormat, message).into())
}

/// Parses an RFC 3339 timestamp.
pub fn timestamp(raw: &RawValue) -> Result<Timestamp, ValueError> {
    text::<Rfc3339Timestamp>(raw).map(Rfc3339Timestamp::get)
}

/// Parses `true` or `false`.
pub fn boolean(raw: &RawValue) -> Result<bool, ValueError> {
    serde_json::from_str(raw.get()).map_err(|_| ValueError::WrongType("true or false"))
}

/// Parses a number, or a string with a number, without rounding.
pub fn decimal(raw: &RawValue) -> Result<Decimal, ValueError> {
    let token = raw.get();
    if token.starts_with('"') {
        text(raw)
    } else {
        let number = token.parse();
        number.map_err(|_| ValueError::WrongType("a number, or a string with a number"))
    }
}

/// Parses an integer in any JSON notation: `1`, `1.0` and `1e0` are the same number.
pub fn integer<T: TryFrom<i64, Error = ValidationError>>(raw: &RawValue) -> Result<T, ValueError> {
    let wrong_type = || ValueError::WrongType("an integer");
    let number: Decimal = raw.get().parse().map_err(|_| wrong_type())?;
    // `None` means a fraction. A number outside the range of `i64` becomes `i64::MIN` or `i64::MAX`,
    // which `T` rejects as out of range.
    let whole = number.to_i64_saturating().ok_or_else(wrong_type)?;
    Ok(T::try_from(whole)?)
}

/// Parses a list whose items are parsed by `item`.
pub fn list<T>(
    item: impl Fn(&RawValue) -> Result<T, ValueError>,
) -> impl Fn(&RawValue) -> Result<Vec<T>, ValueError> {
    move |raw| {
        let items: Vec<&RawValue> =
            serde_json::from_str(raw.get()).map_err(|_| ValueError::WrongType("a list"))?;
        let mut values = Vec::new();
        let mut errors = Vec::new();
        for (index, raw) in items.into_iter().enumerate() {
            match item(raw) {
                Ok(value) => values.push(value),
                Err(error) => errors.push((index.to_string(), error)),
            }
            if errors.len() == MAX_ERRORS {
                break;
            }
        }
        if errors.is_empty() {
            Ok(values)
        } else {
            Err(ValueError::Items(errors))
        }
    }
}
