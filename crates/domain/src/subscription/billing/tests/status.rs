//! Pause, cancel, undo and reopen.

use super::*;

fn cancelled_until(end: Timestamp) -> SubscriptionChanges {
    SubscriptionChanges {
        ends_at: Some(Some(end)),
        ..to_status(Cancelled)
    }
}

#[test]
fn paused_subscription_resumes_as_it_was_before_its_renewal() {
    let mut book = Book::paid(&monthly(PRICE));
    book.clear();
    book.status(Paused, noon(5));
    assert!(!book.sub.has_access(noon(5)));
    book.status(Active, just_before(noon(31)));
    assert_eq!(
        (book.sub.status, book.sub.renews_at),
        (Active, Some(noon(31)))
    );
    assert!(book.entries.is_empty());
}

#[test]
fn paused_subscription_resumes_with_a_new_period_after_its_renewal() {
    let mut book = Book::paid(&monthly(PRICE));
    book.status(Paused, noon(5));
    let mut unfunded = book.clone();
    book.pay(PRICE, noon(6));
    book.clear();
    book.run(noon(39));
    assert_eq!(
        (book.sub.status, book.sub.credit),
        (Paused, PRICE),
        "no charge, credit stays"
    );
    book.status(Active, noon(40));
    assert_eq!(book.amounts(), "period -3100");
    assert_eq!(
        last_period(&book),
        (noon(40), Some(noon(68))),
        "a new anchor"
    );
    unfunded.status(Active, noon(40));
    assert_eq!(
        (unfunded.sub.status, unfunded.sub.late_since),
        (PastDue, Some(noon(40)))
    );
    assert_eq!(unfunded.sub.renews_at, Some(noon(40)));
}

#[test]
fn cancelled_subscription_ends_with_the_time_that_credit_pays() {
    let mut book = Book::paid(&monthly(PRICE));
    book.pay(PRICE + 500, noon(1));
    book.clear();
    book.status(Cancelled, noon(5));
    assert_eq!(
        (book.sub.status, book.sub.ends_at),
        (Cancelled, Some(noon(59)))
    );
    book.run(noon(31));
    assert_eq!(
        (book.amounts().as_str(), book.sub.credit),
        ("period -3100", 500)
    );
    assert!(book.sub.has_access(just_before(noon(59))));
    book.run(noon(59));
    assert_eq!((book.sub.status, book.sub.credit), (Expired, 500));
}

#[test]
fn cancelled_subscription_without_credit_expires_at_its_renewal_without_grace() {
    for changes in [to_status(Cancelled), cancelled_until(noon(3_650))] {
        let mut book = Book::paid(&monthly(PRICE));
        book.change(&changes, noon(5));
        assert!(
            book.run(just_before(noon(31)))
                .has_access(just_before(noon(31)))
        );
        let expired = book.run(noon(31));
        assert_eq!((expired.status, expired.ends_at), (Expired, Some(noon(31))));
    }
}

#[test]
fn period_cut_short_by_ends_at_costs_the_full_amount() {
    let mut book = Book::paid(&monthly(PRICE));
    book.pay(PRICE, noon(1));
    book.change(&cancelled_until(noon(40)), noon(5));
    assert_eq!(book.run(noon(31)).credit, 0);
    assert_eq!(book.run(noon(40)).status, Expired);
}

#[test]
fn cancelling_keeps_an_earlier_end() {
    let mut book = Book::paid(&monthly(PRICE));
    let end = SubscriptionChanges {
        ends_at: Some(Some(noon(20))),
        ..SubscriptionChanges::default()
    };
    book.change(&end, noon(1));
    book.status(Cancelled, noon(5));
    assert_eq!(book.sub.ends_at, Some(noon(20)));
}

#[test]
fn cancelling_late_or_not_started_subscription_ends_it_now() {
    let mut late = Book::paid(&monthly(PRICE));
    late.status(Cancelled, noon(33));
    assert_eq!(
        (late.sub.status, late.sub.ends_at),
        (Expired, Some(noon(33)))
    );
    let mut pending = Book::pending(&monthly(PRICE));
    pending.status(Cancelled, noon(3));
    assert_eq!(
        (pending.sub.status, pending.sub.ends_at),
        (Expired, Some(noon(3)))
    );
}

#[test]
fn cancelling_a_managed_lifetime_is_rejected() {
    let book = Book::paid(&lifetime(50_000));
    assert_eq!(
        book.sub.update(&to_status(Cancelled), noon(5)),
        Err(SubscriptionUpdateError::LifetimeCancelled)
    );
}

#[test]
fn undo_only_clears_ends_at() {
    let mut book = Book::paid(&monthly(PRICE));
    let before = book.sub.clone();
    book.status(Cancelled, noon(5));
    book.status(Active, noon(10));
    let after = Subscription {
        updated_at: before.updated_at,
        ..book.sub.clone()
    };
    assert_eq!(after, before);
}

#[test]
fn late_subscription_needs_money_to_become_active() {
    let mut book = Book::paid(&monthly(PRICE));
    book.pay(100, noon(2));
    for (day, status) in [(33, PastDue), (40, Unpaid)] {
        book.run(noon(day));
        assert_eq!(book.sub.status, status);
        assert_eq!(book.shortage(&to_status(Active), noon(day)), 3_000);
        let summary = book.sub.billing_summary(noon(day)).unwrap();
        assert_eq!(summary.amount_due, 3_000);
    }
    book.pay(3_000, noon(41));
    assert_eq!(book.sub.status, Active);
}

#[test]
fn late_subscription_after_its_open_period_owes_two_periods() {
    let mut book = Book::paid(&weekly(700));
    book.run(noon(20));
    assert_eq!(book.shortage(&to_status(Active), noon(20)), 1_400);
    book.pay(1_400, noon(20));
    assert_eq!(
        (book.sub.status, book.sub.renews_at),
        (Active, Some(noon(27)))
    );
}

#[test]
fn expired_subscription_reopens_with_credit() {
    let mut book = Book::paid(&monthly(PRICE));
    book.status(Expired, noon(5));
    assert_eq!(book.shortage(&to_status(Active), noon(40)), PRICE);
    book.pay(PRICE, noon(39));
    assert_eq!(
        (book.sub.status, book.sub.credit),
        (Expired, PRICE),
        "it stays credit"
    );
    book.clear();
    book.status(Active, noon(40));
    assert_eq!(
        (book.sub.status, book.amounts().as_str()),
        (Active, "period -3100")
    );
    assert_eq!(last_period(&book), (noon(40), Some(noon(68))));
}

#[test]
fn unfunded_change_changes_nothing() {
    let mut book = Book::paid(&monthly(PRICE));
    let before = book.sub.clone();
    assert!(book.update(&to_quantity(5), noon(3)).is_err());
    assert_eq!(book.sub, before);
}
