//! A stretch of covered time, and what its parts are worth.

use jiff::Timestamp;

use crate::BillingCycle;

/// A period that was charged, or free time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BillingPeriod {
    /// Start of the period.
    pub starts_at: Timestamp,
    /// End of the period; `None` for a lifetime.
    pub ends_at: Option<Timestamp>,
    /// The billing cycle that it was charged or given for.
    pub cycle: BillingCycle,
    /// What it took from credit, in minor units for the whole period.
    pub cost: i64,
    /// The rest of its amount: what was given without charge, or waived.
    pub given: i64,
    /// The part of `given` that was waived.
    pub waived: i64,
}

impl BillingPeriod {
    pub(super) const fn paid(
        starts_at: Timestamp,
        ends_at: Option<Timestamp>,
        cycle: BillingCycle,
        amount: i64,
    ) -> Self {
        Self {
            starts_at,
            ends_at,
            cycle,
            cost: amount,
            given: 0,
            waived: 0,
        }
    }

    pub(super) const fn free(
        starts_at: Timestamp,
        ends_at: Option<Timestamp>,
        cycle: BillingCycle,
        amount: i64,
    ) -> Self {
        Self {
            starts_at,
            ends_at,
            cycle,
            cost: 0,
            given: amount,
            waived: 0,
        }
    }

    /// Returns price × quantity that the period was bought at, given for, or changed to.
    pub const fn amount(&self) -> i64 {
        self.cost + self.given
    }

    /// Returns whether the period is not over at `now`.
    pub(super) fn is_in_force(&self, now: Timestamp) -> bool {
        self.ends_at.is_none_or(|end| end > now)
    }

    /// Returns the part of the period after `from`.
    pub(super) fn left(&self, from: Timestamp) -> Left {
        let whole = self.ends_at.map(|end| micros(self.starts_at, end));
        self.left_of(from, whole)
    }

    /// Returns the part of this free time after `from`. Its amount is that of one cycle, and it may be
    /// longer or shorter.
    pub(super) fn free_left(&self, from: Timestamp) -> Left {
        let cycle_end = self.cycle.next_renewal(self.starts_at, self.starts_at);
        let whole = cycle_end.map(|end| micros(self.starts_at, end));
        self.left_of(from, whole)
    }

    fn left_of(&self, from: Timestamp, whole: Option<i64>) -> Left {
        match (self.ends_at, whole) {
            (Some(end), Some(whole)) if whole > 0 => Left::Part {
                part: micros(from.max(self.starts_at), end).max(0),
                whole,
            },
            _ => Left::Lifetime,
        }
    }

    /// Changes the amount. Returns what that takes from credit (negative) or returns (positive), for the whole
    /// period.
    pub(super) fn change_amount(&mut self, amount: i64) -> i64 {
        let difference = self.amount() - amount;
        // What was given is not returned.
        let value = difference.min(self.cost);
        self.cost -= value;
        self.given = amount - self.cost;
        self.waived = self.waived.min(self.given);
        value
    }

    /// Moves what is worth a waived `amount` now from the cost to what was given; a negative amount moves it back.
    /// Returns what the period does not bear.
    pub(super) fn waive(&mut self, amount: i64, left: Left) -> i64 {
        let Left::Part { part, whole } = left else {
            return amount;
        };
        let (most, worth) = if amount > 0 {
            (self.cost, -value_left(&[(-self.cost, left)]))
        } else {
            (-self.waived, value_left(&[(-self.waived, left)]))
        };
        let is_all = amount.abs() >= worth.abs();
        let moved = if is_all {
            most
        } else {
            let inverse = Left::Part {
                part: whole,
                whole: part,
            };
            -value_left(&[(-amount, inverse)])
        };
        self.cost -= moved;
        self.given += moved;
        self.waived += moved;
        if is_all { amount - worth } else { 0 }
    }
}

/// The part of a period that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Microseconds that are left, of those that the amount is for.
    Part { part: i64, whole: i64 },
    /// A lifetime does not become less, and returns nothing.
    Lifetime,
}

/// Returns the sum of values for the parts that are left, rounded down once: a charge (negative) is rounded up.
pub(super) fn value_left(values: &[(i64, Left)]) -> i64 {
    let (mut sum, mut rest, mut denominator) = (0_i128, 0_i128, 1_i128);
    for (value, left) in values {
        match left {
            Left::Lifetime => sum += i128::from((*value).min(0)),
            Left::Part { part, whole } => {
                let (product, whole) = (i128::from(*value) * i128::from(*part), i128::from(*whole));
                sum += product.div_euclid(whole);
                rest = rest * whole + product.rem_euclid(whole) * denominator;
                denominator *= whole;
            }
        }
    }
    i64::try_from(sum + rest / denominator).unwrap_or(i64::MIN)
}

/// Returns the microseconds from `start` to `end`.
pub(super) fn micros(start: Timestamp, end: Timestamp) -> i64 {
    end.as_microsecond() - start.as_microsecond()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Left = Left::Part { part: 1, whole: 2 };
    const THIRD: Left = Left::Part { part: 1, whole: 3 };

    #[test]
    fn sum_is_rounded_down_once() {
        assert_eq!(value_left(&[(1, HALF), (1, HALF)]), 1);
        assert_eq!(value_left(&[(-1, HALF), (-1, HALF)]), -1);
        assert_eq!(value_left(&[(-1, HALF)]), -1);
        assert_eq!(value_left(&[(100, THIRD), (100, HALF)]), 83);
        assert_eq!(value_left(&[(-100, THIRD), (100, HALF)]), 16);
        assert_eq!(value_left(&[(5, Left::Lifetime), (-7, Left::Lifetime)]), -7);
    }

    #[test]
    fn longest_periods_and_largest_amounts_do_not_overflow() {
        let whole = 250_000_000_000_000_000;
        let part = whole - 1;
        let left = Left::Part { part, whole };
        let most = crate::MAX_MINOR_UNITS;
        assert_eq!(value_left(&[(most, left), (most, left)]), 2 * most - 1);
    }

    #[test]
    fn change_returns_what_was_charged_and_not_what_was_given() {
        let at = Timestamp::UNIX_EPOCH;
        let mut period = BillingPeriod::free(at, None, BillingCycle::Monthly, 10);
        assert_eq!(period.change_amount(100), -90);
        assert_eq!((period.cost, period.given), (90, 10));
        assert_eq!(period.change_amount(5), 90);
        assert_eq!((period.cost, period.given), (0, 5));
        assert_eq!(period.change_amount(3), 0);
    }

    #[test]
    fn waiver_takes_what_it_is_worth_from_the_cost() {
        let at = Timestamp::UNIX_EPOCH;
        let mut period = BillingPeriod::paid(at, None, BillingCycle::Monthly, 20);
        assert_eq!(period.waive(2, HALF), 0);
        assert_eq!((period.cost, period.given, period.waived), (16, 4, 4));
        assert_eq!(period.waive(-1, THIRD), 0);
        assert_eq!((period.cost, period.given, period.waived), (19, 1, 1));
        assert_eq!(period.waive(50, HALF), 40);
        assert_eq!((period.cost, period.given, period.waived), (0, 20, 20));
        assert_eq!(period.waive(-8, THIRD), -1);
        assert_eq!((period.cost, period.given, period.waived), (20, 0, 0));
        assert_eq!(period.waive(8, Left::Lifetime), 8);
    }
}
