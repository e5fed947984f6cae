//! The people of the demo: who, since when, what they have, and how they pay. The same each time, counted back from now.

use jiff::{SignedDuration, Timestamp, ToSpan, civil::DateTime, tz::TimeZone};

const FIRST: [&str; 24] = [
    "ada",
    "alan",
    "barbara",
    "claude",
    "donald",
    "edsger",
    "frances",
    "grace",
    "hedy",
    "ivan",
    "joan",
    "katherine",
    "lynn",
    "margaret",
    "niklaus",
    "ole",
    "peter",
    "radia",
    "shafi",
    "tony",
    "ursula",
    "vint",
    "whitfield",
    "yukihiro",
];
const LAST: [&str; 10] = [
    "adams", "brown", "costa", "diaz", "evans", "fischer", "garcia", "haddad", "ito", "jansen",
];

/// How many there are.
pub const COUNT: usize = FIRST.len() * LAST.len();

/// How somebody pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// Before each renewal.
    InTime,
    /// Three days after each renewal.
    Late,
    /// Not any more, after so many times.
    Stops(usize),
    /// So many times, and then cancels.
    Cancels(usize),
    /// In time, and gets the last payment back.
    PaidBack,
}

/// Somebody.
#[derive(Debug)]
pub struct Person {
    /// The e-mail address.
    pub email: String,
    /// Which of the three plans.
    pub plan: usize,
    /// When it begins.
    pub starts_at: Timestamp,
    /// Whether it begins with two weeks to try.
    pub on_trial: bool,
    /// How this one pays.
    pub habit: Habit,
}

/// The one with this number.
pub fn person(number: usize, now: Timestamp) -> Person {
    let (first, last) = (number % FIRST.len(), number / FIRST.len());
    let name =
        |list: &'static [&'static str], at: usize| list.get(at).copied().unwrap_or("somebody");
    // Steps that share no factor with the count visit everybody once, in no order that shows.
    let mixed = (number * 97) % COUNT;
    let habit = match mixed % 20 {
        0..=11 => Habit::InTime,
        12..=13 => Habit::Late,
        14..=15 => Habit::Stops(mixed % 7),
        16..=17 => Habit::Cancels(mixed % 5),
        _ => Habit::PaidBack,
    };
    Person {
        email: format!("{}.{}@demo.example", name(&FIRST, first), name(&LAST, last)),
        plan: match mixed % 10 {
            0..=2 => 0,
            3..=7 => 1,
            _ => 2,
        },
        starts_at: start(mixed, now),
        on_trial: mixed % 9 == 4,
        habit,
    }
}

/// Some time in the last 14 months; for every eighth at a month's end.
fn start(mixed: usize, now: Timestamp) -> Timestamp {
    let days = i64::try_from(mixed * 425 / COUNT).unwrap_or(0) + 1;
    let hours = i64::try_from(mixed % 24).unwrap_or(0);
    let ago = SignedDuration::from_hours(days * 24 + hours);
    let start = now.saturating_sub(ago).unwrap_or(now);
    if !mixed.is_multiple_of(8) {
        return start;
    }
    let date = TimeZone::UTC.to_datetime(start);
    let end = date
        .first_of_month()
        .checked_sub(1.month())
        .map(DateTime::last_of_month);
    end.and_then(|end| TimeZone::UTC.to_timestamp(end))
        .unwrap_or(start)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn everybody_is_somebody_else_and_the_same_each_time() {
        let now = "2026-11-15T09:30:00Z".parse().unwrap();
        let all: Vec<Person> = (0..COUNT).map(|number| person(number, now)).collect();
        let emails: HashSet<_> = all.iter().map(|one| &one.email).collect();
        assert_eq!(emails.len(), COUNT);
        assert!(all.iter().all(|one| one.starts_at < now));
        assert!(all.iter().any(|one| one.on_trial));
        for plan in 0..3 {
            assert!(all.iter().any(|one| one.plan == plan));
        }
        let at_the_end = |one: &&Person| TimeZone::UTC.to_datetime(one.starts_at).day() == 31;
        assert!(all.iter().filter(at_the_end).count() > 5);
        assert_eq!(
            format!("{:?}", person(7, now)),
            format!("{:?}", all.get(7).unwrap())
        );
    }
}
