//! Invariants of updates, checked with 10,000 random cases each.

use super::{
    tests::{offer, only_status},
    *,
};
use crate::{
    BillingCycle, Decimal, NewSubscription, Offer, Quantity,
    subscription::tests::{day, new_subscription, recorded_context},
};
use jiff::SignedDuration;
use proptest::prelude::*;

/// Returns the changes that set every field to its current value.
fn unchanged(sub: &Subscription, now: Timestamp) -> SubscriptionChanges {
    let identity = SubscriptionChanges {
        offer: Some(Offer {
            plan: sub.plan.id,
            slug: sub.plan.slug,
            price: sub.plan.price,
            billing_cycle: sub.plan.billing_cycle,
            trial_days: 0,
            is_active: true,
        }),
        external_id: Some(sub.external_id.clone()),
        billing_cycle: Some(sub.billing_cycle),
        price: sub.price().map(|price| Some(price.to_decimal())),
        quantity: Some(sub.quantity),
        metadata: Some(sub.metadata.clone()),
        ..SubscriptionChanges::default()
    };
    SubscriptionChanges {
        status: Some(sub.status_at(now)),
        is_active: Some(sub.has_access(now)),
        starts_at: Some(sub.starts_at),
        renews_at: Some(sub.renews_at),
        ends_at: Some(sub.ends_at),
        ..identity
    }
}

fn any_status() -> impl Strategy<Value = SubscriptionStatus> {
    prop::sample::select(SubscriptionStatus::ALL.to_vec())
}

fn any_cycle() -> impl Strategy<Value = BillingCycle> {
    prop::sample::select(BillingCycle::ALL.to_vec())
}

fn any_instant() -> impl Strategy<Value = Timestamp> {
    (-50_i64..100).prop_map(day)
}

fn any_price_and_quantity() -> impl Strategy<Value = (Option<Decimal>, Option<Quantity>)> {
    let price = prop::sample::select(vec!["0", "49", "49.00", "5.5"]);
    let price = prop::option::weighted(0.2, price.prop_map(|text| text.parse().unwrap()));
    let quantity = (1_i64..4).prop_map(|quantity| Quantity::try_from(quantity).unwrap());
    (price, prop::option::weighted(0.2, quantity))
}

/// Mostly a few fields, some of them null.
fn any_changes() -> impl Strategy<Value = SubscriptionChanges> {
    let maybe = prop::option::weighted::<BoxedStrategy<Option<Timestamp>>>;
    (
        prop::option::weighted(
            0.2,
            (7_u128..10, any_cycle()).prop_map(|(plan, cycle)| offer(plan, cycle)),
        ),
        prop::option::weighted(
            0.1,
            prop::option::of("[a-z]{1,3}".prop_map(|id| id.parse().unwrap())),
        ),
        prop::option::weighted(0.2, any_cycle()),
        prop::option::weighted(0.6, any_status()),
        prop::option::weighted(0.3, any::<bool>()),
        prop::option::weighted(0.1, any_instant()),
        maybe(0.3, prop::option::weighted(0.8, any_instant()).boxed()),
        maybe(0.3, prop::option::weighted(0.8, any_instant()).boxed()),
        any_price_and_quantity(),
    )
        .prop_map(
            |(
                offer,
                external_id,
                billing_cycle,
                status,
                is_active,
                starts_at,
                renews_at,
                ends_at,
                (price, quantity),
            )| {
                let dates = SubscriptionChanges {
                    starts_at,
                    renews_at,
                    ends_at,
                    price: price.map(Some),
                    quantity,
                    ..SubscriptionChanges::default()
                };
                SubscriptionChanges {
                    offer,
                    external_id,
                    billing_cycle,
                    status,
                    is_active,
                    ..dates
                }
            },
        )
}

/// A subscription after its creation and up to three updates.
fn any_subscription() -> impl Strategy<Value = (Subscription, Timestamp)> {
    let new = (
        any_cycle(),
        any_status(),
        prop::option::of(any::<bool>()),
        prop::option::of(any_instant()),
        prop::option::of(any_instant()),
        prop::option::of(any_instant()),
    );
    let steps = prop::collection::vec((any_changes(), 0_i64..20), 0..4);
    (new, steps).prop_filter_map("invalid subscription", |(new, steps)| {
        let (billing_cycle, status, is_active, starts_at, renews_at, ends_at) = new;
        let new = NewSubscription {
            billing_cycle: Some(billing_cycle),
            status: Some(status),
            is_active,
            starts_at,
            renews_at,
            ends_at,
            ..new_subscription()
        };
        let mut now = day(0);
        let monthly = offer(7, BillingCycle::Monthly);
        let created = Subscription::create(&new, &recorded_context(&monthly));
        let mut sub = created.ok()?.after;
        for (changes, days) in steps {
            now += SignedDuration::from_hours(days * 24);
            if let Ok(Some(next)) = sub.update(&changes, now) {
                sub = next.after;
            }
        }
        Some((sub, now))
    })
}

/// Invariants of every subscription at every instant.
fn check(sub: &Subscription, now: Timestamp) -> Result<(), TestCaseError> {
    prop_assert!(sub.renews_at.is_none_or(|renewal| renewal >= sub.starts_at));
    prop_assert!(sub.ends_at.is_none_or(|end| end >= sub.starts_at));
    prop_assert!(sub.billing_cycle != BillingCycle::Lifetime || sub.renews_at.is_none());
    let ends = matches!(
        sub.status,
        SubscriptionStatus::Cancelled | SubscriptionStatus::Expired
    );
    prop_assert!(!ends || sub.ends_at.is_some());
    if sub.has_access(now) {
        prop_assert!(
            sub.ends_at.is_none_or(|end| now < end),
            "access outlives ends_at"
        );
        prop_assert!(sub.starts_at <= now && !sub.suspended);
    }
    for later in 0..200 {
        let later = now + SignedDuration::from_hours(later * 24);
        let access = sub.has_access(later);
        prop_assert!(!access || sub.ends_at.is_none_or(|end| later < end));
        prop_assert_eq!(sub.as_of(later).has_access(later), access);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn updates_follow_allowed_transitions(
        (mut sub, mut now) in any_subscription(),
        calls in prop::collection::vec((any_changes(), 0_i64..20), 1..8),
    ) {
        check(&sub, now)?;
        for (changes, days) in calls {
            now += SignedDuration::from_hours(days * 24);
            let from = sub.status_at(now);
            let Ok(Some(AppliedChange { after: next, .. })) = sub.update(&changes, now) else { continue };
            let to = next.status_at(now);
            // Expired by `ends_at`, or by an allowed transition.
            let by_date = to == SubscriptionStatus::Expired;
            prop_assert!(from == to || from.allowed_transitions().contains(&to) || by_date, "{} to {}", from, to);
            prop_assert!(to != SubscriptionStatus::Pending || from == SubscriptionStatus::Pending);
            if from == SubscriptionStatus::Expired && to != SubscriptionStatus::Expired {
                let ahead = |date: Option<Option<Timestamp>>| date.flatten().is_some_and(|date| date > now);
                prop_assert!(ahead(changes.renews_at) || ahead(changes.ends_at));
            }
            prop_assert_eq!(next.user, sub.user);
            prop_assert_eq!(next.created_at, sub.created_at);
            sub = next;
            check(&sub, now)?;
        }
    }

    #[test]
    fn cancelling_never_grants_access((sub, now) in any_subscription(), days in 0_i64..20) {
        let now = now + SignedDuration::from_hours(days * 24);
        if let Ok(Some(AppliedChange { after: cancelled, .. })) = sub.update(&only_status(SubscriptionStatus::Cancelled), now) {
            for later in 0..200 {
                let later = now + SignedDuration::from_hours(later * 12);
                prop_assert!(sub.has_access(later) || !cancelled.has_access(later), "at {}", later);
            }
        }
    }

    /// All current values together change nothing. With one field changed, the effect is that of
    /// the field alone.
    #[test]
    fn current_values_sent_back_change_nothing((sub, now) in any_subscription(), wanted in any_changes(), field in 0..10) {
        let all = unchanged(&sub, now);
        prop_assert_eq!(sub.update(&all, now), Ok(None));
        let (mut alone, mut among) = (SubscriptionChanges::default(), all);
        macro_rules! only {
            ($name:ident) => {{
                alone.$name.clone_from(&wanted.$name);
                if wanted.$name.is_some() {
                    among.$name = wanted.$name;
                }
            }};
        }
        match field {
            0 => only!(offer),
            1 => only!(external_id),
            2 => only!(billing_cycle),
            3 => only!(status),
            4 => {
                only!(is_active);
                // With a status in the request, `is_active` is never an error.
                alone.status = among.status;
            }
            5 => only!(starts_at),
            6 => only!(renews_at),
            7 => only!(price),
            8 => only!(quantity),
            _ => only!(ends_at),
        }
        let (by_field, by_all) = (sub.update(&alone, now), sub.update(&among, now));
        // A date in the request reopens an expired subscription; the current one may be in the
        // future.
        let reopened = alone.status == Some(SubscriptionStatus::Active) && sub.status_at(now) == SubscriptionStatus::Expired;
        if reopened {
            let dated = SubscriptionChanges { renews_at: Some(sub.renews_at), ends_at: Some(sub.ends_at), ..alone };
            prop_assert_eq!(&sub.update(&dated, now), &by_all);
        } else {
            prop_assert_eq!(&by_field, &by_all);
        }
        if let Ok(Some(AppliedChange { after: next, .. })) = by_field {
            // Fields that do not depend on the changed one stay.
            let before = sub.as_of(now);
            prop_assert!(field == 1 || next.external_id == before.external_id);
            prop_assert!(field == 0 || next.plan == before.plan);
            prop_assert!(field == 0 || field == 2 || next.billing_cycle == before.billing_cycle);
            prop_assert!(field == 8 || next.quantity == before.quantity);
            prop_assert!([0, 2, 7].contains(&field) || next.custom_price == before.custom_price);
            prop_assert!(field == 5 || next.starts_at == before.starts_at);
            prop_assert!(field == 4 || next.suspended == before.suspended);
            prop_assert!([0, 2, 3, 6].contains(&field) || next.renews_at == before.renews_at);
            prop_assert!([3, 9].contains(&field) || next.ends_at == before.ends_at);
            prop_assert!([3, 9].contains(&field) || next.status == before.status);
        }
    }
}
