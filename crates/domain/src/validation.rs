//! Validation errors: which rule a value breaks, with a message for API clients.

use crate::suggest::{quoted, suggest_by};

/// The rule that a value breaks. Each has a stable problem code in the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The amount has more decimal places than its currency.
    AmountScaleInvalid,
    /// Empty, or only white space.
    Blank,
    /// The plan's currency differs from the subscription's.
    CurrencyMismatch,
    /// Dates in an impossible order.
    InconsistentDates,
    /// A field contradicts the status.
    InconsistentStatus,
    /// The value does not have the expected format.
    InvalidFormat,
    /// Not an identifier of the expected type.
    InvalidId,
    /// Below the minimum or above the maximum.
    OutOfRange,
    /// The plan no longer accepts subscriptions.
    PlanInactive,
    /// The value is missing and needed because of other fields.
    Required,
    /// Too many characters.
    TooLong,
    /// Too many items.
    TooMany,
    /// Not one of the allowed values.
    UnknownValue,
}

/// An invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ValidationError {
    /// The broken rule.
    pub rule: Rule,
    /// Explanation for API clients. It may quote the input, so the input must not be a secret.
    pub message: String,
    /// The allowed values, for [`Rule::UnknownValue`].
    pub allowed: Vec<&'static str>,
}

/// The name of a field, and why its value is invalid.
pub type FieldError = (&'static str, ValidationError);

impl ValidationError {
    /// Creates an error without a list of allowed values.
    pub fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self {
            rule,
            message: message.into(),
            allowed: Vec::new(),
        }
    }

    /// Creates an error for a string that is not one of `allowed`. The message suggests the closest
    /// allowed value, or lists all of them. A string close to one of `aliases`, which are pairs of an
    /// alias and its allowed value, suggests that value. `description` is a noun with its article: "a
    /// scope".
    pub fn unknown_value(
        description: &str,
        value: &str,
        allowed: Vec<&'static str>,
        aliases: &[(&'static str, &'static str)],
    ) -> Self {
        let value_quoted = quoted(value);
        let same = allowed.iter().map(|name| (*name, *name));
        let message = if let Some(closest) = suggest_by(value, same.chain(aliases.iter().copied()))
        {
            format!("{value_quoted} is not {description}; did you mean \"{closest}\"?")
        } else {
            let allowed = allowed.join(", ");
            format!("{value_quoted} is not {description}; allowed: {allowed}")
        };
        Self {
            rule: Rule::UnknownValue,
            message,
            allowed,
        }
    }
}
