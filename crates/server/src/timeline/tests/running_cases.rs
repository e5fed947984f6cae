//! Managed subscriptions that are not late and have not expired.

use perennial_domain::{BillingCycle, NewSubscription, SubscriptionChanges, SubscriptionStatus};

use super::{
    book::{Book, START, new, noon},
    cases::Add,
};

pub fn running_cases(add: Add<'_>) {
    pending_cases(add);
    trial_cases(add);
    active_cases(add);
    paused_cases(add);
    cancelled_cases(add);
}

fn later(status: Option<SubscriptionStatus>) -> NewSubscription {
    NewSubscription {
        starts_at: Some(noon("2026-12-01")),
        status,
        ..new()
    }
}

fn active() -> Book {
    Book::managed(&new()).paid(1_999, START)
}

fn pending_cases(add: Add<'_>) {
    use BillingCycle::{Lifetime, Monthly};
    add("managed: pending", Book::managed(&new()), "2026-11-16");
    add(
        "managed: pending, partly paid",
        Book::managed(&new()).paid(500, START),
        "2026-11-16",
    );
    add(
        "managed: pending, lifetime",
        Book::of_plan(&new(), 30_000, Lifetime),
        "2026-11-16",
    );
    add(
        "managed: pending, starts later",
        Book::managed(&later(None)),
        "2026-11-16",
    );
    let funded = Book::managed(&later(None)).paid(1_999, START);
    add("managed: pending, starts later, paid", funded, "2026-11-16");
    let free_later = Book::of_plan(&later(Some(SubscriptionStatus::Pending)), 0, Monthly);
    add(
        "managed: pending, starts later, free",
        free_later,
        "2026-11-16",
    );
    let ending = NewSubscription {
        ends_at: Some(noon("2026-11-20")),
        ..new()
    };
    add(
        "managed: pending, ends first",
        Book::managed(&ending),
        "2026-11-16",
    );
}

fn trial_cases(add: Add<'_>) {
    use BillingCycle::Lifetime;
    add("managed: on trial", Book::trial(), "2026-11-16");
    add(
        "managed: on trial, paid",
        Book::trial().paid(1_999, "2026-11-15"),
        "2026-11-16",
    );
    add(
        "managed: on trial, suspended",
        Book::trial().suspended("2026-11-15"),
        "2026-11-16",
    );
    add(
        "managed: on trial, ends",
        Book::trial().ending("2026-11-20", START),
        "2026-11-16",
    );
    let trial_later = NewSubscription {
        renews_at: Some(noon("2026-12-15")),
        ..later(Some(SubscriptionStatus::OnTrial))
    };
    add(
        "managed: on trial, starts later",
        Book::managed(&trial_later),
        "2026-11-16",
    );
    let lifetime_trial = NewSubscription {
        renews_at: Some(noon("2026-11-29")),
        status: Some(SubscriptionStatus::OnTrial),
        ..new()
    };
    add(
        "managed: on trial, lifetime",
        Book::of_plan(&lifetime_trial, 30_000, Lifetime),
        "2026-11-16",
    );
}

fn active_cases(add: Add<'_>) {
    use BillingCycle::{Lifetime, Monthly};
    add("managed: active", active(), "2026-11-20");
    add(
        "managed: active, next period paid",
        active().paid(2_001, "2026-11-18"),
        "2026-11-20",
    );
    add(
        "managed: active, next period partly paid",
        active().paid(501, "2026-11-18"),
        "2026-11-20",
    );
    add(
        "managed: active, free",
        Book::of_plan(&new(), 0, Monthly),
        "2026-11-20",
    );
    add(
        "managed: active, lifetime",
        Book::of_plan(&new(), 30_000, Lifetime).paid(30_000, START),
        "2026-11-20",
    );
    add(
        "managed: active, free lifetime",
        Book::of_plan(&new(), 0, Lifetime),
        "2026-11-20",
    );
    add(
        "managed: active, suspended",
        active().suspended("2026-11-18"),
        "2026-11-20",
    );
    add(
        "managed: active, ends",
        active().ending("2026-12-01", "2026-11-18"),
        "2026-11-20",
    );
    let prepaid = active()
        .paid(3_998, "2026-11-18")
        .ending("2027-01-20", "2026-11-18");
    add(
        "managed: active, ends after renewals",
        prepaid,
        "2026-11-20",
    );
    let scheduled = later(Some(SubscriptionStatus::Active));
    add(
        "managed: active, starts later",
        Book::managed(&scheduled),
        "2026-11-16",
    );
    add(
        "managed: active, starts later, paid",
        Book::managed(&scheduled).paid(1_999, START),
        "2026-11-16",
    );
    let moved = SubscriptionChanges {
        free_until: Some(Some(noon("2027-01-10"))),
        ..SubscriptionChanges::default()
    };
    add(
        "managed: active, free time",
        active().changed(&moved, "2026-11-18"),
        "2026-12-20",
    );
    add("managed: active, late worker", active(), "2026-12-16");
    add(
        "managed: active, worker late by two changes",
        active(),
        "2026-12-23",
    );
}

fn paused_cases(add: Add<'_>) {
    use BillingCycle::{Lifetime, Monthly};
    let paused = || active().status(SubscriptionStatus::Paused, "2026-11-20");
    add("managed: paused", paused(), "2026-11-21");
    add("managed: paused, time over", paused(), "2026-12-20");
    let funded = active()
        .paid(1_999, "2026-11-18")
        .status(SubscriptionStatus::Paused, "2026-11-20");
    add(
        "managed: paused, time over, with credit",
        funded,
        "2026-12-20",
    );
    let free = Book::of_plan(&new(), 0, Monthly).status(SubscriptionStatus::Paused, "2026-11-20");
    add("managed: paused, time over, free", free, "2026-12-20");
    let lifetime = Book::of_plan(&new(), 30_000, Lifetime).paid(30_000, START);
    add(
        "managed: paused, lifetime",
        lifetime.status(SubscriptionStatus::Paused, "2026-11-20"),
        "2026-11-21",
    );
    let suspended = active()
        .suspended("2026-11-18")
        .status(SubscriptionStatus::Paused, "2026-11-20");
    add("managed: paused, suspended", suspended, "2026-11-21");
    let ending = active()
        .ending("2026-12-01", "2026-11-18")
        .status(SubscriptionStatus::Paused, "2026-11-20");
    add("managed: paused, ends", ending, "2026-11-21");
    let trial = Book::trial().status(SubscriptionStatus::Paused, "2026-11-20");
    add("managed: paused, in the trial", trial, "2026-11-21");
    let never = NewSubscription {
        status: Some(SubscriptionStatus::Paused),
        ..new()
    };
    add(
        "managed: paused, never started",
        Book::managed(&never),
        "2026-11-21",
    );
}

fn cancelled_cases(add: Add<'_>) {
    let cancelled = || active().status(SubscriptionStatus::Cancelled, "2026-11-20");
    add("managed: cancelled", cancelled(), "2026-11-21");
    let prepaid = active()
        .paid(1_999, "2026-11-18")
        .status(SubscriptionStatus::Cancelled, "2026-11-20");
    add(
        "managed: cancelled, next period paid",
        prepaid,
        "2026-11-21",
    );
    let later = cancelled().ending("2027-03-01", "2026-11-20");
    add(
        "managed: cancelled, ends after the paid time",
        later,
        "2026-11-21",
    );
    let suspended = active()
        .suspended("2026-11-18")
        .status(SubscriptionStatus::Cancelled, "2026-11-20");
    add("managed: cancelled, suspended", suspended, "2026-11-21");
    let trial = Book::trial().status(SubscriptionStatus::Cancelled, "2026-11-20");
    add("managed: cancelled, in the trial", trial, "2026-11-21");
}
