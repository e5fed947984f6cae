//! Words of a payment provider that have no meaning here.

use crate::{FieldError, ValidationError};

/// Returns the error for a word of `field` that is not among the known ones.
pub(super) fn unknown_word(
    field: &'static str,
    description: &str,
    word: &str,
    known: &[&'static str],
) -> FieldError {
    let error = ValidationError::unknown_value(description, word, known.to_vec(), &[]);
    (field, error)
}
