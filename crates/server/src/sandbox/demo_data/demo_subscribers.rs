//! The subscribers of the demo. They are the same in every run, except that dates are relative to
//! now.

use jiff::{SignedDuration, Timestamp, ToSpan, civil::DateTime, tz::TimeZone};

const FIRST_NAMES: [&str; 24] = [
    "ada",
    "alan",
    "barbara",
    "carver",
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

/// What a subscriber does. All pay before each renewal, unless the habit says otherwise. One-time
/// actions happen in the second period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    OnTime,
    /// Switches to the next more expensive plan, or buys a second seat of the most expensive one.
    Upgrades,
    /// Switches to the next cheaper plan.
    Downgrades,
    /// Buys two more seats, and returns one a week later.
    ChangesQuantity,
    /// Pauses, and resumes after this many days.
    Pauses(i64),
    /// A payment is refunded in full.
    Refunded,
    /// A quarter of a payment is refunded.
    PartlyRefunded,
    /// A payment is disputed. The dispute is won after five days.
    Disputed,
    /// Pays three days after each renewal.
    Late,
    /// The payment for the latest period failed.
    Misses,
    /// Stops paying after this many payments.
    Stops(usize),
    /// Cancels after this many payments.
    Cancels(usize),
}

impl Habit {
    /// Returns whether the last payment is for several periods, so that the subscription renews while
    /// the clock of the sandbox advances.
    pub fn pays_ahead(self) -> bool {
        !matches!(
            self,
            Self::Late | Self::Misses | Self::Stops(_) | Self::Cancels(_)
        )
    }
}

#[derive(Debug)]
pub struct Subscriber {
    pub email: String,
    /// Index into the three plans of the demo.
    pub plan: usize,
    pub starts_at: Timestamp,
    pub habit: Habit,
    /// How many periods a subscriber that pays ahead has paid in advance.
    pub periods_ahead: i64,
}

/// Returns the subscriber with this number, which must be less than [`SUBSCRIBER_COUNT`].
pub fn subscriber(number: usize, now: Timestamp) -> Subscriber {
    let (first, last) = (number % FIRST_NAMES.len(), number / FIRST_NAMES.len());
    let name =
        |names: &'static [&'static str], at: usize| names.get(at).copied().unwrap_or_default();
    // Multiplying by 97, which is coprime to the count, permutes the numbers, so that habits, plans and
    // start dates do not follow the order of the names.
    let mixed = (number * 97) % SUBSCRIBER_COUNT;
    // The plan follows from the last digit, so the habit also depends on the others.
    let habit = match (mixed / 10 + mixed * 3) % 20 {
        0 => Habit::Upgrades,
        1 => Habit::Downgrades,
        2 => Habit::ChangesQuantity,
        3 => Habit::Pauses(if mixed.is_multiple_of(2) { 12 } else { 40 }),
        4 => Habit::Refunded,
        5 => Habit::PartlyRefunded,
        6 => Habit::Disputed,
        7 => Habit::Late,
        8 => Habit::Misses,
        9 => Habit::Stops(mixed % 7),
        10..=11 => Habit::Cancels(1 + mixed % 5),
        _ => Habit::OnTime,
    };
    Subscriber {
        email: format!(
            "{}.{}@demo.example",
            name(&FIRST_NAMES, first),
            name(&LAST_NAMES, last)
        ),
        plan: match mixed % 10 {
            0..=2 => 0,
            // Two of them started in the last two weeks, so their trials have not ended.
            4..=5 => 2,
            _ => 1,
        },
        starts_at: start_date(mixed, now),
        habit,
        periods_ahead: i64::try_from(3 + mixed % 10).unwrap_or(3),
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
        for plan in 0..3 {
            let of_plan = all.iter().filter(|subscriber| subscriber.plan == plan);
            let habits: HashSet<_> = of_plan
                .map(|subscriber| std::mem::discriminant(&subscriber.habit))
                .collect();
            assert_eq!(habits.len(), 12, "plan {plan}");
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
