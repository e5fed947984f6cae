//! Payments, refunds, disputes and what remains after the end.

use super::*;
use crate::{Money, NewPayment, PaymentStatus};

fn payment(book: &Book, status: PaymentStatus, minor: i64) -> NewPayment {
    let amount = Money::from_minor_units(minor, usd()).unwrap();
    NewPayment {
        status: Some(status),
        ..NewPayment::new(book.sub.id, amount)
    }
}

#[test]
fn payment_adds_its_amount_less_what_is_refunded() {
    let mut book = Book::pending(&monthly(PRICE));
    let new = NewPayment {
        refunded: Some(Money::from_minor_units(1_000, usd()).unwrap()),
        ..payment(&book, PaymentStatus::PartiallyRefunded, 4_000)
    };
    book.add_payment(new, noon(1));
    assert_eq!(
        (book.amounts().as_str(), book.sub.credit),
        ("payment 3000", 3_000)
    );
}

#[test]
fn payment_created_as_refunded_or_disputed_adds_nothing() {
    for status in [PaymentStatus::Refunded, PaymentStatus::Disputed] {
        let mut book = Book::pending(&monthly(PRICE));
        let new = payment(&book, status, PRICE);
        book.add_payment(new, noon(1));
        assert_eq!((book.entries.len(), book.sub.status), (0, Pending));
    }
}

#[test]
fn payment_completed_later_is_posted_then() {
    let mut book = Book::pending(&monthly(PRICE));
    let new = NewPayment {
        paid_at: Some(noon(-50)),
        ..payment(&book, PaymentStatus::Pending, PRICE)
    };
    book.add_payment(new, noon(1));
    assert!(book.entries.is_empty());
    book.payment_status(0, PaymentStatus::Completed, noon(2));
    assert_eq!(book.payments[0].paid_at, Some(noon(-50)));
    assert_eq!(book.entries[0].at, noon(2), "paid_at never dates an entry");
    assert_eq!(
        (book.sub.status, book.sub.starts_at),
        (Active, book.entries[0].at)
    );
}

#[test]
fn payment_pays_the_open_period_of_a_paused_subscription() {
    let mut book = Book::paid(&monthly(PRICE));
    book.run(noon(32));
    book.status(Paused, noon(33));
    book.pay(PRICE, noon(34));
    assert_eq!((book.sub.status, book.sub.late_since), (Paused, None));
    assert_eq!((book.sub.renews_at, book.sub.credit), (Some(noon(59)), 0));
}

#[test]
fn payment_stays_credit_while_nothing_is_due() {
    let mut paused = Book::paid(&monthly(PRICE));
    paused.status(Paused, noon(1));
    paused.run(noon(40));
    let mut cancelled = Book::paid(&monthly(PRICE));
    cancelled.status(Cancelled, noon(1));
    let mut expired = Book::paid(&monthly(PRICE));
    expired.status(Expired, noon(1));
    for mut book in [paused, cancelled, expired] {
        let before = book.sub.clone();
        book.pay(PRICE, noon(12).max(before.updated_at));
        assert_eq!((book.sub.status, book.sub.credit), (before.status, PRICE));
        assert_eq!(
            (book.sub.renews_at, book.sub.ends_at),
            (before.renews_at, before.ends_at)
        );
        if before.status != Cancelled {
            assert_eq!(book.payments[1].period, None);
        }
    }
}

#[test]
fn payment_in_another_currency_or_of_zero_has_no_entry_nor_has_its_refund() {
    let mut book = Book::paid(&monthly(PRICE));
    book.clear();
    let euros = Money::from_minor_units(PRICE, "EUR".parse().unwrap()).unwrap();
    let new = NewPayment {
        amount: euros,
        ..payment(&book, PaymentStatus::Completed, 0)
    };
    let index = book.add_payment(new, noon(1));
    book.payment_status(index, PaymentStatus::Refunded, noon(2));
    let zero = book.pay(0, noon(3));
    book.payment_status(zero, PaymentStatus::Disputed, noon(4));
    assert!(book.entries.is_empty());
}

#[test]
fn refund_takes_credit_and_waives_what_credit_lacks() {
    let mut book = Book::paid(&monthly(PRICE));
    book.pay(1_000, noon(1));
    book.clear();
    assert!(book.refund(0, PRICE, noon(10)));
    assert_eq!(book.amounts(), "refund -3100, waiver 2100");
    assert_eq!(
        (book.sub.status, book.sub.credit),
        (Active, 0),
        "the period stays"
    );
    assert_eq!(book.sub.renews_at, Some(noon(31)));
}

#[test]
fn refund_posts_the_difference() {
    let mut book = Book::paid(&monthly(PRICE));
    book.pay(5_000, noon(1));
    book.clear();
    assert!(book.refund(1, 1_000, noon(2)));
    assert!(book.refund(1, 1_500, noon(3)));
    assert!(book.refund(1, 5_000, noon(4)));
    assert_eq!(book.amounts(), "refund -1000, refund -500, refund -3500");
    assert_eq!(book.sub.credit, 0);
}

#[test]
fn dispute_makes_the_subscription_late_until_it_is_won() {
    let mut book = Book::paid(&monthly(PRICE));
    book.clear();
    book.payment_status(0, PaymentStatus::Disputed, noon(2));
    assert_eq!(
        (book.amounts().as_str(), book.sub.credit),
        ("refund -3100", -PRICE)
    );
    assert_eq!(
        (book.sub.status, book.sub.late_since),
        (PastDue, Some(noon(2)))
    );
    assert_eq!(book.run(noon(9)).status, Unpaid);
    let mut won = book.clone();
    won.clear();
    won.payment_status(0, PaymentStatus::Completed, noon(12));
    assert_eq!(
        (won.amounts().as_str(), won.sub.credit),
        ("payment 3100", 0)
    );
    assert_eq!(
        (won.sub.status, won.sub.renews_at),
        (Active, Some(noon(31)))
    );
    book.clear();
    book.payment_status(0, PaymentStatus::Refunded, noon(12));
    assert_eq!(
        (book.amounts().as_str(), book.sub.credit),
        ("", -PRICE),
        "lost"
    );
    book.pay(PRICE, noon(13));
    assert_eq!((book.sub.status, book.sub.credit), (Active, 0));
}

#[test]
fn dispute_takes_only_what_is_not_refunded() {
    let mut book = Book::paid(&monthly(PRICE));
    assert!(book.refund(0, 1_000, noon(1)));
    book.clear();
    book.payment_status(0, PaymentStatus::Disputed, noon(2));
    assert_eq!(
        (book.amounts().as_str(), book.sub.credit),
        ("refund -2100", -2_100)
    );
    book.payment_status(0, PaymentStatus::Completed, noon(3));
    assert_eq!(
        (book.amounts().as_str(), book.sub.credit),
        ("refund -2100, payment 2100", 0)
    );
}

#[test]
fn waived_amount_is_not_returned_by_a_change() {
    let mut book = Book::paid(&monthly(PRICE));
    book.refund(0, 1_000, noon(5));
    assert_eq!(
        book.amounts(),
        "payment 3100, period -3100, refund -1000, waiver 1000"
    );
    book.clear();
    let cheaper = |price| to_plan(plan(9, price, BillingCycle::Monthly));
    book.change(&cheaper(1_000), noon(10));
    assert_eq!(book.amounts(), "change 1291", "1,907 × 21 ÷ 31");
    book.clear();
    book.change(&to_plan(monthly(0)), noon(10));
    assert_eq!(book.amounts(), "change 0");
}

/// An upgrade charges only a part of its amount, so that a waiver of all of it leaves nothing to return.
#[test]
fn refund_of_an_upgrade_leaves_nothing_to_return() {
    let mut book = Book::paid(&monthly(PRICE));
    book.pay(1_000, noon(21));
    book.change(&to_quantity(2), noon(21) + TICK);
    book.refund(0, PRICE, noon(22));
    book.refund(1, 1_000, noon(22));
    book.clear();
    book.change(&to_quantity(1), noon(22) + SignedDuration::from_mins(1));
    assert_eq!(book.amounts(), "change 0");
}

#[test]
fn refund_that_becomes_smaller_takes_its_waiver_back() {
    let mut book = Book::paid(&monthly(10_000));
    book.refund(0, 5_000, noon(5));
    book.refund(0, 100, noon(6));
    assert_eq!(
        (book.sub.credit, book.payments[0].waived),
        (0, 100),
        "9,900 were paid for a period of 10,000"
    );
    book.clear();
    // The bank rejects it.
    assert!(book.refund(0, 0, noon(7)));
    assert_eq!(book.amounts(), "payment 100, waiver -100");
    assert_eq!((book.sub.credit, book.payments[0].waived), (0, 0));
    book.clear();
    book.change(&to_plan(plan(9, 5_000, BillingCycle::Monthly)), noon(10));
    assert_eq!(book.amounts(), "change 3387", "all of it was paid again");
}

#[test]
fn rejected_refund_of_the_whole_payment_is_money_again() {
    let mut book = Book::paid(&monthly(PRICE));
    book.pay(500, noon(1));
    book.refund(0, PRICE, noon(5));
    assert_eq!(book.sub.credit, 0);
    book.clear();
    book.payment_status(0, PaymentStatus::Completed, noon(6));
    assert_eq!(book.amounts(), "payment 3100, waiver -2600");
    assert_eq!(book.sub.credit, 500);
}

/// Of two disputes, free time forgave both; one is lost and one is won.
#[test]
fn debt_that_free_time_forgave_is_taken_back_only_for_a_dispute_that_is_won() {
    for lost_first in [true, false] {
        let mut book = Book::paid(&monthly(PRICE));
        book.pay(PRICE, noon(1));
        book.run(noon(32));
        for payment in [0, 1] {
            book.payment_status(payment, PaymentStatus::Disputed, noon(33));
        }
        book.change(&to_free_time(noon(70)), noon(34));
        let mut decisions = [(0, PaymentStatus::Refunded), (1, PaymentStatus::Completed)];
        if !lost_first {
            decisions.reverse();
        }
        for (payment, decision) in decisions {
            book.payment_status(payment, decision, noon(35));
        }
        assert_eq!((book.sub.credit, book.sub.waived_debt), (0, 0));
    }
}

#[test]
fn credit_stays_after_the_end_and_only_reopening_or_a_refund_uses_it() {
    let mut book = Book::paid(&monthly(PRICE));
    book.pay(PRICE, noon(1));
    book.clear();
    let applied = book.sub.expire(noon(5)).unwrap();
    assert!(
        applied.own_entries.is_empty(),
        "unused days are not returned"
    );
    book.sub = applied.after;
    assert_eq!(
        (book.sub.status, book.run(noon(500)).credit),
        (Expired, PRICE)
    );
    let mut refunded = book.clone();
    refunded.refund(1, PRICE, noon(500));
    assert_eq!(
        (refunded.amounts().as_str(), refunded.sub.credit),
        ("refund -3100", 0)
    );
    book.status(Active, noon(500));
    assert_eq!(
        (book.amounts().as_str(), book.sub.credit),
        ("period -3100", 0)
    );
}
