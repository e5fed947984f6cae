//! Which fields of a payment follow a fact, what stays, and the constraints that every record keeps.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::{DisputeState, Id, Money, PaymentChanges, PaymentStatus};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn usd(minor: i64) -> Money {
    Money::from_minor_units(minor, "USD".parse().unwrap()).unwrap()
}

fn subscription() -> SubscriptionId {
    SubscriptionId::new(Uuid::from_u128(1))
}

fn fact(status: PaymentStatus) -> PaymentFact {
    PaymentFact {
        external_id: "in_1".parse().unwrap(),
        subscription: "sub_1".parse().unwrap(),
        status,
        amount: usd(1_000),
        refunded_minor: Some(0),
        paid_at: Some(at(-5)),
        failure_reason: None,
        period: Some((at(0), Some(at(100)))),
    }
}

fn create(fact: &PaymentFact) -> Option<Payment> {
    let id = PaymentId::new(Uuid::from_u128(9));
    Payment::follow(FollowedPayment::New(id), fact, subscription(), at(0))
}

fn follow(record: &Payment, last: Option<&PaymentFact>, fact: &PaymentFact) -> Option<Payment> {
    let followed = FollowedPayment::Existing { record, last };
    Payment::follow(followed, fact, subscription(), at(1))
}

#[test]
fn every_status_follows_every_status() {
    for from in PaymentStatus::ALL {
        for to in PaymentStatus::ALL {
            let (first, second) = (fact(from), fact(to));
            let record = create(&first).unwrap();
            let after = follow(&record, Some(&first), &second);
            if from == to {
                assert_eq!(after, None, "{from}");
                continue;
            }
            let after = after.unwrap();
            assert_eq!(after.status, to, "from {from}");
            assert_eq!(after.paid_at.is_some(), to.is_settled());
            assert_eq!((after.created_at, after.updated_at), (at(0), at(1)));
        }
    }
}

#[test]
fn free_invoice_gets_no_record() {
    let free = PaymentFact {
        amount: usd(0),
        ..fact(PaymentStatus::Completed)
    };
    assert_eq!(create(&free), None);
}

#[test]
fn operator_change_stands_until_the_next_fact() {
    let completed = fact(PaymentStatus::Completed);
    let record = create(&completed).unwrap();
    let changes = PaymentChanges {
        status: Some(PaymentStatus::Disputed),
        ..PaymentChanges::default()
    };
    let operated = record.update(&changes, at(1)).unwrap().unwrap();
    assert_eq!(follow(&operated, Some(&completed), &completed), None);
    let refunded = fact(PaymentStatus::Refunded);
    let after = follow(&operated, Some(&completed), &refunded).unwrap();
    assert_eq!(after.refunded, Some(usd(1_000)));
}

#[test]
fn payment_of_managed_billing_keeps_its_ledger() {
    let completed = fact(PaymentStatus::Completed);
    let record = Payment {
        ledger_amount: Some(1_000),
        period: Some((at(7), None)),
        ..create(&completed).unwrap()
    };
    let after = follow(&record, None, &fact(PaymentStatus::Refunded)).unwrap();
    assert_eq!(after.ledger_amount, Some(1_000));
    assert_eq!(after.period, Some((at(7), None)));
}

#[test]
fn time_of_payment_defaults_to_when_it_was_first_reported() {
    let without_time = |status| PaymentFact {
        paid_at: None,
        ..fact(status)
    };
    let completed = without_time(PaymentStatus::Completed);
    let record = create(&completed).unwrap();
    assert_eq!(record.paid_at, Some(at(0)));
    let disputed = without_time(PaymentStatus::Disputed);
    let after = follow(&record, Some(&completed), &disputed).unwrap();
    assert_eq!(after.paid_at, Some(at(0)));
}

#[test]
fn status_of_a_paid_invoice_follows_refunds_and_disputes() {
    let status =
        |refunded, dispute| PaymentFact::paid_status(usd(1_000), refunded, dispute).as_str();
    assert_eq!(status(0, None), "completed");
    assert_eq!(status(1, None), "partially_refunded");
    assert_eq!(status(999, Some(DisputeState::Won)), "partially_refunded");
    assert_eq!(status(1_000, None), "refunded");
    assert_eq!(status(1_001, Some(DisputeState::Won)), "refunded");
    assert_eq!(status(0, Some(DisputeState::Open)), "disputed");
    assert_eq!(status(1_000, Some(DisputeState::Open)), "disputed");
    assert_eq!(status(0, Some(DisputeState::Won)), "completed");
    assert_eq!(status(1, Some(DisputeState::Lost)), "refunded");
}

prop_compose! {
    fn any_fact()(
        status in prop::sample::select(PaymentStatus::ALL.to_vec()),
        amount in 0_i64..4,
        refunded_minor in prop::option::of(-1_i64..5),
        failed in prop::bool::ANY,
        period in prop::option::of(prop::option::of(0_i64..9)),
    ) -> PaymentFact {
        PaymentFact {
            amount: usd(amount),
            refunded_minor,
            failure_reason: failed.then(|| "card declined".parse().unwrap()),
            period: period.map(|end| (at(0), end.map(at))),
            ..fact(status)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn record_keeps_every_constraint_and_depends_on_the_last_fact_only(
        facts in prop::collection::vec(any_fact(), 1..6),
    ) {
        let mut record: Option<Payment> = None;
        let mut last: Option<PaymentFact> = None;
        for fact in &facts {
            let after = match &record {
                Some(record) => follow(record, last.as_ref(), fact),
                None => create(fact),
            };
            record = after.or(record);
            last = Some(fact.clone());
            let Some(record) = &record else { continue };
            let (amount, refunded) = (record.amount.minor_units(), record.refunded);
            let refunded = refunded.map(Money::minor_units);
            let is_valid = match record.status {
                PaymentStatus::Refunded => refunded == Some(amount),
                PaymentStatus::Disputed => refunded.is_some_and(|minor| (0..=amount).contains(&minor)),
                PaymentStatus::PartiallyRefunded => refunded.is_none_or(|minor| (1..amount).contains(&minor)),
                _ => refunded == Some(0),
            };
            prop_assert!(is_valid, "{:?}", record);
            prop_assert_eq!(record.paid_at.is_some(), record.status.is_settled());
            if let Some(created) = create(fact) {
                let same_times = Payment { updated_at: record.updated_at, ..created };
                prop_assert_eq!(record, &same_times);
            }
        }
    }
}

#[test]
fn differences_are_those_that_stating_the_fact_would_change() {
    for status in PaymentStatus::ALL {
        let record = create(&fact(status)).unwrap();
        assert_eq!(record.differences_from(&fact(status), at(9)), []);
    }
    let record = create(&fact(PaymentStatus::Completed)).unwrap();
    let differences = record.differences_from(&fact(PaymentStatus::Refunded), at(9));
    let fields: Vec<[&str; 3]> = differences
        .iter()
        .map(|found| [found.field, &found.reported, &found.recorded])
        .collect();
    assert_eq!(
        fields,
        [
            ["status", "refunded", "completed"],
            ["refunded_amount", "10.00 USD", "0.00 USD"],
        ]
    );
}
