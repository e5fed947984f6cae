//! Amounts in a payment provider's minor units.

use crate::{Currency, FieldError, Money, Rule, ValidationError};

/// Converts `units` × 10^-`scale` of the currency exactly, or returns an error for `field`.
pub(super) fn money_from_units(
    field: &'static str,
    units: i64,
    scale: u8,
    currency: Currency,
) -> Result<Money, FieldError> {
    let text = format!("{units}e-{scale}");
    let amount = text
        .parse()
        .and_then(|decimal| Money::from_decimal(&decimal, currency));
    amount.map_err(|error| (field, error))
}

/// Returns the error for an amount with more than one possible meaning.
pub(super) fn ambiguous_amount(field: &'static str, message: String) -> FieldError {
    (
        field,
        ValidationError::new(Rule::AmountScaleInvalid, message),
    )
}
