//! Invariants of subscriptions that follow a payment provider.

use proptest::prelude::*;

use super::{
    tests::{create, fact, follow, money},
    *,
};
use crate::{
    PlanReference, Quantity,
    subscription::{billing::fixtures::DUNNING, tests::day},
};

prop_compose! {
    /// Facts with dates in any order.
    fn any_fact()(
        status in prop::sample::select(SubscriptionStatus::ALL.to_vec()),
        starts in 0_i64..20,
        renews in prop::option::of(-5_i64..60),
        ends in prop::option::of(-5_i64..60),
        late in prop::option::of(0_i64..30),
        variant in 0..2,
        price in prop::option::of((1_i64..3, prop::sample::select(BillingCycle::ALL.to_vec()), prop::bool::ANY)),
        quantity in 1_i64..4,
    ) -> SubscriptionFact {
        SubscriptionFact {
            plan: PlanReference { variant: format!("price_{variant}").parse().unwrap(), product: None },
            quantity: Quantity::try_from(quantity).unwrap(),
            price: price.map(|(units, billing_cycle, euros)| ReportedPrice {
                amount: money(units * 100, if euros { "EUR" } else { "USD" }),
                billing_cycle,
            }),
            starts_at: day(starts),
            renews_at: renews.map(day),
            ends_at: ends.map(day),
            late_since: late.map(day),
            ..fact(status)
        }
    }
}

/// The constraints of the table and of the domain on a subscription with a payment provider.
fn assert_valid(record: &Subscription, now: Timestamp) {
    let start = record.starts_at;
    assert!(record.renews_at.is_none_or(|renewal| renewal >= start));
    assert!(record.ends_at.is_none_or(|end| end >= start));
    let has_ended = matches!(
        record.status,
        SubscriptionStatus::Cancelled | SubscriptionStatus::Expired
    );
    assert!(!has_ended || record.ends_at.is_some());
    if record.status == SubscriptionStatus::Expired {
        assert!(record.ends_at <= Some(now.max(start)));
    } else {
        assert!(record.ends_at.is_none_or(|end| end > now));
    }
    assert!(record.billing_cycle != BillingCycle::Lifetime || record.renews_at.is_none());
    let is_late = matches!(
        record.status,
        SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid
    );
    assert_eq!(record.late_since.is_some(), is_late);
    assert!(
        record
            .custom_price
            .is_none_or(|price| price.currency() == record.plan.price.currency())
    );
    assert_eq!(record.due_at(), None);
    assert_eq!(record.next_transition(now), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn records_keep_every_constraint(
        facts in prop::collection::vec(any_fact(), 1..6),
        is_managed in prop::bool::ANY,
        suspended in prop::bool::ANY,
    ) {
        let lifecycle = if is_managed { Lifecycle::Managed(DUNNING) } else { Lifecycle::Recorded };
        let mut record = create(&facts[0], lifecycle, day(10));
        record.suspended = suspended;
        assert_valid(&record, day(10));
        for (number, pair) in (11..).zip(facts.windows(2)) {
            let Some(applied) = follow(&record, Some(&pair[0]), &pair[1], day(number)) else {
                continue;
            };
            let updated_at = applied.after.updated_at;
            let before = Subscription { updated_at, ..applied.before(&record).clone() };
            prop_assert!(applied.after != before, "an event has a change");
            record = applied.after;
            assert_valid(&record, updated_at);
            prop_assert_eq!(record.suspended, suspended);
        }
    }

    /// The record depends on the last fact only.
    #[test]
    fn record_does_not_depend_on_earlier_facts(
        earlier in prop::collection::vec(any_fact(), 1..4),
        last in any_fact(),
    ) {
        // These are taken from earlier facts, or the clock, if the last one has none.
        let last = SubscriptionFact {
            ends_at: last.ends_at.or(Some(day(50))),
            late_since: last.late_since.or(Some(day(3))),
            trial_ends_at: Some(day(5)),
            ..last
        };
        let mut facts = earlier;
        facts.push(last.clone());
        let mut record = create(&facts[0], Lifecycle::Recorded, day(10));
        for pair in facts.windows(2) {
            if let Some(applied) = follow(&record, Some(&pair[0]), &pair[1], day(10)) {
                record = applied.after;
            }
        }
        prop_assert_eq!(record, create(&last, Lifecycle::Recorded, day(10)));
    }
}
