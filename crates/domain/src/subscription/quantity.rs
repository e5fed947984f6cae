//! The number of units of a plan, such as seats.

use crate::{Rule, ValidationError};

/// How many units of the plan a subscription has: 1 to 100,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity(i32);

impl Quantity {
    /// The smallest quantity, and the default.
    pub const MIN: i32 = 1;
    /// The largest quantity.
    pub const MAX: i32 = 100_000;

    /// Returns the number.
    pub fn get(self) -> i32 {
        self.0
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self(Self::MIN)
    }
}

impl TryFrom<i64> for Quantity {
    type Error = ValidationError;

    fn try_from(value: i64) -> Result<Self, ValidationError> {
        match i32::try_from(value) {
            Ok(value) if (Self::MIN..=Self::MAX).contains(&value) => Ok(Self(value)),
            _ => {
                let message = format!("must be from {} to {}", Self::MIN, Self::MAX);
                Err(ValidationError::new(Rule::OutOfRange, message))
            }
        }
    }
}
