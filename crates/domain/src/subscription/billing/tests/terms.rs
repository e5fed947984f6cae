//! Changes of plan, quantity, price and billing cycle.

use super::*;
use crate::{Money, Rule};

fn dearer(price: i64) -> Offer {
    plan(9, price, BillingCycle::Monthly)
}

fn price(text: &str) -> SubscriptionChanges {
    SubscriptionChanges {
        price: Some(Some(text.parse().unwrap())),
        ..SubscriptionChanges::default()
    }
}

#[test]
fn plan_change_of_an_uncovered_subscription_sets_new_terms_only() {
    let pending = Book::pending(&monthly(PRICE));
    let mut expired = Book::paid(&monthly(PRICE));
    expired.status(Expired, noon(1));
    let mut paused = Book::paid(&monthly(PRICE));
    paused.status(Paused, noon(1));
    for mut book in [pending, expired, paused] {
        book.run(noon(29));
        let day = if book.sub.status == Paused { 40 } else { 29 };
        let before = book.sub.status;
        book.clear();
        book.change(&to_plan(dearer(9_900)), noon(day));
        assert_eq!((book.sub.status, book.amounts().as_str()), (before, ""));
        assert_eq!(book.sub.amount(), Some(9_900));
    }
}

#[test]
fn plan_change_during_a_trial_keeps_its_end() {
    let offer = Offer {
        trial_days: 14,
        ..monthly(PRICE)
    };
    let mut book = Book::pending(&offer);
    book.clear();
    book.change(&to_plan(yearly(36_500)), noon(5));
    assert_eq!(
        (book.sub.status, book.sub.renews_at),
        (OnTrial, Some(noon(14)))
    );
    assert!(book.entries.is_empty());
    book.pay(36_500, noon(6));
    book.run(noon(14));
    assert_eq!(last_period(&book), (noon(14), Some(noon(379))));
}

#[test]
fn late_change_needs_credit_for_the_open_period_at_the_new_amount() {
    let mut book = Book::paid(&monthly(PRICE));
    book.run(noon(33));
    assert_eq!(book.shortage(&to_quantity(2), noon(33)), 2 * PRICE);
    assert_eq!(book.shortage(&to_plan(dearer(1_000)), noon(33)), 1_000);
    book.pay(1_000, noon(33));
    book.clear();
    book.change(&to_plan(dearer(1_000)), noon(34));
    assert_eq!(
        (book.sub.status, book.amounts().as_str()),
        (Active, "period -1000")
    );
    assert_eq!(last_period(&book), (noon(31), Some(noon(59))));
    let mut free = Book::paid(&monthly(PRICE));
    free.change(&to_plan(dearer(0)), noon(33));
    assert_eq!((free.sub.status, free.sub.late_since), (Active, None));
    assert_eq!(free.sub.renews_at, Some(noon(59)));
}

#[test]
fn dearer_plan_charges_the_difference_for_started_days_rounded_up() {
    let mut book = Book::paid(&monthly(PRICE));
    assert_eq!(
        book.shortage(&to_plan(dearer(6_200)), noon(10)),
        2_100,
        "21 of 31 days"
    );
    book.pay(2_100, just_before(noon(10)));
    book.clear();
    book.change(&to_plan(dearer(6_200)), noon(10));
    assert_eq!(
        (book.amounts().as_str(), book.sub.credit),
        ("change -2100", 0)
    );
    assert_eq!(
        (book.sub.renews_at, book.sub.anchor),
        (Some(noon(31)), noon(0))
    );
    let period = book.sub.period.unwrap();
    assert_eq!((period.amount, period.cost), (6_200, 6_200));
    // 21 days and one hour: 22 started days.
    let book = Book::paid(&monthly(PRICE));
    let earlier = noon(10) - SignedDuration::from_hours(1);
    let applied = |at| {
        book.sub
            .preview(&to_plan(dearer(3_200)), at)
            .unwrap()
            .entries
    };
    assert_eq!(
        applied(noon(10)).last().unwrap().amount,
        -68,
        "100 × 21 ÷ 31"
    );
    assert_eq!(
        applied(earlier).last().unwrap().amount,
        -71,
        "100 × 22 ÷ 31"
    );
}

#[test]
fn cheaper_plan_returns_the_difference_for_whole_days_rounded_down() {
    let book = Book::paid(&monthly(PRICE));
    let mut at_noon = book.clone();
    at_noon.clear();
    at_noon.change(&to_plan(dearer(1_000)), noon(10));
    assert_eq!(at_noon.amounts(), "change 1422", "2,100 × 21 ÷ 31");
    let period = at_noon.sub.period.unwrap();
    assert_eq!((period.amount, period.cost), (1_000, 1_000));
    assert_eq!(at_noon.sub.renews_at, Some(noon(31)));
    let mut later = book.clone();
    later.clear();
    later.change(&to_plan(dearer(1_000)), noon(10) + TICK);
    assert_eq!(later.amounts(), "change 1354", "2,100 × 20 ÷ 31");
}

#[test]
fn cheaper_plan_in_free_time_returns_nothing() {
    let mut book = Book::paid(&monthly(PRICE));
    book.run(noon(33));
    book.change(&to_renewal(noon(60)), noon(33));
    book.clear();
    book.change(&to_plan(dearer(100)), noon(40));
    assert_eq!(book.amounts(), "change 0");
    let mut cost = Book::paid(&monthly(PRICE));
    cost.change(&to_plan(dearer(1_000)), noon(10));
    cost.clear();
    cost.change(&to_plan(monthly(0)), noon(10));
    assert_eq!(
        cost.amounts(),
        "change 645",
        "1,000 × 20 ÷ 31 of the cost that is left"
    );
}

#[test]
fn other_cycle_returns_unused_days_and_starts_a_full_period_now() {
    let mut book = Book::paid(&monthly(PRICE));
    assert_eq!(
        book.shortage(&to_plan(yearly(36_500)), noon(10)),
        36_500 - 2_000,
        "also within a day"
    );
    book.pay(34_400, just_before(noon(10)));
    book.clear();
    book.change(&to_plan(yearly(36_500)), noon(10));
    assert_eq!(
        (book.amounts().as_str(), book.sub.credit),
        ("change 2100, period -36500", 0)
    );
    assert_eq!(last_period(&book), (noon(10), Some(noon(375))));
    assert_eq!(book.sub.anchor, noon(10));
}

#[test]
fn same_cycle_with_more_than_one_cycle_left_starts_a_full_period_now() {
    let mut book = Book::paid(&monthly(PRICE));
    book.change(&to_renewal(noon(70)), noon(9));
    book.pay(6_200, noon(9));
    book.clear();
    book.change(&to_quantity(2), noon(10));
    assert_eq!(book.amounts(), "change 2100, period -6200");
    assert_eq!(
        last_period(&book),
        (noon(10), Some(noon(41))),
        "the free time is given up"
    );
}

#[test]
fn lifetime_and_free_time_return_nothing() {
    let mut paid = Book::paid(&lifetime(50_000));
    assert_eq!(paid.shortage(&to_plan(monthly(PRICE)), noon(1)), PRICE);
    paid.pay(PRICE, noon(1));
    paid.clear();
    paid.change(&to_plan(monthly(PRICE)), noon(1));
    assert_eq!(paid.amounts(), "change 0, period -3100");
    let mut free = Book::paid(&monthly(PRICE));
    free.run(noon(33));
    free.change(&to_renewal(noon(60)), noon(33));
    assert_eq!(free.shortage(&to_plan(yearly(36_500)), noon(34)), 36_500);
}

#[test]
fn plan_in_another_currency_is_rejected() {
    let book = Book::paid(&monthly(PRICE));
    let euros = Offer {
        price: Money::from_minor_units(PRICE, "EUR".parse().unwrap()).unwrap(),
        ..dearer(PRICE)
    };
    match book.sub.update(&to_plan(euros), noon(3)) {
        Err(SubscriptionUpdateError::InvalidFields(errors)) => {
            assert_eq!(errors.len(), 1);
            let (field, error) = &errors[0];
            assert_eq!(
                (*field, error.rule),
                ("subscription_plan_id", Rule::CurrencyMismatch)
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn price_alone_applies_from_the_next_period_that_is_not_paid() {
    let mut book = Book::paid(&monthly(PRICE));
    book.pay(PRICE, noon(1));
    book.clear();
    book.change(&price("10.00"), noon(5));
    assert!(book.entries.is_empty());
    book.run(noon(31));
    assert_eq!(
        (book.amounts().as_str(), book.sub.credit),
        ("period -1000", 2_100)
    );
    // The open period is not paid yet.
    let mut late = Book::paid(&monthly(PRICE));
    late.pay(1_000, noon(1));
    late.run(noon(33));
    late.change(&price("10.00"), noon(34));
    assert_eq!((late.sub.status, late.sub.credit), (Active, 0));
    assert_eq!(last_period(&late), (noon(31), Some(noon(59))));
}

#[test]
fn price_null_takes_the_present_price_of_the_plan() {
    let mut book = Book::paid(&monthly(PRICE));
    book.change(&price("10.00"), noon(5));
    let reset = SubscriptionChanges {
        price: Some(None),
        ..to_plan(monthly(4_000))
    };
    book.change(&reset, noon(6));
    assert_eq!(
        (book.sub.custom_price, book.sub.amount()),
        (None, Some(4_000))
    );
}

#[test]
fn billing_cycle_alone_needs_a_price_and_applies_from_the_next_period() {
    let mut book = Book::paid(&monthly(PRICE));
    let cycle = SubscriptionChanges {
        billing_cycle: Some(BillingCycle::Yearly),
        ..SubscriptionChanges::default()
    };
    assert_eq!(book.invalid(&cycle, noon(5)), ["price"]);
    let both = SubscriptionChanges {
        price: price("365").price,
        ..cycle
    };
    book.pay(36_500, noon(5));
    book.clear();
    book.change(&both, noon(6));
    assert_eq!(
        (book.sub.renews_at, book.entries.len()),
        (Some(noon(31)), 0)
    );
    book.run(noon(31));
    assert_eq!(book.amounts(), "period -36500");
    assert_eq!(last_period(&book), (noon(31), Some(noon(396))));
}

#[test]
fn suspension_changes_no_money() {
    let mut book = Book::paid(&monthly(PRICE));
    book.pay(PRICE, noon(1));
    let suspend = SubscriptionChanges {
        is_active: Some(false),
        ..SubscriptionChanges::default()
    };
    book.change(&suspend, noon(5));
    assert!(!book.sub.has_access(noon(6)));
    book.run(noon(31));
    assert_eq!((book.sub.credit, book.sub.renews_at), (0, Some(noon(59))));
    assert!(book.sub.suspended && !book.sub.has_access(noon(31)));
}
