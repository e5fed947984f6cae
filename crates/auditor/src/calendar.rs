//! Civil dates in UTC, independent of any date library.
//!
//! Instants are microseconds since the Unix epoch. Months are added to an anchor and clamped to the
//! end of the month, so that a period that starts on the 31st does not drift to the 28th.

use crate::Cycle;

/// Microseconds in 24 hours.
pub(crate) const DAY: i64 = 86_400_000_000;

/// Upper bound of the periods searched for the one that contains an instant.
const MAX_PERIODS: i64 = 200_000;

/// Returns the days since the Unix epoch of a date in the proleptic Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Returns year, month and day of a number of days since the Unix epoch.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let (next_year, next_month) = if month == 12 {
        (year + 1, 1)
    } else {
        (year, month + 1)
    };
    days_from_civil(next_year, next_month, 1) - days_from_civil(year, month, 1)
}

/// Returns the instant `months` after year and month, on `day` or the last day of that month.
fn in_month(year: i64, month: i64, months: i64, day: i64, time: i64) -> i64 {
    let total = year * 12 + (month - 1) + months;
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
    days_from_civil(year, month, day.min(days_in_month(year, month))) * DAY + time
}

/// Number of days or months in a cycle.
enum Step {
    Days(i64),
    Months(i64),
}

fn step(cycle: Cycle) -> Option<Step> {
    match cycle {
        Cycle::Daily => Some(Step::Days(1)),
        Cycle::Weekly => Some(Step::Days(7)),
        Cycle::Monthly => Some(Step::Months(1)),
        Cycle::Quarterly => Some(Step::Months(3)),
        Cycle::Semiannual => Some(Step::Months(6)),
        Cycle::Yearly => Some(Step::Months(12)),
        Cycle::Lifetime => None,
    }
}

/// Returns the instant `count` cycles after `anchor`; `None` for a lifetime.
pub(crate) fn add_cycles(anchor: i64, cycle: Cycle, count: i64) -> Option<i64> {
    match step(cycle)? {
        Step::Days(days) => Some(anchor + days * count * DAY),
        Step::Months(months) => {
            let (year, month, day) = civil_from_days(anchor.div_euclid(DAY));
            Some(in_month(
                year,
                month,
                months * count,
                day,
                anchor.rem_euclid(DAY),
            ))
        }
    }
}

/// Returns how many cycles after `anchor` an instant is; `None` if that is no whole number.
fn index_of(anchor: i64, at: i64, cycle: Cycle) -> Option<i64> {
    let index = match step(cycle)? {
        Step::Days(days) => (at - anchor).div_euclid(days * DAY),
        Step::Months(months) => {
            let (from_year, from_month, _) = civil_from_days(anchor.div_euclid(DAY));
            let (year, month, _) = civil_from_days(at.div_euclid(DAY));
            ((year - from_year) * 12 + month - from_month).div_euclid(months)
        }
    };
    (add_cycles(anchor, cycle, index) == Some(at)).then_some(index)
}

/// Returns whether an instant is the anchor or a whole number of cycles after it.
pub(crate) fn is_renewal(anchor: i64, at: i64, cycle: Cycle) -> bool {
    index_of(anchor, at, cycle).is_some_and(|index| index >= 0)
}

/// Returns the instant `count` cycles after `start`; `None` for a lifetime.
///
/// The anchor decides the day of the month. A start that is no renewal date of the anchor is its own
/// anchor.
pub(crate) fn cycles_after(anchor: i64, start: i64, cycle: Cycle, count: i64) -> Option<i64> {
    match index_of(anchor, start, cycle) {
        Some(index) => add_cycles(anchor, cycle, index + count),
        None => add_cycles(start, cycle, count),
    }
}

/// Returns the end of the period that starts at `start`, one cycle on from the anchor.
pub(crate) fn period_end(anchor: i64, start: i64, cycle: Cycle) -> Option<i64> {
    cycles_after(anchor, start, cycle, 1)
}

/// Returns the start of the period, counted from `anchor`, that contains `at`.
pub(crate) fn period_start(anchor: i64, cycle: Cycle, at: i64) -> i64 {
    let mut start = anchor;
    for count in 1..MAX_PERIODS {
        match add_cycles(anchor, cycle, count) {
            Some(next) if next <= at => start = next,
            _ => break,
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(year: i64, month: i64, day: i64) -> i64 {
        days_from_civil(year, month, day) * DAY
    }

    #[test]
    fn civil_dates_round_trip_over_four_centuries() {
        for days in -146_097..=146_097 {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
            assert!((1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day));
        }
        assert_eq!(civil_from_days(0), (1970, 1, 1));
        assert_eq!(civil_from_days(20_773), (2026, 11, 16));
    }

    #[test]
    fn months_are_clamped_and_counted_from_the_anchor() {
        let anchor = date(2026, 1, 31) + 7;
        assert_eq!(
            add_cycles(anchor, Cycle::Monthly, 1),
            Some(date(2026, 2, 28) + 7)
        );
        assert_eq!(
            add_cycles(anchor, Cycle::Monthly, 2),
            Some(date(2026, 3, 31) + 7)
        );
        assert_eq!(
            add_cycles(anchor, Cycle::Semiannual, 1),
            Some(date(2026, 7, 31) + 7)
        );
        assert_eq!(
            add_cycles(date(2028, 2, 29), Cycle::Yearly, 1),
            Some(date(2029, 2, 28))
        );
        assert_eq!(
            add_cycles(date(2028, 2, 29), Cycle::Yearly, 4),
            Some(date(2032, 2, 29))
        );
        assert_eq!(add_cycles(anchor, Cycle::Lifetime, 1), None);
    }

    #[test]
    fn period_end_keeps_the_day_of_the_anchor() {
        let anchor = date(2026, 1, 31);
        assert_eq!(
            period_end(anchor, date(2026, 2, 28), Cycle::Monthly),
            Some(date(2026, 3, 31))
        );
        assert_eq!(
            period_end(anchor, date(2026, 2, 10), Cycle::Monthly),
            Some(date(2026, 3, 10))
        );
        // A quarter from January 31 ends on April 30. February 28 is not its renewal date.
        assert!(!is_renewal(anchor, date(2026, 2, 28), Cycle::Quarterly));
        assert!(is_renewal(anchor, date(2026, 4, 30), Cycle::Quarterly));
        assert_eq!(
            period_end(anchor, date(2026, 2, 28), Cycle::Quarterly),
            Some(date(2026, 5, 28))
        );
        assert_eq!(
            period_end(anchor, date(2026, 2, 10), Cycle::Weekly),
            Some(date(2026, 2, 17))
        );
    }

    #[test]
    fn period_start_contains_the_instant() {
        let anchor = date(2025, 12, 31);
        assert_eq!(
            period_start(anchor, Cycle::Monthly, date(2026, 3, 1)),
            date(2026, 2, 28)
        );
        assert_eq!(
            period_start(anchor, Cycle::Monthly, date(2026, 2, 28)),
            date(2026, 2, 28)
        );
        assert_eq!(period_start(anchor, Cycle::Monthly, anchor), anchor);
    }
}
