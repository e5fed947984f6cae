//! Switches between recorded and managed mode.

use super::*;
use crate::{Dunning, Lifecycle, PaymentStatus};

fn external_id(id: Option<&str>) -> SubscriptionChanges {
    SubscriptionChanges {
        external_id: Some(id.map(|id| id.parse().unwrap())),
        ..SubscriptionChanges::default()
    }
}

/// Leaves managed mode at one instant and enters it at another: by the tenant, and by an external id.
fn switched(book: &Book, leave: Timestamp, enter: Timestamp) -> [Book; 2] {
    let mut by_tenant = book.clone();
    by_tenant.run(leave);
    by_tenant.sub.lifecycle = Lifecycle::Recorded;
    by_tenant.run(enter);
    by_tenant.sub.lifecycle = Lifecycle::Managed(Dunning {
        since: enter,
        ..DUNNING
    });
    by_tenant.run(enter);
    let mut by_id = book.clone();
    by_id.change(&external_id(Some("order-17")), leave);
    by_id.change(&external_id(None), enter);
    [by_tenant, by_id]
}

fn without_times(sub: &Subscription) -> Subscription {
    Subscription {
        managed_since: None,
        lifecycle: Lifecycle::Recorded,
        updated_at: noon(0),
        ..sub.clone()
    }
}

#[test]
fn switch_there_and_back_changes_nothing() {
    let mut active = Book::paid(&monthly(PRICE));
    active.pay(500, noon(1));
    let mut changed = active.clone();
    changed.pay(PRICE, noon(1));
    changed.change(&to_quantity(2), noon(2));
    let mut with_price = active.clone();
    let price = SubscriptionChanges {
        price: Some(Some("5.00".parse().unwrap())),
        ..SubscriptionChanges::default()
    };
    with_price.change(&price, noon(2));
    let mut paused = active.clone();
    paused.status(Paused, noon(3));
    let mut cancelled = active.clone();
    cancelled.status(Cancelled, noon(3));
    let mut free = active.clone();
    free.change(&to_free_time(noon(45)), noon(3));
    let trial = Book::pending(&Offer {
        trial_days: 14,
        ..monthly(PRICE)
    });
    let pending = Book::pending(&monthly(PRICE));
    let dated = NewSubscription {
        renews_at: Some(noon(50)),
        ..new()
    };
    let dated = Book::create(&dated, &context(&monthly(PRICE), noon(0)));
    let later = NewSubscription {
        status: Some(Active),
        starts_at: Some(noon(30)),
        ..new()
    };
    let later = Book::create(&later, &context(&monthly(PRICE), noon(0)));
    let mut disputed = active.clone();
    disputed.payment_status(0, PaymentStatus::Disputed, noon(3));
    let mut in_debt = disputed.clone();
    in_debt.status(Paused, noon(4));
    let lifetime = Book::paid(&lifetime(PRICE));
    let late = active.clone();
    for (book, days) in [
        (active, [5, 6]),
        (changed, [5, 30]),
        (with_price, [5, 6]),
        (paused.clone(), [5, 6]),
        (paused, [50, 60]),
        (cancelled, [5, 6]),
        (free.clone(), [5, 6]),
        (free, [35, 40]),
        (trial, [5, 6]),
        (pending, [5, 6]),
        (dated, [5, 6]),
        (later, [5, 6]),
        (disputed.clone(), [5, 6]),
        (disputed, [12, 13]),
        (in_debt, [5, 6]),
        (lifetime, [5, 6]),
        (late.clone(), [33, 34]),
        (late, [40, 41]),
    ] {
        let [leave, enter] = days.map(noon);
        for switched in switched(&book, leave, enter) {
            let mut stayed = book.clone();
            stayed.run(enter);
            assert_eq!(
                without_times(&switched.sub),
                without_times(&stayed.sub),
                "{days:?}"
            );
            assert_eq!(switched.amounts(), stayed.amounts());
        }
    }
}

#[test]
fn paid_value_survives_a_switch() {
    let book = Book::paid(&monthly(PRICE));
    for mut book in switched(&book, noon(9), noon(9) + TICK) {
        book.clear();
        book.change(&to_plan(plan(9, 1_000, BillingCycle::Monthly)), noon(10));
        assert_eq!(book.amounts(), "change 1422");
    }
}

#[test]
fn time_that_a_client_adds_while_recorded_is_free_time_after_the_period() {
    let mut book = Book::paid(&monthly(PRICE));
    book.change(&external_id(Some("order-17")), noon(5));
    let renewal = SubscriptionChanges {
        renews_at: Some(Some(noon(41))),
        ..SubscriptionChanges::default()
    };
    book.change(&renewal, noon(6));
    book.clear();
    book.change(&external_id(None), noon(7));
    assert_eq!(last_period(&book), (noon(31), Some(noon(41))));
    book.clear();
    book.change(&to_plan(plan(9, 1_000, BillingCycle::Monthly)), noon(10));
    assert_eq!(book.amounts(), "change 1422");
}

#[test]
fn other_terms_while_recorded_end_what_was_paid_for() {
    let mut book = Book::paid(&monthly(PRICE));
    book.change(&external_id(Some("order-17")), noon(5));
    book.change(&to_plan(plan(9, 6_200, BillingCycle::Monthly)), noon(6));
    book.clear();
    book.change(&external_id(None), noon(7));
    assert_eq!(last_period(&book).1, Some(noon(31)));
    book.clear();
    book.change(&to_plan(plan(8, 1_000, BillingCycle::Monthly)), noon(10));
    assert_eq!(book.amounts(), "change 0", "it was covered without charge");
}

/// A refund or a dispute of a payment in the ledger is posted at once, also while the ledger rests.
#[test]
fn money_of_a_posted_payment_moves_also_while_recorded() {
    let mut book = Book::paid(&monthly(PRICE));
    book.change(&external_id(Some("order-17")), noon(5));
    book.clear();
    book.refund(0, 1_000, noon(6));
    assert_eq!(book.amounts(), "refund -1000, waiver 1000");
    book.payment_status(0, PaymentStatus::Disputed, noon(7));
    assert_eq!((book.sub.status, book.sub.credit), (Active, -2_100));
    let own = book.pay(9_900, noon(8));
    assert_eq!(
        (book.sub.credit, book.payments[own].ledger_amount),
        (-2_100, None)
    );
    book.change(&external_id(None), noon(9));
    assert_eq!(
        (book.sub.status, book.sub.late_since),
        (PastDue, Some(noon(9)))
    );
}
