//! Refunds, currencies, and invariants of updates.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::{Id, MAX_MINOR_UNITS};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn subscription(number: u128) -> SubscriptionId {
    SubscriptionId::new(Uuid::from_u128(number))
}

fn money(minor: i64, code: &str) -> Money {
    Money::from_minor_units(minor, code.parse().unwrap()).unwrap()
}

fn payment(status: PaymentStatus, amount: Money) -> Payment {
    let new = NewPayment {
        status: Some(status),
        ..NewPayment::new(subscription(1), amount)
    };
    Payment::create(new, PaymentId::new(Uuid::from_u128(9)), at(0)).unwrap()
}

fn only_status(to: PaymentStatus) -> PaymentChanges {
    PaymentChanges {
        status: Some(to),
        ..PaymentChanges::default()
    }
}

#[test]
fn refunded_amount_follows_the_status() {
    let amount = money(1_999, "USD");
    let completed = payment(PaymentStatus::Completed, amount);
    assert_eq!(completed.refunded.unwrap().minor_units(), 0);
    let unknown = only_status(PaymentStatus::PartiallyRefunded);
    let unknown = completed.update(&unknown, at(1)).unwrap().unwrap();
    assert_eq!(unknown.refunded, None, "the refunded amount is unknown");
    let refunded = |text: &str| PaymentChanges {
        refunded: Some(Some(text.parse().unwrap())),
        ..PaymentChanges::default()
    };
    let known = unknown.update(&refunded("5"), at(2)).unwrap().unwrap();
    assert_eq!(known.refunded.unwrap().minor_units(), 500);
    let disputed = known
        .update(&only_status(PaymentStatus::Disputed), at(3))
        .unwrap()
        .unwrap();
    assert_eq!(disputed.refunded, known.refunded);
    let unknown_disputed = unknown
        .update(&only_status(PaymentStatus::Disputed), at(3))
        .unwrap()
        .unwrap();
    assert_eq!(
        unknown_disputed.refunded, None,
        "the refunded amount is still unknown"
    );
    let full = known
        .update(&only_status(PaymentStatus::Refunded), at(3))
        .unwrap()
        .unwrap();
    assert_eq!(full.refunded, Some(amount));
    for wrong in ["0", "19.99", "20"] {
        assert!(matches!(
            unknown.update(&refunded(wrong), at(2)),
            Err(PaymentUpdateError::InvalidFields(_))
        ));
    }
    assert!(matches!(
        completed.update(&refunded("5"), at(2)),
        Err(PaymentUpdateError::InvalidFields(_))
    ));
}

#[test]
fn update_makes_every_allowed_transition_and_no_other() {
    for from in PaymentStatus::ALL {
        let before = payment(from, money(1_999, "USD"));
        for to in PaymentStatus::ALL.into_iter().filter(|to| *to != from) {
            let updated = before.update(&only_status(to), at(1));
            if from.allowed_transitions().contains(&to) {
                assert_eq!(updated.unwrap().unwrap().status, to, "{from} to {to}");
            } else {
                let error = PaymentUpdateError::TransitionNotAllowed { from, to };
                assert_eq!(updated, Err(error), "{from} to {to}");
            }
        }
    }
}

#[test]
fn currency_change_keeps_the_number_or_is_rejected() {
    let pending = payment(PaymentStatus::Pending, money(1_999, "USD"));
    let to = |code: &str| PaymentChanges {
        currency: Some(code.parse().unwrap()),
        ..PaymentChanges::default()
    };
    let euros = pending.update(&to("EUR"), at(1)).unwrap().unwrap();
    assert_eq!(euros.amount, money(1_999, "EUR"));
    let dinars = pending.update(&to("KWD"), at(1)).unwrap().unwrap();
    assert_eq!(dinars.amount.to_string(), "19.990");
    let yen = pending.update(&to("JPY"), at(1));
    assert!(
        matches!(yen, Err(PaymentUpdateError::InvalidFields(_))),
        "no rounding"
    );
}

fn any_changes() -> impl Strategy<Value = PaymentChanges> {
    let amount = prop::sample::select(vec!["0", "5", "19.99", "1999e-2", "20.000"]);
    let status = prop::sample::select(PaymentStatus::ALL.to_vec());
    (
        prop::option::weighted(0.2, (1_u128..3).prop_map(subscription)),
        prop::option::weighted(0.3, amount.clone().prop_map(|text| text.parse().unwrap())),
        prop::option::weighted(
            0.2,
            prop::sample::select(vec!["USD", "EUR", "KWD"]).prop_map(|code| code.parse().unwrap()),
        ),
        prop::option::weighted(0.6, status),
        prop::option::weighted(
            0.2,
            prop::option::of(amount.prop_map(|text| text.parse().unwrap())),
        ),
    )
        .prop_map(
            |(subscription, amount, currency, status, refunded)| PaymentChanges {
                subscription,
                amount,
                currency,
                status,
                refunded,
                ..PaymentChanges::default()
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn updates_follow_allowed_transitions_and_freeze_settled_payments(
        initial in prop::sample::select(PaymentStatus::ALL.to_vec()),
        updates in prop::collection::vec(any_changes(), 1..12),
    ) {
        let mut current = payment(initial, money(1_999, "USD"));
        for (second, changes) in (1..).zip(updates) {
            let Ok(Some(next)) = current.update(&changes, at(second)) else { continue };
            prop_assert!(current.status == next.status || current.status.allowed_transitions().contains(&next.status));
            if current.status.is_settled() {
                prop_assert_eq!(next.amount, current.amount);
                prop_assert_eq!(next.subscription, current.subscription);
                prop_assert!(next.status.is_settled(), "a settled payment stays settled");
            }
            if let Some(refunded) = next.refunded {
                prop_assert!(refunded.minor_units() <= next.amount.minor_units());
                prop_assert_eq!(refunded.currency(), next.amount.currency());
            } else {
                prop_assert!(next.status.may_be_partially_refunded(), "only partial refunds are unknown");
            }
            prop_assert_eq!(next.updated_at, at(second));
            current = next;
        }
    }

    /// Every notation of the current amount changes nothing.
    #[test]
    fn amount_does_not_depend_on_its_notation(
        minor in 0..=MAX_MINOR_UNITS,
        code in prop::sample::select(vec!["USD", "JPY", "KWD"]),
        status in prop::sample::select(PaymentStatus::ALL.to_vec()),
        exponent in -3_i32..4,
    ) {
        let current = payment(status, money(minor, code));
        let scale = i32::from(current.amount.currency().scale());
        let same = [current.amount.to_string(), format!("{minor}e-{scale}"), format!("{}0", format_args!("{}.0", minor)) + &format!("e-{scale}")];
        for text in same {
            let changes = PaymentChanges {
                amount: Some(text.parse().unwrap()),
                currency: Some(code.parse().unwrap()),
                ..PaymentChanges::default()
            };
            prop_assert_eq!(current.update(&changes, at(1)), Ok(None), "{}", text);
        }
        // Another number is another amount, or rejected.
        let other: Decimal = format!("{minor}e{}", exponent - scale).parse().unwrap();
        let changes = PaymentChanges { amount: Some(other), ..PaymentChanges::default() };
        match current.update(&changes, at(1)) {
            Ok(None) => prop_assert!(exponent == 0 || minor == 0),
            Ok(Some(next)) => {
                let factor = 10_i128.pow(exponent.unsigned_abs());
                let (old, new) = (i128::from(minor), i128::from(next.amount.minor_units()));
                let exact = if exponent > 0 { old * factor == new } else { new * factor == old };
                prop_assert!(exact, "{} became {}", old, new);
            }
            Err(_) => {}
        }
    }
}
