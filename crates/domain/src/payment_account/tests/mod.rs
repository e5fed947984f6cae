//! Convergence: records equal those of the history in order, however notifications arrive.

use jiff::Timestamp;

use super::*;
use crate::{Quantity, SubscriptionStatus};
use history::History;
use provider::{DAY, Object};
use random_deliveries::drain;
use steps::Step;
use stored_facts::sample_subscription;
use world::{LEASE, Report, World};

mod exhaustive_orders;
mod history;
mod provider;
mod random_deliveries;
mod steps;
mod stored_facts;
mod world;

fn status(world: &World) -> SubscriptionStatus {
    world.subscription.as_ref().unwrap().status
}

#[test]
fn update_before_creation_creates_one_record() {
    let history = History::daily(&[Step::StartPending, Step::Renew]);
    let expected = history.apply_in_order();
    let mut provider = history.provider();
    let mut payloads = Vec::new();
    for index in 0..2 {
        for object in history.take(index, &mut provider) {
            payloads.push(Report::read(&provider, object));
        }
    }
    // The update of the subscription, its payment, and then its creation.
    payloads.rotate_left(1);
    let mut world = World::new(provider.now);
    for payload in payloads {
        world.apply_payload(payload);
        assert_eq!(
            status(&world),
            SubscriptionStatus::Active,
            "not pending again"
        );
    }
    expected.check(&world, format_args!("updated before created"));
    let changes = |object| {
        world
            .events
            .iter()
            .filter(|event| event.object == object)
            .count()
    };
    assert_eq!(changes(Object::Subscription), 1);
    assert_eq!(changes(Object::Invoice(0)), 1);
}

#[test]
fn payment_before_its_subscription_waits() {
    let history = History::daily(&[Step::StartActive]);
    let expected = history.apply_in_order();
    let mut provider = history.provider();
    history.take(0, &mut provider);
    let mut world = World::new(provider.now);
    world.hint(Object::Invoice(0));
    let lease = world.claim(Object::Invoice(0)).unwrap();
    let report = Report::read(&provider, Object::Invoice(0));
    world.apply_fetched(lease, report);
    assert_eq!(world.dirty_objects(), [Object::Subscription]);
    drain(&mut world, &provider);
    expected.check(&world, format_args!("payment first"));
}

#[test]
fn two_events_for_one_change_give_one_event() {
    let history = History::daily(&[Step::StartPending, Step::Touch, Step::Touch]);
    let mut provider = history.provider();
    let mut world = World::new(provider.now);
    for index in 0..3 {
        history.take(index, &mut provider);
        world.now = provider.now;
        world.hint(Object::Subscription);
        drain(&mut world, &provider);
    }
    assert_eq!(world.events.len(), 1);
}

#[test]
fn stale_fetch_behind_a_newer_one_is_fenced() {
    let history = History::daily(&[Step::StartActive, Step::Cancel]);
    let mut provider = history.provider();
    let mut world = World::new(provider.now);
    history.take(0, &mut provider);
    world.hint(Object::Subscription);
    let slow = world.claim(Object::Subscription).unwrap();
    let stale = Report::read(&provider, Object::Subscription);
    assert_eq!(
        world.claim(Object::Subscription),
        None,
        "one fetch at a time"
    );

    history.take(1, &mut provider);
    world.hint(Object::Subscription);
    world.now += LEASE;
    let fast = world.claim(Object::Subscription).unwrap();
    let fresh = Report::read(&provider, Object::Subscription);
    assert_eq!(world.apply_fetched(fast, fresh), FetchedDecision::Apply);
    assert_eq!(world.apply_fetched(slow, stale), FetchedDecision::Fenced);
    assert_eq!(status(&world), SubscriptionStatus::Cancelled);
    assert_eq!(world.dirty_objects(), []);
}

#[test]
fn hint_during_a_fetch_leads_to_another_fetch() {
    let history = History::daily(&[Step::StartActive, Step::Cancel]);
    let mut provider = history.provider();
    let mut world = World::new(provider.now);
    history.take(0, &mut provider);
    world.hint(Object::Subscription);
    let lease = world.claim(Object::Subscription).unwrap();
    let report = Report::read(&provider, Object::Subscription);
    history.take(1, &mut provider);
    world.hint(Object::Subscription);
    world.apply_fetched(lease, report);
    assert_eq!(status(&world), SubscriptionStatus::Active);
    assert_eq!(world.dirty_objects(), [Object::Subscription]);
    drain(&mut world, &provider);
    assert_eq!(status(&world), SubscriptionStatus::Cancelled);
}

#[test]
fn response_of_a_lagging_replica_is_not_applied() {
    let history = History::daily(&[Step::StartActive, Step::Cancel]);
    let mut provider = history.provider();
    let mut world = World::new(provider.now);
    history.take(0, &mut provider);
    let old = Report::read(&provider, Object::Subscription);
    history.take(1, &mut provider);
    world.hint(Object::Subscription);
    drain(&mut world, &provider);
    world.hint(Object::Subscription);
    let lease = world.claim(Object::Subscription).unwrap();
    assert_eq!(world.apply_fetched(lease, old), FetchedDecision::Outdated);
    world.release(Object::Subscription, lease);
    assert_eq!(status(&world), SubscriptionStatus::Cancelled);
    assert_eq!(
        world.dirty_objects(),
        [Object::Subscription],
        "it is fetched again"
    );
    drain(&mut world, &provider);
}

#[test]
fn listed_fact_never_replaces_a_newer_one() {
    let history = History::daily(&[Step::StartActive, Step::Cancel]);
    let mut provider = history.provider();
    let mut world = World::new(provider.now);
    history.take(0, &mut provider);
    let page = Report::read(&provider, Object::Subscription);
    // A worker stalls with the response of the first state, and its lease expires.
    world.hint(Object::Subscription);
    let slow = world.claim(Object::Subscription).unwrap();
    let stale = Report::read(&provider, Object::Subscription);
    history.take(1, &mut provider);
    assert!(world.apply_listed(page.clone()));
    assert!(world.subscription.is_none(), "a worker has the lease");
    world.now += LEASE;
    world.apply_listed(Report::read(&provider, Object::Subscription));
    assert_eq!(status(&world), SubscriptionStatus::Cancelled);
    assert_eq!(world.apply_fetched(slow, stale), FetchedDecision::Fenced);
    world.apply_listed(page);
    assert_eq!(status(&world), SubscriptionStatus::Cancelled);
    drain(&mut world, &provider);
    assert_eq!(status(&world), SubscriptionStatus::Cancelled);
}

/// Payloads of the same second: the later status wins, whichever arrives first.
#[test]
fn tie_within_a_second_is_decided_by_the_status() {
    let steps = [
        (DAY.as_secs(), Step::StartActive),
        (0, Step::Cancel),
        (0, Step::End),
    ];
    let history = History {
        reports_prices: false,
        has_versions: true,
        steps: steps.to_vec(),
    };
    let mut provider = history.provider();
    let mut payloads = Vec::new();
    for index in 0..3 {
        history.take(index, &mut provider);
        payloads.push(Report::read(&provider, Object::Subscription));
    }
    for _ in 0..3 {
        payloads.rotate_left(1);
        let mut world = World::new(provider.now);
        for payload in &payloads {
            world.apply_payload(payload.clone());
        }
        assert_eq!(status(&world), SubscriptionStatus::Expired);
    }
}

/// A strict comparison of seconds would drop the second payload of a second.
#[test]
fn tie_with_the_same_status_does_not_depend_on_the_order() {
    let provider_now = Timestamp::from_second(1_800_000_000).unwrap();
    let payload = |quantity| ReportedFact {
        fact: SubscriptionFact {
            quantity: Quantity::try_from(quantity).unwrap(),
            ..sample_subscription()
        },
        version: Some(provider_now),
    };
    let records = [[1, 2], [2, 1]].map(|order| {
        let mut world = World::new(provider_now);
        for quantity in order {
            world.apply_payload(Report::Subscription(payload(quantity)));
        }
        world.records(provider_now)
    });
    assert_eq!(records[0], records[1]);
}
