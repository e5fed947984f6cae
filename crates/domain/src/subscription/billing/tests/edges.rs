//! Coinciding changes, inconsistent dates and the switch to managed billing.

use super::*;
use crate::{Dunning, Lifecycle};

#[test]
fn entries_of_one_instant_are_ordered() {
    let mut book = Book::pending(&monthly(PRICE));
    for _ in 0..3 {
        book.pay(PRICE, noon(0));
    }
    let times = book.entries.iter().map(|entry| entry.at);
    assert!(times.is_sorted_by(|left, right| left < right));
    let last = book.entries.last().unwrap();
    assert_eq!((book.entries.len(), last.credit_after), (4, 2 * PRICE));
}

/// The change moves behind the call before it, and with that behind the renewal.
#[test]
fn change_that_moves_to_the_renewal_instant_applies_the_renewal_first() {
    let mut book = Book::paid(&monthly(PRICE));
    book.pay(PRICE, just_before(noon(31)));
    book.status(Cancelled, just_before(noon(31)));
    assert_eq!((book.sub.status, book.sub.credit), (Cancelled, 0));
    assert_eq!(book.sub.ends_at, Some(noon(59)));
}

#[test]
fn renews_at_on_create_must_fit_the_cycle_and_the_start() {
    let dated = |starts_at, renews_at| NewSubscription {
        starts_at: Some(starts_at),
        renews_at: Some(renews_at),
        ..new()
    };
    assert_eq!(
        rejected_fields(&dated(noon(10), noon(5)), &monthly(PRICE)),
        ["renews_at"]
    );
    assert_eq!(
        rejected_fields(&dated(noon(0), noon(5)), &lifetime(PRICE)),
        ["renews_at"]
    );
    let empty_trial = NewSubscription {
        status: Some(OnTrial),
        ..dated(noon(5), noon(5))
    };
    assert_eq!(
        rejected_fields(&empty_trial, &monthly(PRICE)),
        ["renews_at"]
    );
}

/// A recorded trial of a lifetime has no `renews_at`.
#[test]
fn switch_makes_a_lifetime_due_after_its_trial() {
    let offer = Offer {
        trial_days: 14,
        ..lifetime(50_000)
    };
    let mut recorded = context(&offer, noon(0));
    recorded.lifecycle = Lifecycle::Recorded;
    let mut book = Book::create(&new(), &recorded);
    assert_eq!((book.sub.status, book.sub.renews_at), (OnTrial, None));
    book.sub.lifecycle = Lifecycle::Managed(Dunning {
        since: noon(5),
        ..DUNNING
    });
    book.run(noon(5));
    assert_eq!(last_period(&book), (noon(5), Some(noon(14))));
    assert_eq!(book.run(noon(14)).status, PastDue);
}
