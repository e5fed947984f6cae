//! Periods, lateness and what is due before a change.

use super::*;

#[test]
fn period_is_charged_when_it_starts_and_never_before() {
    let mut book = Book::paid(&monthly(PRICE));
    assert_eq!(book.amounts(), "payment 3100, period -3100");
    assert_eq!(
        (book.sub.starts_at, book.sub.renews_at),
        (noon(0), Some(noon(31)))
    );
    book.pay(2 * PRICE, noon(10));
    book.clear();
    book.run(just_before(noon(31)));
    assert_eq!((book.amounts().as_str(), book.sub.credit), ("", 6_200));
    book.run(noon(31));
    assert_eq!(
        (book.amounts().as_str(), book.sub.credit),
        ("period -3100", 3_100)
    );
    assert_eq!(last_period(&book), (noon(31), Some(noon(59))));
    assert_eq!(
        (book.sub.status, book.sub.renews_at),
        (Active, Some(noon(59)))
    );
    book.run(noon(95));
    assert_eq!(
        (book.amounts().as_str(), book.sub.credit),
        ("period -3100, period -3100", 0)
    );
    assert_eq!(
        (book.sub.status, book.sub.renews_at),
        (PastDue, Some(noon(90)))
    );
    assert_eq!(book.sub.late_since, Some(noon(90)));
}

#[test]
fn period_with_too_little_credit_is_open() {
    let mut book = Book::paid(&monthly(PRICE));
    book.pay(PRICE - 1, noon(10));
    book.run(noon(31));
    assert_eq!((book.sub.status, book.sub.credit), (PastDue, 3_099));
    book.pay(1, noon(32));
    assert_eq!(
        (book.sub.status, book.sub.credit, book.sub.renews_at),
        (Active, 0, Some(noon(59)))
    );
}

#[test]
fn renewal_counts_from_the_anchor_at_month_end() {
    let offer = monthly(PRICE);
    let mut book = Book::create(&new(), &context(&offer, noon(29)));
    book.pay(3 * PRICE, noon(30));
    assert_eq!(book.sub.renews_at, Some(noon(58)), "February 28");
    book.run(noon(58));
    assert_eq!(book.sub.renews_at, Some(noon(89)), "March 31");
    book.run(noon(89));
    assert_eq!(book.sub.renews_at, Some(noon(119)), "April 30");
}

#[test]
fn free_period_renews_without_entries() {
    let mut book = Book::pending(&monthly(0));
    assert_eq!(
        (book.sub.status, book.sub.renews_at),
        (Active, Some(noon(31)))
    );
    book.run(noon(59));
    assert_eq!(
        (book.sub.status, book.sub.renews_at),
        (Active, Some(noon(90)))
    );
    assert!(book.entries.is_empty() && book.sub.has_access(noon(59)));
}

#[test]
fn lifetime_is_one_period_without_end() {
    let offer = lifetime(50_000);
    let active = NewSubscription {
        status: Some(Active),
        ..new()
    };
    let mut book = Book::create(&active, &context(&offer, noon(0)));
    assert_eq!(
        (book.sub.status, book.sub.renews_at),
        (PastDue, Some(noon(0))),
        "its due date"
    );
    book.run(noon(6));
    assert!(book.sub.has_access(noon(6)));
    book.run(noon(7));
    assert_eq!(book.sub.status, Unpaid);
    book.pay(50_000, noon(8));
    assert_eq!((book.sub.status, book.sub.renews_at), (Active, None));
    assert_eq!(last_period(&book), (noon(0), None));
    book.pay(50_000, noon(9));
    assert_eq!(book.run(noon(10_000)).credit, 50_000, "it is charged once");
    assert!(book.sub.has_access(noon(10_000)));
}

#[test]
fn late_subscription_loses_access_after_unpaid_after_days_and_expires() {
    let mut book = Book::paid(&monthly(PRICE));
    book.run(just_before(noon(38)));
    assert_eq!(book.sub.status, PastDue);
    assert!(book.sub.has_access(just_before(noon(38))));
    book.run(noon(38));
    assert_eq!(book.sub.status, Unpaid);
    assert!(!book.sub.has_access(noon(38)));
    assert_eq!(book.run(just_before(noon(61))).status, Unpaid);
    let expired = book.run(noon(61));
    assert_eq!((expired.status, expired.ends_at), (Expired, Some(noon(61))));
}

#[test]
fn grace_ends_with_the_open_period() {
    let mut book = Book::paid(&plan(4, 100, BillingCycle::Daily));
    book.run(just_before(noon(2)));
    assert!(book.sub.has_access(just_before(noon(2))));
    assert_eq!(book.run(noon(2)).status, Unpaid);
    assert_eq!(
        book.run(noon(31)).status,
        Expired,
        "30 days after the due date"
    );
}

#[test]
fn late_payment_pays_the_open_period_from_its_own_start() {
    for day in [32, 40, 58] {
        let mut book = Book::paid(&monthly(PRICE));
        book.pay(PRICE, noon(day));
        assert_eq!(
            last_period(&book),
            (noon(31), Some(noon(59))),
            "paid on day {day}"
        );
        assert_eq!((book.sub.status, book.sub.late_since), (Active, None));
        assert_eq!(
            (book.sub.renews_at, book.sub.anchor),
            (Some(noon(59)), noon(0))
        );
        assert_eq!(book.payments[1].period, Some((noon(31), Some(noon(59)))));
    }
}

#[test]
fn late_payment_after_the_open_period_starts_the_next_one_at_that_instant() {
    let mut book = Book::paid(&weekly(700));
    book.clear();
    book.pay(700, noon(20));
    assert_eq!(book.amounts(), "payment 700, period -700");
    assert_eq!(last_period(&book), (noon(7), Some(noon(14))));
    assert_eq!(
        (book.sub.status, book.sub.late_since),
        (PastDue, Some(noon(20)))
    );
    assert_eq!(
        (book.sub.renews_at, book.sub.anchor),
        (Some(noon(20)), noon(20))
    );
    let mut book = Book::paid(&weekly(700));
    book.clear();
    book.pay(1_400, noon(20));
    assert_eq!(book.amounts(), "payment 1400, period -700, period -700");
    assert_eq!(last_period(&book), (noon(20), Some(noon(27))));
    assert_eq!(
        (book.sub.status, book.sub.renews_at),
        (Active, Some(noon(27)))
    );
}

#[test]
fn lateness_continues_while_paused() {
    let mut book = Book::paid(&monthly(PRICE));
    book.status(Paused, noon(33));
    assert_eq!(book.sub.late_since, Some(noon(31)));
    let mut resumed = book.clone();
    assert_eq!(resumed.status(Active, noon(36)).status, PastDue);
    let mut resumed = book.clone();
    resumed.status(Active, noon(50));
    assert_eq!(
        (resumed.sub.status, resumed.sub.late_since),
        (Unpaid, Some(noon(31)))
    );
    assert_eq!(book.run(noon(61)).status, Expired);
}

#[test]
fn update_first_applies_what_is_due_at_its_own_instant() {
    let mut book = Book::paid(&monthly(PRICE));
    book.pay(PRICE, noon(10));
    let applied = book
        .sub
        .update(&to_status(Paused), noon(40))
        .unwrap()
        .unwrap();
    assert_eq!(applied.due.len(), 1);
    assert_eq!(
        (applied.due[0].at, applied.due[0].after.credit),
        (noon(31), 0)
    );
    assert_eq!(
        (applied.after.status, applied.after.renews_at),
        (Paused, Some(noon(59)))
    );
    // The renewal is stored late, and changes nothing for the period.
    assert!(applied.own_entries.is_empty());
}

#[test]
fn payment_and_preview_first_apply_what_is_due() {
    let mut book = Book::paid(&monthly(PRICE));
    let preview = book.sub.preview(&to_quantity(2), noon(35)).unwrap();
    assert_eq!(
        preview.amount_due,
        PRICE + 2_658,
        "24 of 28 days of the open period at the new amount"
    );
    book.clear();
    book.pay(PRICE, noon(35));
    assert_eq!(book.amounts(), "payment 3100, period -3100");
    assert_eq!(last_period(&book), (noon(31), Some(noon(59))));
}

#[test]
fn field_equal_to_what_is_shown_changes_nothing_after_a_missed_renewal() {
    let mut book = Book::paid(&monthly(PRICE));
    let shown = SubscriptionChanges {
        status: Some(Active),
        renews_at: Some(book.sub.renews_at),
        ends_at: Some(None),
        is_active: Some(true),
        ..to_quantity(1)
    };
    assert_eq!(
        book.update(&shown, noon(32)),
        Ok(false),
        "the stored status is still active"
    );
    book.run(noon(32));
    let status = to_status(Active);
    assert_eq!(
        book.shortage(&status, noon(33)),
        PRICE,
        "past due is shown by now"
    );
}
