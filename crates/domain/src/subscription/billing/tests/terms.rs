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
fn change_during_a_trial_keeps_its_end_if_the_new_plan_has_one() {
    let mut book = Book::pending(&with_trial(monthly(PRICE)));
    book.clear();
    book.change(&to_plan(with_trial(yearly(36_500))), noon(5));
    book.change(&to_quantity(50), noon(6));
    assert_eq!(
        (book.sub.status, book.sub.renews_at),
        (OnTrial, Some(noon(14)))
    );
    assert!(book.entries.is_empty());
    book.change(&to_quantity(1), noon(7));
    book.pay(36_500, noon(8));
    book.run(noon(14));
    assert_eq!(last_period(&book), (noon(14), Some(noon(379))));
}

#[test]
fn change_during_a_trial_to_a_plan_without_one_starts_a_period_in_full() {
    let had_trial = SubscriptionChanges {
        had_trial: true,
        ..to_plan(with_trial(dearer(6_200)))
    };
    for change in [to_plan(dearer(6_200)), had_trial] {
        let mut book = Book::pending(&with_trial(monthly(PRICE)));
        assert_eq!(book.shortage(&change, noon(5)), 6_200);
        book.pay(6_200, noon(5));
        book.change(&change, noon(6));
        assert_eq!((book.sub.status, book.sub.credit), (Active, 0));
        assert_eq!(last_period(&book), (noon(6), Some(noon(37))));
        assert!(!book.sub.in_trial(noon(7)));
    }
    // A trial that is paused or canceled is no way around it.
    let mut paused = Book::pending(&with_trial(monthly(PRICE)));
    paused.status(Paused, noon(1));
    paused.change(&to_plan(dearer(6_200)), noon(2));
    paused.status(Active, noon(3));
    assert_eq!(
        (paused.sub.status, paused.sub.late_since),
        (PastDue, Some(noon(3)))
    );
    let mut cancelled = Book::pending(&with_trial(monthly(PRICE)));
    cancelled.status(Cancelled, noon(1));
    assert_eq!(cancelled.shortage(&to_plan(dearer(6_200)), noon(2)), 6_200);
}

#[test]
fn late_change_costs_the_old_amount_for_the_grace_and_the_new_one_for_the_rest() {
    // Of 28 days, 2 are used.
    let mut book = Book::paid(&monthly(PRICE));
    book.run(noon(33));
    assert_eq!(book.shortage(&to_quantity(2), noon(33)), PRICE + 2_879);
    let cheaper = to_plan(dearer(1_000));
    let preview = book.sub.preview(&cheaper, noon(33)).unwrap();
    assert_eq!(
        preview.amount_due,
        PRICE - 1_946,
        "in an hour, it is worth a bit less"
    );
    assert_eq!(
        preview.valid_until,
        Some(noon(33) + SignedDuration::from_hours(1))
    );
    book.pay(preview.amount_due, noon(33));
    book.clear();
    book.change(&cheaper, noon(33) + TICK);
    assert_eq!(book.amounts(), "period -3100, change 1949");
    assert_eq!((book.sub.status, book.sub.credit), (Active, 3));
    assert_eq!(last_period(&book), (noon(31), Some(noon(59))));
}

/// The customer never pays the dear amount to leave it.
#[test]
fn late_change_to_a_cheaper_plan_needs_less_than_the_open_period() {
    let mut book = Book::paid(&monthly(PRICE));
    book.run(noon(33));
    let due = book.shortage(&to_plan(dearer(0)), noon(33));
    assert_eq!(due, PRICE - 2_873);
    book.pay(due, noon(33));
    book.change(
        &to_plan(dearer(0)),
        noon(34) - SignedDuration::from_hours(23),
    );
    assert_eq!((book.sub.status, book.sub.late_since), (Active, None));
    assert_eq!(book.sub.renews_at, Some(noon(59)));
}

#[test]
fn change_after_the_open_period_pays_it_and_the_next_one() {
    let mut book = Book::paid(&weekly(700));
    book.run(noon(20));
    let change = to_plan(plan(9, 1_000, BillingCycle::Weekly));
    assert_eq!(book.shortage(&change, noon(20)), 1_700);
    book.pay(1_300, noon(20));
    book.pay(400, noon(20));
    book.clear();
    book.change(&change, noon(20) + SignedDuration::from_mins(1));
    assert_eq!((book.sub.status, book.sub.credit), (Active, 0));
}

#[test]
fn dearer_plan_charges_the_difference_for_the_time_that_is_left_rounded_up() {
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
    assert_eq!((period.amount(), period.cost), (6_200, 6_200));
    let book = Book::paid(&monthly(PRICE));
    let charged = |at| {
        let preview = book.sub.preview(&to_plan(dearer(3_200)), at).unwrap();
        preview.entries.last().unwrap().amount
    };
    assert_eq!(charged(noon(10)), -68, "100 × 21 ÷ 31");
    let earlier = noon(10) - SignedDuration::from_hours(12);
    assert_eq!(charged(earlier), -70, "100 × 21.5 ÷ 31");
}

/// A date that the client sets can end the first period early.
#[test]
fn change_in_a_period_of_any_length_costs_at_most_the_difference() {
    let dated = NewSubscription {
        renews_at: Some(noon(1) + SignedDuration::from_hours(10)),
        ..new()
    };
    let mut book = Book::create(&dated, &context(&monthly(1_000), noon(0)));
    book.pay(1_000, noon(0) + TICK);
    assert_eq!(
        book.shortage(&to_plan(dearer(10_000)), noon(0) + TICK + TICK),
        9_000
    );
    // A microsecond more than half of it is left.
    let half = noon(0) + SignedDuration::from_hours(17);
    assert_eq!(book.shortage(&to_plan(dearer(10_000)), half), 4_501);
}

#[test]
fn cheaper_plan_returns_the_difference_for_the_time_that_is_left_rounded_down() {
    let book = Book::paid(&monthly(PRICE));
    let mut at_noon = book.clone();
    at_noon.clear();
    at_noon.change(&to_plan(dearer(1_000)), noon(10));
    assert_eq!(at_noon.amounts(), "change 1422", "2,100 × 21 ÷ 31");
    let period = at_noon.sub.period.unwrap();
    assert_eq!((period.amount(), period.cost), (1_000, 1_000));
    assert_eq!(at_noon.sub.renews_at, Some(noon(31)));
    let mut later = book.clone();
    later.clear();
    later.change(
        &to_plan(dearer(1_000)),
        noon(10) + SignedDuration::from_hours(1),
    );
    assert_eq!(later.amounts(), "change 1419", "2,100 × 20.96 ÷ 31");
}

#[test]
fn cheaper_plan_in_free_time_returns_nothing() {
    let mut book = Book::paid(&monthly(PRICE));
    book.run(noon(33));
    book.change(&to_free_time(noon(60)), noon(33));
    book.clear();
    book.change(&to_plan(dearer(100)), noon(40));
    assert_eq!(book.amounts(), "change 0");
    let mut cost = Book::paid(&monthly(PRICE));
    cost.change(&to_plan(dearer(1_000)), noon(10));
    cost.clear();
    cost.change(&to_plan(monthly(0)), noon(10));
    assert_eq!(
        cost.amounts(),
        "change 677",
        "1,000 × 21 ÷ 31 of the cost that is left"
    );
}

#[test]
fn other_cycle_returns_unused_days_and_starts_a_full_period_now() {
    let mut book = Book::paid(&monthly(PRICE));
    assert_eq!(
        book.shortage(&to_plan(yearly(36_500)), noon(10)),
        36_500 - 2_095,
        "also in an hour"
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

/// 21 days are paid, and 39 are free.
#[test]
fn change_before_free_time_is_charged_for_both_and_keeps_it() {
    let mut book = Book::paid(&monthly(PRICE));
    book.change(&to_free_time(noon(70)), noon(9));
    assert_eq!(book.shortage(&to_quantity(2), noon(10)), 2_100 + 4_318);
    book.pay(6_418, noon(9));
    book.clear();
    book.change(&to_quantity(2), noon(10));
    assert_eq!(book.amounts(), "change -6418");
    assert_eq!(book.sub.renews_at, Some(noon(70)));
    book.clear();
    book.change(&to_quantity(1), noon(10) + TICK);
    assert_eq!(book.amounts(), "change 6417");
    book.clear();
    book.change(&to_plan(dearer(1_000)), noon(40));
    assert_eq!(book.amounts(), "change 0", "what was given is not returned");
}

#[test]
fn free_time_that_is_prolonged_spreads_what_was_paid_in_it() {
    let mut book = Book::paid(&monthly(PRICE));
    book.run(noon(31));
    book.change(&to_free_time(noon(59)), noon(31));
    book.pay(PRICE, noon(31) + TICK);
    book.change(&to_quantity(2), noon(31) + TICK + TICK);
    book.change(
        &to_free_time(noon(87)),
        noon(31) + SignedDuration::from_mins(1),
    );
    book.clear();
    book.change(&to_quantity(1), noon(31) + SignedDuration::from_mins(2));
    assert_eq!(book.amounts(), "change 3097");
}

#[test]
fn billing_cycle_cannot_change_with_the_plan_in_free_time() {
    let mut book = Book::paid(&monthly(PRICE));
    book.change(&to_free_time(noon(40)), noon(10));
    let until = noon(40);
    let error = crate::FreeTimeError::CycleChange { until };
    assert_eq!(
        book.update(&to_plan(yearly(36_500)), noon(11)),
        Err(SubscriptionUpdateError::FreeTimeNotPossible(error))
    );
    assert_eq!(
        book.shortage(&to_plan(yearly(36_500)), noon(40) + TICK),
        36_505
    );
}

#[test]
fn lifetime_returns_nothing() {
    let mut paid = Book::paid(&lifetime(50_000));
    assert_eq!(paid.shortage(&to_plan(monthly(PRICE)), noon(1)), PRICE);
    paid.pay(PRICE, noon(1));
    paid.clear();
    paid.change(&to_plan(monthly(PRICE)), noon(1));
    assert_eq!(paid.amounts(), "change 0, period -3100");
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
