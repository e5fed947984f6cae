//! Exact fractions with checked arithmetic.

use std::cmp::Ordering;

/// A whole part and a proper fraction in lowest terms; the denominator is positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fraction {
    whole: i128,
    numerator: i128,
    denominator: i128,
}

fn greatest_common_divisor(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a.rem_euclid(b));
    }
    a
}

impl Fraction {
    /// Zero.
    pub(crate) const ZERO: Self = Self {
        whole: 0,
        numerator: 0,
        denominator: 1,
    };

    /// Returns `numerator / denominator`; `None` unless the denominator is positive.
    pub(crate) fn new(numerator: i128, denominator: i128) -> Option<Self> {
        if denominator <= 0 {
            return None;
        }
        let whole = numerator.div_euclid(denominator);
        let rest = numerator.rem_euclid(denominator);
        let divisor = greatest_common_divisor(rest, denominator);
        Some(Self {
            whole,
            numerator: rest / divisor,
            denominator: denominator / divisor,
        })
    }

    /// Returns the sum; `None` on overflow.
    pub(crate) fn checked_add(self, other: Self) -> Option<Self> {
        let divisor = greatest_common_divisor(self.denominator, other.denominator);
        let denominator = self.denominator.checked_mul(other.denominator / divisor)?;
        let left = self.numerator.checked_mul(other.denominator / divisor)?;
        let right = other.numerator.checked_mul(self.denominator / divisor)?;
        let fraction = Self::new(left.checked_add(right)?, denominator)?;
        let whole = self
            .whole
            .checked_add(other.whole)?
            .checked_add(fraction.whole)?;
        Some(Self { whole, ..fraction })
    }

    /// Returns the difference; `None` on overflow.
    pub(crate) fn checked_sub(self, other: Self) -> Option<Self> {
        let negated = Self::new(-other.numerator, other.denominator)?;
        let whole = negated.whole.checked_sub(other.whole)?;
        self.checked_add(Self { whole, ..negated })
    }

    /// Compares the fraction with an integer.
    pub(crate) fn cmp_integer(self, other: i128) -> Ordering {
        self.whole.cmp(&other).then(self.numerator.cmp(&0))
    }

    /// Returns the smallest integer that is not below the fraction.
    pub(crate) fn ceil(self) -> i128 {
        self.whole + i128::from(self.numerator > 0)
    }

    /// Returns the largest integer that is not above the fraction.
    pub(crate) fn floor(self) -> i128 {
        self.whole
    }
}

impl From<i64> for Fraction {
    fn from(whole: i64) -> Self {
        Self {
            whole: i128::from(whole),
            ..Self::ZERO
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirds_add_up_to_exactly_one() {
        let third = Fraction::new(1, 3).unwrap();
        let two = third.checked_add(third).unwrap();
        assert_eq!(two.cmp_integer(1), Ordering::Less);
        assert_eq!(two.cmp_integer(0), Ordering::Greater);
        assert_eq!(
            two.checked_add(third).unwrap().cmp_integer(1),
            Ordering::Equal
        );
    }

    #[test]
    fn difference_of_fractions_is_exact() {
        let (third, half) = (Fraction::new(1, 3).unwrap(), Fraction::new(-7, 2).unwrap());
        let difference = half.checked_sub(third).unwrap();
        assert_eq!(difference, Fraction::new(-23, 6).unwrap());
        assert_eq!(difference.checked_sub(difference), Some(Fraction::ZERO));
        let five = Fraction::from(5).checked_sub(Fraction::from(7));
        assert_eq!(five, Some(Fraction::from(-2)));
    }

    #[test]
    fn rounding_follows_the_direction() {
        let fraction = Fraction::new(-7, 2).unwrap();
        assert_eq!((fraction.floor(), fraction.ceil()), (-4, -3));
        let whole = Fraction::new(8, 2).unwrap();
        assert_eq!((whole.floor(), whole.ceil()), (4, 4));
        assert_eq!(Fraction::new(1, 0), None);
    }

    #[test]
    fn overflow_is_reported() {
        let huge = Fraction::new(1, i128::MAX).unwrap();
        let other = Fraction::new(1, i128::MAX - 1).unwrap();
        assert_eq!(huge.checked_add(other), None);
    }
}
