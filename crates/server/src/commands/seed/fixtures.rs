//! The subscribers of the demo. They are the same in every run, except that dates are relative to
//! now.

use jiff::{SignedDuration, Timestamp, ToSpan, civil::DateTime, tz::TimeZone};

const FIRST_NAMES: [&str; 24] = [
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
const LAST_NAMES: [&str; 10] = [
    "adams", "brown", "costa", "diaz", "evans", "fischer", "garcia", "haddad", "ito", "jansen",
];

pub const SUBSCRIBER_COUNT: usize = FIRST_NAMES.len() * LAST_NAMES.len();

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentHabit {
    /// Pays before each renewal.
    OnTime,
    /// Pays three days after each renewal.
    Late,
    /// Stops paying after this many payments.
    Stops(usize),
    /// Cancels after this many payments.
    Cancels(usize),
    /// Pays on time, and the last payment is refunded.
    Refunded,
}

#[derive(Debug)]
pub struct Subscriber {
    pub email: String,
    /// Index into the three plans of the demo.
    pub plan: usize,
    pub starts_at: Timestamp,
    /// Whether the subscription starts with a trial of two weeks.
    pub on_trial: bool,
    pub habit: PaymentHabit,
}

/// Returns the subscriber with this number, which must be less than [`SUBSCRIBER_COUNT`].
pub fn subscriber(number: usize, now: Timestamp) -> Subscriber {
    let (first, last) = (number % FIRST_NAMES.len(), number / FIRST_NAMES.len());
    let name =
        |names: &'static [&'static str], at: usize| names.get(at).copied().unwrap_or_default();
    // Multiplying by 97, which is coprime to the count, permutes the numbers, so that habits, plans and
    // start dates do not follow the order of the names.
    let mixed = (number * 97) % SUBSCRIBER_COUNT;
    let habit = match mixed % 20 {
        0..=11 => PaymentHabit::OnTime,
        12..=13 => PaymentHabit::Late,
        14..=15 => PaymentHabit::Stops(mixed % 7),
        16..=17 => PaymentHabit::Cancels(mixed % 5),
        _ => PaymentHabit::Refunded,
    };
    Subscriber {
        email: format!(
            "{}.{}@demo.example",
            name(&FIRST_NAMES, first),
            name(&LAST_NAMES, last)
        ),
        plan: match mixed % 10 {
            0..=2 => 0,
            3..=7 => 1,
            _ => 2,
        },
        starts_at: start_date(mixed, now),
        on_trial: mixed % 9 == 4,
        habit,
    }
}

/// Returns a time in the last 14 months. For every eighth subscriber, moves it to the last day of the
/// previous month, so that some subscriptions renew on a day that shorter months do not have.
fn start_date(mixed: usize, now: Timestamp) -> Timestamp {
    let days = i64::try_from(mixed * 425 / SUBSCRIBER_COUNT).unwrap_or(0) + 1;
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
    fn subscribers_are_distinct_and_the_same_in_every_run() {
        let now = "2026-11-15T09:30:00Z".parse().unwrap();
        let all: Vec<Subscriber> = (0..SUBSCRIBER_COUNT)
            .map(|number| subscriber(number, now))
            .collect();
        let emails: HashSet<_> = all.iter().map(|subscriber| &subscriber.email).collect();
        assert_eq!(emails.len(), SUBSCRIBER_COUNT);
        assert!(all.iter().all(|subscriber| subscriber.starts_at < now));
        assert!(all.iter().any(|subscriber| subscriber.on_trial));
        for plan in 0..3 {
            assert!(all.iter().any(|subscriber| subscriber.plan == plan));
        }
        let starts_on_31st =
            |subscriber: &&Subscriber| TimeZone::UTC.to_datetime(subscriber.starts_at).day() == 31;
        assert!(all.iter().filter(starts_on_31st).count() > 5);
        assert_eq!(
            format!("{:?}", subscriber(7, now)),
            format!("{:?}", all.get(7).unwrap())
        );
    }
}
