//! What no sequence of calls can do, tried ten thousand times each.

use jiff::SignedDuration;
use proptest::prelude::*;
use uuid::Uuid;

use super::{
    tests::{offer, only_status},
    *,
};
use crate::{Id, NewSubscription, SubscriptionId, UserId, subscription::tests::day};

/// All that GET shows of it at `now`, to be sent back.
fn shown(one: &Subscription, now: Timestamp) -> Changes {
    Changes {
        offer: Some(Offer {
            plan: one.terms.plan,
            price: one.terms.price,
            billing_cycle: one.terms.billing_cycle,
            is_active: true,
        }),
        external_id: Some(one.external_id.clone()),
        billing_cycle: Some(one.billing_cycle),
        status: Some(one.status_at(now)),
        is_active: Some(one.has_access(now)),
        starts_at: Some(one.starts_at),
        renews_at: Some(one.renews_at),
        ends_at: Some(one.ends_at),
    }
}

fn any_status() -> impl Strategy<Value = Status> {
    prop::sample::select(Status::ALL.to_vec())
}

fn any_cycle() -> impl Strategy<Value = BillingCycle> {
    prop::sample::select(BillingCycle::ALL.to_vec())
}

fn any_instant() -> impl Strategy<Value = Timestamp> {
    (-50_i64..100).prop_map(day)
}

/// Something that somebody sends: mostly a few fields, some of them null.
fn any_changes() -> impl Strategy<Value = Changes> {
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
            )| Changes {
                offer,
                external_id,
                billing_cycle,
                status,
                is_active,
                starts_at,
                renews_at,
                ends_at,
            },
        )
}

/// A subscription that somebody could have made, or found after a few calls.
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
    (new, steps).prop_filter_map("cannot be made", |(new, steps)| {
        let (billing_cycle, status, is_active, starts_at, renews_at, ends_at) = new;
        let new = NewSubscription {
            user: UserId::new(Uuid::from_u128(2)),
            external_id: None,
            billing_cycle: Some(billing_cycle),
            status: Some(status),
            is_active,
            starts_at,
            renews_at,
            ends_at,
        };
        let id = SubscriptionId::new(Uuid::from_u128(1));
        let mut now = day(0);
        let monthly = offer(7, BillingCycle::Monthly);
        let mut one = Subscription::start(new, &monthly, id, now).ok()?;
        for (changes, days) in steps {
            now += SignedDuration::from_hours(days * 24);
            if let Ok(Some(next)) = one.amend(&changes, now) {
                one = next;
            }
        }
        Some((one, now))
    })
}

/// What is true of every subscription at every instant.
fn check(one: &Subscription, now: Timestamp) -> Result<(), TestCaseError> {
    prop_assert!(one.renews_at.is_none_or(|renewal| renewal >= one.starts_at));
    prop_assert!(one.ends_at.is_none_or(|end| end >= one.starts_at));
    prop_assert!(one.billing_cycle != BillingCycle::Lifetime || one.renews_at.is_none());
    let ends = matches!(one.status, Status::Cancelled | Status::Expired);
    prop_assert!(!ends || one.ends_at.is_some());
    if one.has_access(now) {
        prop_assert!(
            one.ends_at.is_none_or(|end| now < end),
            "access outlives ends_at"
        );
        prop_assert!(one.starts_at <= now && !one.suspended);
    }
    for later in 0..200 {
        let later = now + SignedDuration::from_hours(later * 24);
        let access = one.has_access(later);
        prop_assert!(!access || one.ends_at.is_none_or(|end| later < end));
        prop_assert_eq!(one.settled(later).has_access(later), access);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn no_sequence_of_calls_leaves_what_the_table_forbids(
        (mut one, mut now) in any_subscription(),
        calls in prop::collection::vec((any_changes(), 0_i64..20), 1..8),
    ) {
        check(&one, now)?;
        for (changes, days) in calls {
            now += SignedDuration::from_hours(days * 24);
            let from = one.status_at(now);
            let Ok(Some(next)) = one.amend(&changes, now) else { continue };
            let to = next.status_at(now);
            // Ended by a date that somebody sent, or by the table.
            let by_date = to == Status::Expired;
            prop_assert!(from == to || from.may_become().contains(&to) || by_date, "{} to {}", from, to);
            prop_assert!(to != Status::Pending || from == Status::Pending);
            if from == Status::Expired && to != Status::Expired {
                let ahead = |date: Option<Option<Timestamp>>| date.flatten().is_some_and(|date| date > now);
                prop_assert!(ahead(changes.renews_at) || ahead(changes.ends_at));
            }
            prop_assert_eq!(next.user, one.user);
            prop_assert_eq!(next.created_at, one.created_at);
            one = next;
            check(&one, now)?;
        }
    }

    #[test]
    fn cancelling_never_grants_access((one, now) in any_subscription(), days in 0_i64..20) {
        let now = now + SignedDuration::from_hours(days * 24);
        if let Ok(Some(cancelled)) = one.amend(&only_status(Status::Cancelled), now) {
            for later in 0..200 {
                let later = now + SignedDuration::from_hours(later * 12);
                prop_assert!(one.has_access(later) || !cancelled.has_access(later), "at {}", later);
            }
        }
    }

    /// What is shown, sent back, changes nothing; with one field changed it does what that field alone does.
    #[test]
    fn what_is_shown_is_no_instruction((one, now) in any_subscription(), wish in any_changes(), field in 0..8) {
        let all = shown(&one, now);
        prop_assert_eq!(one.amend(&all, now), Ok(None));
        let (mut alone, mut among) = (Changes::default(), all);
        macro_rules! only {
            ($name:ident) => {{
                alone.$name.clone_from(&wish.$name);
                if wish.$name.is_some() {
                    among.$name = wish.$name;
                }
            }};
        }
        match field {
            0 => only!(offer),
            1 => only!(external_id),
            2 => only!(billing_cycle),
            3 => only!(status),
            4 => only!(is_active),
            5 => only!(starts_at),
            6 => only!(renews_at),
            _ => only!(ends_at),
        }
        let (by_itself, by_all) = (one.amend(&alone, now), one.amend(&among, now));
        // What is over is opened by a date that is sent; the shown one may be it.
        let reopened = alone.status == Some(Status::Active) && one.status_at(now) == Status::Expired;
        if reopened {
            let dated = Changes { renews_at: Some(one.renews_at), ends_at: Some(one.ends_at), ..alone };
            prop_assert_eq!(&one.amend(&dated, now), &by_all);
        } else {
            prop_assert_eq!(&by_itself, &by_all);
        }
        if let Ok(Some(next)) = by_itself {
            // What no field leads to stays.
            let before = one.settled(now);
            prop_assert!(field == 1 || next.external_id == before.external_id);
            prop_assert!(field == 0 || next.terms == before.terms);
            prop_assert!(field == 0 || field == 2 || next.billing_cycle == before.billing_cycle);
            prop_assert!(field == 5 || next.starts_at == before.starts_at);
            prop_assert!(field == 4 || next.suspended == before.suspended);
            prop_assert!([0, 2, 3, 6].contains(&field) || next.renews_at == before.renews_at);
            prop_assert!([3, 7].contains(&field) || next.ends_at == before.ends_at);
            prop_assert!([3, 7].contains(&field) || next.status == before.status);
        }
    }
}
