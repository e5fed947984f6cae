//! One value: from the characters that were sent to a type, or to why not.

use std::str::FromStr;

use jiff::Timestamp;
use perennial_domain::{Decimal, Invalid, Moment};
use serde_json::value::RawValue;

use super::MAX_ERRORS;

/// Why a value was refused: itself, or items inside it.
#[derive(Debug)]
pub enum Refusal {
    /// Another JSON type was expected: "a string".
    WrongType(&'static str),
    /// The right type, but not a right value.
    Invalid(Invalid),
    /// Items of a list.
    Items(Vec<(usize, Refusal)>),
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

/// Reads a string into a type.
pub fn text<T: FromStr<Err = Invalid>>(raw: &RawValue) -> Result<T, Refusal> {
    let text: String =
        serde_json::from_str(raw.get()).map_err(|_| Refusal::WrongType("a string"))?;
    Ok(text.parse()?)
}

/// Reads an instant.
pub fn instant(raw: &RawValue) -> Result<Timestamp, Refusal> {
    text::<Moment>(raw).map(Moment::get)
}

/// Reads `true` or `false`.
pub fn boolean(raw: &RawValue) -> Result<bool, Refusal> {
    serde_json::from_str(raw.get()).map_err(|_| Refusal::WrongType("true or false"))
}

/// Reads a number, or a string that holds one, exactly.
pub fn decimal(raw: &RawValue) -> Result<Decimal, Refusal> {
    let token = raw.get();
    if token.starts_with('"') {
        text(raw)
    } else {
        let number = token.parse();
        number.map_err(|_| Refusal::WrongType("a number, or a string that holds one"))
    }
}

/// Reads an integer in any notation that JSON has for it: `1`, `1.0` and `1e0` are the same number.
pub fn integer<T: TryFrom<i64, Error = Invalid>>(raw: &RawValue) -> Result<T, Refusal> {
    let wrong = || Refusal::WrongType("an integer");
    let number: Decimal = raw.get().parse().map_err(|_| wrong())?;
    let whole = number.saturating_integer().ok_or_else(wrong)?;
    Ok(T::try_from(whole)?)
}

/// Reads a list, each item by `item`.
pub fn list<T>(
    item: impl Fn(&RawValue) -> Result<T, Refusal>,
) -> impl Fn(&RawValue) -> Result<Vec<T>, Refusal> {
    move |raw| {
        let items: Vec<&RawValue> =
            serde_json::from_str(raw.get()).map_err(|_| Refusal::WrongType("a list"))?;
        let mut read = Vec::with_capacity(items.len().min(MAX_ERRORS));
        let mut refused = Vec::new();
        for (index, raw) in items.into_iter().enumerate() {
            match item(raw) {
                Ok(value) => read.push(value),
                Err(refusal) => refused.push((index, refusal)),
            }
            if refused.len() == MAX_ERRORS {
                break;
            }
        }
        if refused.is_empty() {
            Ok(read)
        } else {
            Err(Refusal::Items(refused))
        }
    }
}
