//! Dates that a client sets: starts, trials and the end of the first period.

use super::*;
use crate::{CreateContext, Dunning, Lifecycle, Money, PaymentStatus};

fn created(new: &NewSubscription, offer: &Offer) -> Book {
    Book::create(new, &context(offer, noon(0)))
}

/// A subscription that is created as `status` on day 0 and starts on `day`.
fn starting(status: SubscriptionStatus, day: i64) -> Book {
    let new = NewSubscription {
        status: Some(status),
        starts_at: Some(noon(day)),
        ..new()
    };
    created(&new, &with_trial(PRICE, 14))
}

fn with_trial(price: i64, trial_days: u16) -> Offer {
    Offer {
        trial_days,
        ..monthly(price)
    }
}

fn to_cycle(billing_cycle: BillingCycle, price: i64) -> SubscriptionChanges {
    let price = Money::from_minor_units(price, usd()).unwrap().to_decimal();
    SubscriptionChanges {
        billing_cycle: Some(billing_cycle),
        price: Some(Some(price)),
        ..SubscriptionChanges::default()
    }
}

fn to_start(start: Timestamp) -> SubscriptionChanges {
    SubscriptionChanges {
        starts_at: Some(start),
        ..SubscriptionChanges::default()
    }
}

#[test]
fn dates_that_contradict_the_status_on_create_are_rejected() {
    let paused = NewSubscription {
        status: Some(Paused),
        renews_at: Some(noon(9)),
        ..new()
    };
    assert_eq!(rejected_fields(&paused, &monthly(PRICE)), ["renews_at"]);
    let expired = NewSubscription {
        status: Some(Expired),
        ends_at: Some(noon(9)),
        ..new()
    };
    assert_eq!(rejected_fields(&expired, &monthly(PRICE)), ["ends_at"]);
}

#[test]
fn payment_for_a_subscription_created_after_its_end_stays_credit() {
    for status in [Active, Cancelled] {
        let ended = NewSubscription {
            status: Some(status),
            ends_at: Some(noon(-2)),
            ..new()
        };
        let mut book = created(&ended, &monthly(PRICE));
        assert_eq!(book.sub.ends_at, Some(noon(-2)));
        book.pay(PRICE, noon(1));
        assert_eq!((book.sub.status, book.sub.credit), (Expired, PRICE));
    }
}

#[test]
fn subscription_reopened_before_its_start_starts_now() {
    let mut book = starting(Active, 10);
    book.status(Cancelled, noon(1));
    book.pay(PRICE, noon(2));
    book.status(Active, noon(3));
    assert_eq!(book.sub.starts_at, noon(3));
    assert!(book.sub.has_access(noon(3)));
}

#[test]
fn resumed_trial_keeps_the_end_that_was_set() {
    let mut book = starting(OnTrial, 0);
    let end = SubscriptionChanges {
        ends_at: Some(Some(noon(40))),
        ..to_status(Paused)
    };
    book.change(&end, noon(1));
    book.status(OnTrial, noon(2));
    assert_eq!(book.sub.ends_at, Some(noon(40)));
}

#[test]
fn trial_that_ends_before_its_start_is_followed_by_a_full_period() {
    let mut book = starting(OnTrial, 10);
    book.status(Active, noon(5));
    book.pay(PRICE, noon(6));
    book.run(noon(10));
    assert_eq!(last_period(&book), (noon(10), Some(noon(41))));
}

#[test]
fn longer_cycle_of_an_unpaid_subscription_restores_its_grace() {
    let active = NewSubscription {
        status: Some(Active),
        ..new()
    };
    let mut book = created(&active, &plan(9, 100, BillingCycle::Daily));
    assert_eq!(book.run(noon(2)).status, Unpaid);
    book.change(&to_cycle(BillingCycle::Monthly, PRICE), noon(2));
    assert_eq!(book.sub.status, PastDue);
    assert_eq!(book.run(noon(7)).status, Unpaid);
}

#[test]
fn dispute_after_the_time_lapsed_leaves_only_the_resumed_period_open() {
    let mut book = Book::paid(&monthly(PRICE));
    book.status(Paused, noon(5));
    book.payment_status(0, PaymentStatus::Disputed, noon(40));
    book.status(Active, noon(50));
    assert_eq!(
        (book.sub.status, book.sub.renews_at),
        (Unpaid, Some(noon(50)))
    );
    book.pay(2 * PRICE, noon(51));
    assert_eq!(last_period(&book).0, noon(50));
    assert_eq!((book.sub.status, book.sub.credit), (Active, 0));
}

#[test]
fn change_before_the_start_charges_nothing_before_the_start() {
    let mut book = starting(Pending, 10);
    book.status(Active, noon(1));
    book.pay(9_900, noon(2));
    book.change(&to_plan(weekly(700)), noon(3));
    assert_eq!(
        (book.sub.credit, book.sub.renews_at),
        (9_900, Some(noon(10)))
    );
    book.run(noon(10));
    assert_eq!(last_period(&book), (noon(10), Some(noon(17))));
}

#[test]
fn start_moved_past_the_set_end_of_the_first_period_starts_a_full_period() {
    let dated = NewSubscription {
        renews_at: Some(noon(14)),
        ..new()
    };
    let mut book = created(&dated, &monthly(PRICE));
    book.change(&to_start(noon(20)), noon(1));
    book.status(Active, noon(2));
    book.pay(PRICE, noon(3));
    book.run(noon(20));
    assert_eq!(last_period(&book), (noon(20), Some(noon(51))));
}

#[test]
fn other_cycle_of_a_pending_subscription_drops_the_set_end() {
    let dated = NewSubscription {
        renews_at: Some(noon(14)),
        ..new()
    };
    let mut book = created(&dated, &monthly(PRICE));
    book.change(&to_cycle(BillingCycle::Weekly, 700), noon(1));
    assert_eq!(book.sub.renews_at, None);
    book.pay(700, noon(2));
    assert_eq!(last_period(&book), (noon(2), Some(noon(9))));
}

#[test]
fn cycle_changed_before_the_switch_gives_full_periods_after_it() {
    let offer = monthly(PRICE);
    let recorded = CreateContext {
        lifecycle: Lifecycle::Recorded,
        ..context(&offer, noon(0))
    };
    let mut book = Book::create(&new(), &recorded);
    book.change(&to_cycle(BillingCycle::Weekly, 700), noon(1));
    book.sub.lifecycle = Lifecycle::Managed(Dunning {
        since: noon(2),
        ..DUNNING
    });
    book.pay(700, noon(3));
    book.run(noon(31));
    assert_eq!(last_period(&book), (noon(31), Some(noon(38))));
}
