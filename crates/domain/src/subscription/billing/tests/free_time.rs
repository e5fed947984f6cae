//! Free time that a server gives.

use super::*;
use crate::{FreeTimeError, PaymentStatus};

fn refused(book: &Book, now: Timestamp) -> FreeTimeError {
    match book.sub.update(&to_free_time(noon(400)), now) {
        Err(SubscriptionUpdateError::FreeTimeNotPossible(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn free_time_follows_the_covered_time_and_sets_the_anchor() {
    let mut book = Book::paid(&monthly(PRICE));
    book.clear();
    book.change(&to_free_time(noon(45)), noon(10));
    assert_eq!(book.amounts(), "extension 0");
    assert_eq!(last_period(&book), (noon(31), Some(noon(45))));
    assert_eq!(
        (book.sub.renews_at, book.sub.anchor, book.sub.free_until),
        (Some(noon(45)), noon(45), Some(noon(45)))
    );
    assert_eq!(
        book.update(&to_free_time(noon(45)), noon(11)),
        Ok(false),
        "no change"
    );
    book.pay(PRICE, noon(11));
    book.run(noon(45));
    assert_eq!(last_period(&book), (noon(45), Some(noon(73))));
    assert_eq!(
        book.sub.free_until,
        Some(noon(45)),
        "shown until it is replaced"
    );
}

#[test]
fn free_time_ends_lateness_and_waives_debt() {
    let mut book = Book::paid(&monthly(PRICE));
    book.run(noon(40));
    book.change(&to_free_time(noon(45)), noon(41));
    assert_eq!((book.sub.status, book.sub.late_since), (Active, None));
    assert_eq!(last_period(&book), (noon(41), Some(noon(45))));
    let mut book = Book::paid(&monthly(PRICE));
    book.payment_status(0, PaymentStatus::Disputed, noon(10));
    assert_eq!((book.sub.status, book.sub.credit), (PastDue, -PRICE));
    book.clear();
    book.change(&to_free_time(noon(45)), noon(11));
    assert_eq!(book.amounts(), "waiver 3100, extension 0");
    assert_eq!((book.sub.status, book.sub.credit), (Active, 0));
    book.clear();
    book.payment_status(0, PaymentStatus::Completed, noon(12));
    assert_eq!(
        book.amounts(),
        "payment 3100, waiver -3100",
        "the waiver is taken back"
    );
}

#[test]
fn free_time_moves_the_end_of_a_trial_and_reopens() {
    let offer = Offer {
        trial_days: 14,
        ..monthly(PRICE)
    };
    let mut trial = Book::pending(&offer);
    trial.change(&to_free_time(noon(20)), noon(1));
    assert_eq!(
        (trial.sub.status, trial.sub.renews_at),
        (OnTrial, Some(noon(20)))
    );
    let mut expired = Book::paid(&monthly(PRICE));
    expired.status(Expired, noon(1));
    expired.change(&to_free_time(noon(20)), noon(5));
    assert_eq!((expired.sub.status, expired.sub.ends_at), (Active, None));
    assert_eq!(last_period(&expired), (noon(5), Some(noon(20))));
}

#[test]
fn free_time_that_cannot_be_given_is_refused() {
    let status = |status| {
        let mut book = Book::paid(&monthly(PRICE));
        book.status(status, noon(1));
        refused(&book, noon(2))
    };
    assert_eq!(status(Paused), FreeTimeError::Status(Paused));
    assert_eq!(status(Cancelled), FreeTimeError::Status(Cancelled));
    let pending = Book::pending(&monthly(PRICE));
    assert_eq!(refused(&pending, noon(1)), FreeTimeError::Status(Pending));
    let lifetime = Book::paid(&lifetime(PRICE));
    assert_eq!(refused(&lifetime, noon(1)), FreeTimeError::Lifetime);
    let free = Book::pending(&monthly(0));
    assert_eq!(refused(&free, noon(1)), FreeTimeError::NothingToPay);
    let mut recorded = Book::paid(&monthly(PRICE));
    recorded.sub.lifecycle = crate::Lifecycle::Recorded;
    assert_eq!(refused(&recorded, noon(1)), FreeTimeError::NotManaged);
}

#[test]
fn free_time_cannot_be_earlier_than_covered_or_past_or_null_or_with_other_terms() {
    let mut book = Book::paid(&monthly(PRICE));
    book.change(&to_free_time(noon(40)), noon(1));
    let null = SubscriptionChanges {
        free_until: Some(None),
        ..SubscriptionChanges::default()
    };
    let with_quantity = SubscriptionChanges {
        quantity: to_quantity(2).quantity,
        ..to_free_time(noon(45))
    };
    let with_plan = SubscriptionChanges {
        offer: Some(plan(9, 100, BillingCycle::Monthly)),
        ..to_free_time(noon(45))
    };
    for changes in [
        to_free_time(noon(39)),
        to_free_time(noon(9)),
        null,
        with_quantity,
        with_plan,
    ] {
        assert_eq!(book.invalid(&changes, noon(10)), ["free_until"]);
    }
}

/// The base API's body always has `renews_at`, and often a status.
#[test]
fn renewal_in_an_update_is_ignored() {
    let body = |status, renewal| SubscriptionChanges {
        status: Some(status),
        renews_at: Some(renewal),
        ..SubscriptionChanges::default()
    };
    let mut book = Book::paid(&monthly(PRICE));
    assert_eq!(
        book.update(&body(Active, Some(noon(62))), noon(30)),
        Ok(false)
    );
    assert_eq!(book.update(&body(Active, None), noon(30)), Ok(false));
    book.run(noon(32));
    assert_eq!(
        book.update(&body(Active, Some(noon(62))), noon(32)),
        Ok(false)
    );
    assert_eq!(book.sub.status, PastDue);
    book.run(noon(39));
    assert_eq!(
        book.update(&body(Active, Some(noon(62))), noon(39)),
        Ok(false)
    );
    assert_eq!(book.sub.status, Unpaid);
    book.run(noon(70));
    assert_eq!(
        book.shortage(&body(Active, Some(noon(90))), noon(70)),
        PRICE
    );
}
