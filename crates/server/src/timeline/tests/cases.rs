//! Every possible combination of status, lifecycle and situation.

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{BillingCycle, Lifecycle, NewSubscription, SubscriptionStatus};

use super::{
    book::{Book, MANAGED, START, new, noon, offer},
    running_cases::running_cases,
};

pub struct Case {
    pub name: String,
    pub book: Book,
    pub now: Timestamp,
}

impl Case {
    pub fn status(&self) -> SubscriptionStatus {
        self.book.sub.status_at(self.now)
    }
}

/// Returns every possible combination of status, lifecycle and situation.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name: &str, book: Book, day: &str| {
        // Events and changes are microseconds apart.
        let now = noon(day) + SignedDuration::from_mins(1);
        cases.push(Case {
            name: name.to_owned(),
            book,
            now,
        });
    };
    running_cases(&mut add);
    late_cases(&mut add);
    ended_cases(&mut add);
    reported_cases(&mut add);
    cases
}

pub type Add<'a> = &'a mut dyn FnMut(&str, Book, &str);

fn late_cases(add: Add<'_>) {
    use BillingCycle::{Daily, Lifetime};
    let active = || Book::managed(&new()).paid(1_999, START);
    let late = || active().run("2026-12-16");
    add("managed: past due", late(), "2026-12-16");
    add(
        "managed: past due, partly paid",
        late().paid(501, "2026-12-16"),
        "2026-12-16",
    );
    add(
        "managed: past due, suspended",
        active().suspended("2026-11-18").run("2026-12-16"),
        "2026-12-16",
    );
    add(
        "managed: past due, ends",
        late().ending("2026-12-18", "2026-12-16"),
        "2026-12-16",
    );
    let unpaid_lifetime = NewSubscription {
        status: Some(SubscriptionStatus::Active),
        ..new()
    };
    add(
        "managed: past due, lifetime",
        Book::of_plan(&unpaid_lifetime, 30_000, Lifetime),
        "2026-11-16",
    );
    add(
        "managed: past due, disputed",
        active().disputed(1_999, "2026-11-20"),
        "2026-11-21",
    );
    let disputed = active().disputed(1_999, "2026-12-12").run("2026-12-16");
    add(
        "managed: unpaid, disputed, next period due",
        disputed,
        "2026-12-16",
    );
    let from_trial = Book::trial().run("2026-11-30");
    add(
        "managed: past due, after the trial",
        from_trial,
        "2026-11-30",
    );

    let unpaid = || active().run("2026-12-23");
    add("managed: unpaid", unpaid(), "2026-12-23");
    add(
        "managed: unpaid, suspended",
        active().suspended("2026-11-18").run("2026-12-23"),
        "2026-12-23",
    );
    let daily = Book::of_plan(&new(), 100, Daily)
        .paid(100, START)
        .run("2026-11-20");
    add("managed: unpaid, period over", daily, "2026-11-20");
    let disputed = active().disputed(1_999, "2026-11-20").run("2026-11-28");
    add("managed: unpaid, disputed", disputed, "2026-11-28");
    add(
        "managed: unpaid, ends",
        unpaid().ending("2026-12-28", "2026-12-23"),
        "2026-12-23",
    );

    let paused = late().status(SubscriptionStatus::Paused, "2026-12-16");
    add("managed: paused, late", paused, "2026-12-17");
    let disputed = active()
        .status(SubscriptionStatus::Paused, "2026-11-20")
        .disputed(1_999, "2026-11-21");
    add("managed: paused, disputed", disputed, "2026-11-22");
}

fn ended_cases(add: Add<'_>) {
    use BillingCycle::Monthly;
    let active = || Book::managed(&new()).paid(1_999, START);
    let late = "2027-02-01";
    add("managed: expired, not paid", active().run(late), late);
    add(
        "managed: expired, never paid",
        Book::managed(&new()).run(late),
        late,
    );
    let cancelled = active().status(SubscriptionStatus::Cancelled, "2026-11-20");
    add(
        "managed: expired, cancelled",
        cancelled.clone().run(late),
        late,
    );
    add("managed: expired, not stored yet", cancelled, "2026-12-16");
    add(
        "managed: expired, end reached",
        active().ending("2026-12-01", START).run(late),
        late,
    );
    let funded = active()
        .paid(2_500, START)
        .status(SubscriptionStatus::Expired, "2026-11-20");
    add("managed: expired, on request, with credit", funded, late);
    let free = Book::of_plan(&new(), 0, Monthly).status(SubscriptionStatus::Expired, "2026-11-20");
    add("managed: expired, free", free, late);
    let suspended = active().suspended("2026-11-18").run(late);
    add("managed: expired, suspended", suspended, late);
}

fn reported_cases(add: Add<'_>) {
    use BillingCycle::{Lifetime, Monthly, Yearly};
    for (prefix, is_provider) in [("recorded", false), ("provider", true)] {
        let book = |status| Book::reported(status, is_provider);
        for status in SubscriptionStatus::ALL {
            add(&format!("{prefix}: {status}"), book(status), "2026-11-20");
        }
        let name = |text: &str| format!("{prefix}: {text}");
        add(
            &name("on trial, end passed"),
            book(SubscriptionStatus::OnTrial),
            "2026-12-20",
        );
        add(
            &name("active, renewal passed"),
            book(SubscriptionStatus::Active),
            "2026-12-20",
        );
        let suspended = book(SubscriptionStatus::Active).suspended("2026-11-18");
        add(&name("active, suspended"), suspended.clone(), "2026-11-20");
        let paused = suspended
            .clone()
            .status(SubscriptionStatus::Paused, "2026-11-19");
        add(&name("paused, suspended"), paused, "2026-11-20");
        let unpaid = suspended.status(SubscriptionStatus::Unpaid, "2026-11-19");
        add(&name("unpaid, suspended"), unpaid, "2026-11-20");
        let ending = book(SubscriptionStatus::Active).ending("2026-12-01", "2026-11-18");
        add(
            &name("active, ends before the renewal"),
            ending,
            "2026-11-20",
        );
        let ending = book(SubscriptionStatus::Active).ending("2027-06-01", "2026-11-18");
        add(
            &name("active, ends after the renewal"),
            ending,
            "2026-11-20",
        );
        let ending = book(SubscriptionStatus::PastDue).ending("2026-12-01", "2026-11-18");
        add(&name("past due, ends"), ending, "2026-11-20");
        let cancelled = book(SubscriptionStatus::Cancelled);
        add(
            &name("expired, cancelled"),
            cancelled.run("2026-12-20"),
            "2026-12-20",
        );
        let external_id = is_provider.then(|| "sub_42".parse().unwrap());
        let later = NewSubscription {
            starts_at: Some(noon("2026-12-01")),
            external_id,
            ..new()
        };
        let create = |new: &NewSubscription, price, cycle| {
            Book::create(new, &offer(price, cycle), Lifecycle::Recorded)
        };
        add(
            &name("active, starts later"),
            create(&later, 1_999, Monthly),
            "2026-11-20",
        );
        let now = NewSubscription {
            starts_at: None,
            ..later
        };
        add(
            &name("active, free"),
            create(&now, 0, Monthly),
            "2026-11-20",
        );
        add(
            &name("active, lifetime"),
            create(&now, 30_000, Lifetime),
            "2026-11-20",
        );
    }
    // A tenant that has switched to managed billing, with a subscription whose price it does not know.
    let statuses = [
        SubscriptionStatus::Active,
        SubscriptionStatus::PastDue,
        SubscriptionStatus::Paused,
        SubscriptionStatus::Expired,
    ];
    for status in statuses {
        let new = NewSubscription {
            status: Some(status),
            billing_cycle: Some(Yearly),
            ..new()
        };
        let mut book = Book::create(&new, &offer(1_999, Monthly), Lifecycle::Recorded);
        book.sub.lifecycle = MANAGED;
        add(&format!("unknown price: {status}"), book, "2026-11-20");
    }
}
