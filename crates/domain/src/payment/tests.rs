//! What no sequence of calls can do to a payment.

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
    Money::of_minor_units(minor, code.parse().unwrap()).unwrap()
}

fn payment(status: PaymentStatus, amount: Money) -> Payment {
    let new = NewPayment {
        subscription: subscription(1),
        amount,
        external_id: None,
        status: Some(status),
        refunded: None,
    };
    Payment::make(new, PaymentId::new(Uuid::from_u128(9)), at(0)).unwrap()
}

fn only_status(to: PaymentStatus) -> PaymentChanges {
    PaymentChanges {
        status: Some(to),
        ..PaymentChanges::default()
    }
}

#[test]
fn what_is_given_back_follows_the_status() {
    let amount = money(1_999, "USD");
    let completed = payment(PaymentStatus::Completed, amount);
    assert_eq!(completed.refunded.unwrap().minor_units(), 0);
    let unknown = only_status(PaymentStatus::PartiallyRefunded);
    let unknown = completed.amend(&unknown, at(1)).unwrap().unwrap();
    assert_eq!(unknown.refunded, None, "nobody said how much");
    let said = |text: &str| PaymentChanges {
        refunded: Some(Some(text.parse().unwrap())),
        ..PaymentChanges::default()
    };
    let known = unknown.amend(&said("5"), at(2)).unwrap().unwrap();
    assert_eq!(known.refunded.unwrap().minor_units(), 500);
    let disputed = known
        .amend(&only_status(PaymentStatus::Disputed), at(3))
        .unwrap()
        .unwrap();
    assert_eq!(disputed.refunded, known.refunded);
    let still = unknown
        .amend(&only_status(PaymentStatus::Disputed), at(3))
        .unwrap()
        .unwrap();
    assert_eq!(
        still.refunded, None,
        "still some, and still not known how much"
    );
    let all = known
        .amend(&only_status(PaymentStatus::Refunded), at(3))
        .unwrap()
        .unwrap();
    assert_eq!(all.refunded, Some(amount));
    for wrong in ["0", "19.99", "20"] {
        assert!(matches!(
            unknown.amend(&said(wrong), at(2)),
            Err(PaymentRefused::Fields(_))
        ));
    }
    assert!(matches!(
        completed.amend(&said("5"), at(2)),
        Err(PaymentRefused::Fields(_))
    ));
}

#[test]
fn a_number_in_another_currency_is_that_number_or_refused() {
    let pending = payment(PaymentStatus::Pending, money(1_999, "USD"));
    let to = |code: &str| PaymentChanges {
        currency: Some(code.parse().unwrap()),
        ..PaymentChanges::default()
    };
    let euros = pending.amend(&to("EUR"), at(1)).unwrap().unwrap();
    assert_eq!(euros.amount, money(1_999, "EUR"));
    let dinars = pending.amend(&to("KWD"), at(1)).unwrap().unwrap();
    assert_eq!(dinars.amount.to_string(), "19.990");
    let yen = pending.amend(&to("JPY"), at(1));
    assert!(matches!(yen, Err(PaymentRefused::Fields(_))), "no rounding");
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
                external_id: None,
                status,
                refunded,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn no_sequence_of_calls_leaves_what_the_table_forbids(
        begin in prop::sample::select(PaymentStatus::ALL.to_vec()),
        calls in prop::collection::vec(any_changes(), 1..12),
    ) {
        let mut one = payment(begin, money(1_999, "USD"));
        for (second, changes) in (1..).zip(calls) {
            let Ok(Some(next)) = one.amend(&changes, at(second)) else { continue };
            prop_assert!(one.status == next.status || one.status.may_become().contains(&next.status));
            if one.status.is_settled() {
                prop_assert_eq!(next.amount, one.amount);
                prop_assert_eq!(next.subscription, one.subscription);
                prop_assert!(next.status.is_settled(), "money that came has come");
            }
            if let Some(refunded) = next.refunded {
                prop_assert!(refunded.minor_units() <= next.amount.minor_units());
                prop_assert_eq!(refunded.currency(), next.amount.currency());
            } else {
                prop_assert!(next.status.may_have_given_back(), "some was given back");
            }
            prop_assert_eq!(next.updated_at, at(second));
            one = next;
        }
    }

    /// However the number is written, it is the same money; sent back as it is shown, it changes nothing.
    #[test]
    fn money_never_changes_by_representation(
        minor in 0..=MAX_MINOR_UNITS,
        code in prop::sample::select(vec!["USD", "JPY", "KWD"]),
        status in prop::sample::select(PaymentStatus::ALL.to_vec()),
        exponent in -3_i32..4,
    ) {
        let one = payment(status, money(minor, code));
        let scale = i32::from(one.amount.currency().scale());
        let same = [one.amount.to_string(), format!("{minor}e-{scale}"), format!("{}0", format_args!("{}.0", minor)) + &format!("e-{scale}")];
        for text in same {
            let sent = PaymentChanges {
                amount: Some(text.parse().unwrap()),
                currency: Some(code.parse().unwrap()),
                ..PaymentChanges::default()
            };
            prop_assert_eq!(one.amend(&sent, at(1)), Ok(None), "{}", text);
        }
        // And what is another number is another amount, or refused.
        let other: Decimal = format!("{minor}e{}", exponent - scale).parse().unwrap();
        let sent = PaymentChanges { amount: Some(other), ..PaymentChanges::default() };
        match one.amend(&sent, at(1)) {
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
