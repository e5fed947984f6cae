//! Facts as pairs of strings: the form in which they are stored and compared.

use std::{collections::BTreeMap, str::FromStr};

use jiff::Timestamp;

use crate::{Currency, Decimal, FieldError, Money, Rfc3339Timestamp, Rule, ValidationError};

/// The fields of a fact by name. Absent values have no entry.
pub type FactFields = BTreeMap<String, String>;

/// What a payment provider reports about one object. It contains only what the record depends on, so
/// equal facts mean that nothing has changed.
pub trait Fact: Clone + PartialEq {
    /// Returns how far the object is in its life. Of two facts with the same version, the one with the
    /// higher rank is the later one.
    fn status_rank(&self) -> u8;

    /// Returns the fields to store. Timestamps have microseconds.
    fn to_fields(&self) -> FactFields;

    /// Parses stored fields. The error names the field.
    fn from_fields(fields: &FactFields) -> Result<Self, FieldError>;
}

/// Builds the fields of a fact.
#[derive(Default)]
pub(super) struct FieldWriter(FactFields);

impl FieldWriter {
    pub(super) fn set(mut self, name: &str, value: &impl ToString) -> Self {
        self.0.insert(name.to_owned(), value.to_string());
        self
    }

    pub(super) fn set_some<T: ToString>(self, name: &str, value: Option<T>) -> Self {
        match value {
            Some(value) => self.set(name, &value),
            None => self,
        }
    }

    pub(super) fn set_time(self, name: &str, time: Option<Timestamp>) -> Self {
        self.set_some(name, time.map(Rfc3339Timestamp::from))
    }

    pub(super) fn finish(self) -> FactFields {
        self.0
    }
}

/// Parses an optional field.
pub(super) fn optional<T: FromStr<Err = ValidationError>>(
    fields: &FactFields,
    name: &'static str,
) -> Result<Option<T>, FieldError> {
    let value = fields.get(name).map(|text| text.parse());
    value.transpose().map_err(|error| (name, error))
}

/// Parses a field that every fact of this kind has.
pub(super) fn required<T: FromStr<Err = ValidationError>>(
    fields: &FactFields,
    name: &'static str,
) -> Result<T, FieldError> {
    optional(fields, name)?
        .ok_or_else(|| (name, ValidationError::new(Rule::Required, "is required")))
}

pub(super) fn optional_time(
    fields: &FactFields,
    name: &'static str,
) -> Result<Option<Timestamp>, FieldError> {
    Ok(optional::<Rfc3339Timestamp>(fields, name)?.map(Rfc3339Timestamp::get))
}

/// Parses an integer.
pub(super) fn optional_integer(
    fields: &FactFields,
    name: &'static str,
) -> Result<Option<i64>, FieldError> {
    let Some(decimal) = optional::<Decimal>(fields, name)? else {
        return Ok(None);
    };
    let error = || ValidationError::new(Rule::InvalidFormat, "must be an integer");
    let integer = decimal.to_i64_saturating();
    integer.map(Some).ok_or_else(|| (name, error()))
}

/// Parses an amount in the currency of the field `currency`.
pub(super) fn required_money(fields: &FactFields, name: &'static str) -> Result<Money, FieldError> {
    let currency: Currency = required(fields, "currency")?;
    let amount: Decimal = required(fields, name)?;
    Money::from_decimal(&amount, currency).map_err(|error| (name, error))
}
