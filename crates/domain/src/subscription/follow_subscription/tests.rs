//! Which fields of a subscription follow a fact, and which stay.

use uuid::Uuid;

use super::*;
use crate::{
    Id, LifecycleKind, Money, PlanReference, Quantity, SubscriptionChanges,
    subscription::{
        Transition,
        billing::fixtures::DUNNING,
        tests::{day, offer, subscription},
    },
};

pub(super) fn money(minor: i64, code: &str) -> Money {
    Money::from_minor_units(minor, code.parse().unwrap()).unwrap()
}

/// A monthly subscription from day 0 that renews on day 30, without a reported price.
pub(super) fn fact(status: SubscriptionStatus) -> SubscriptionFact {
    SubscriptionFact {
        external_id: "sub_1".parse().unwrap(),
        plan: PlanReference {
            variant: "price_1".parse().unwrap(),
            product: None,
        },
        quantity: Quantity::default(),
        price: None,
        status,
        starts_at: day(0),
        renews_at: Some(day(30)),
        ends_at: match status {
            SubscriptionStatus::Cancelled => Some(day(30)),
            SubscriptionStatus::Expired => Some(day(1)),
            _ => None,
        },
        trial_ends_at: None,
        late_since: None,
    }
}

pub(super) fn create(
    fact: &SubscriptionFact,
    lifecycle: Lifecycle,
    now: Timestamp,
) -> Subscription {
    let followed = FollowedSubscription::New {
        id: SubscriptionId::new(Uuid::from_u128(1)),
        user: UserId::new(Uuid::from_u128(2)),
        external_user_id: None,
        offer: &offer(3, BillingCycle::Monthly),
        lifecycle,
    };
    let applied = Subscription::follow(&followed, fact, now).unwrap();
    assert_eq!(applied.entries().count(), 0);
    applied.after
}

pub(super) fn follow(
    record: &Subscription,
    last: Option<&SubscriptionFact>,
    fact: &SubscriptionFact,
    now: Timestamp,
) -> Option<AppliedChange> {
    let offer = offer(3, BillingCycle::Monthly);
    let followed = FollowedSubscription::Existing {
        record,
        last,
        offer: fact.selects_plan(last).then_some(&offer),
    };
    Subscription::follow(&followed, fact, now)
}

#[test]
fn every_status_follows_every_status() {
    for from in SubscriptionStatus::ALL {
        for to in SubscriptionStatus::ALL {
            let (first, second) = (fact(from), fact(to));
            let record = create(&first, Lifecycle::Recorded, day(2));
            let applied = follow(&record, Some(&first), &second, day(3));
            if from == to {
                assert_eq!(applied, None, "{from}");
                continue;
            }
            let after = applied.unwrap().after;
            assert_eq!(after.status, to, "from {from}");
            assert_eq!(after.updated_at, day(3));
            assert_eq!(after.created_at, day(2));
            assert_eq!(after.ends_at, second.ends_at);
        }
    }
}

#[test]
fn operator_change_stands_until_the_next_fact() {
    let active = fact(SubscriptionStatus::Active);
    let record = create(&active, Lifecycle::Recorded, day(1));
    let changes = SubscriptionChanges {
        status: Some(SubscriptionStatus::Paused),
        quantity: Some(Quantity::try_from(7).unwrap()),
        ..SubscriptionChanges::default()
    };
    let mut operated = record.update(&changes, day(2)).unwrap().unwrap().after;
    operated.suspended = true;
    assert_eq!(follow(&operated, Some(&active), &active, day(3)), None);

    let renewed = SubscriptionFact {
        renews_at: Some(day(60)),
        ..active.clone()
    };
    let after = follow(&operated, Some(&active), &renewed, day(31))
        .unwrap()
        .after;
    assert_eq!(after.status, SubscriptionStatus::Active);
    assert_eq!(after.quantity, Quantity::default());
    assert_eq!(after.renews_at, Some(day(60)));
    assert!(
        after.suspended,
        "a suspension is not the payment provider's"
    );
}

#[test]
fn plan_follows_what_was_bought_and_not_the_catalog() {
    let basic = fact(SubscriptionStatus::Active);
    let record = create(&basic, Lifecycle::Recorded, day(1));
    let pro = SubscriptionFact {
        plan: PlanReference {
            variant: "price_2".parse().unwrap(),
            product: None,
        },
        ..basic.clone()
    };
    assert!(pro.selects_plan(Some(&basic)));
    let offer = Offer {
        is_active: false,
        ..offer(4, BillingCycle::Yearly)
    };
    let followed = FollowedSubscription::Existing {
        record: &record,
        last: Some(&basic),
        offer: Some(&offer),
    };
    let upgraded = Subscription::follow(&followed, &pro, day(2)).unwrap().after;
    assert_eq!(
        upgraded.plan.id, offer.plan,
        "an inactive plan is followed too"
    );
    assert_eq!(upgraded.billing_cycle, BillingCycle::Yearly);

    // The same variant selects nothing, so a plan that an operator has chosen stays.
    let renewed = SubscriptionFact {
        renews_at: Some(day(400)),
        ..basic.clone()
    };
    assert!(!renewed.selects_plan(Some(&basic)));
    let followed = FollowedSubscription::Existing {
        record: &upgraded,
        last: Some(&basic),
        offer: Some(&super::super::tests::offer(3, BillingCycle::Monthly)),
    };
    let after = Subscription::follow(&followed, &renewed, day(3))
        .unwrap()
        .after;
    assert_eq!(after.plan.id, offer.plan);
}

#[test]
fn reported_price_replaces_the_price_of_the_plan() {
    let euros = SubscriptionFact {
        price: Some(ReportedPrice {
            amount: money(900, "EUR"),
            billing_cycle: BillingCycle::Quarterly,
        }),
        ..fact(SubscriptionStatus::Active)
    };
    let record = create(&euros, Lifecycle::Recorded, day(1));
    assert_eq!(record.price(), Some(money(900, "EUR")));
    assert_eq!(record.billing_cycle, BillingCycle::Quarterly);

    // Credit from managed billing is in the currency of the plan.
    let managed = Subscription {
        credit: 500,
        ..subscription(SubscriptionStatus::Active)
    };
    let after = follow(&managed, None, &euros, day(1)).unwrap().after;
    assert_eq!(after.price(), Some(money(1_999, "USD")));
    assert_eq!(after.credit, 500);
    let plan_in_euros = Offer {
        price: money(900, "EUR"),
        ..offer(4, BillingCycle::Yearly)
    };
    let followed = FollowedSubscription::Existing {
        record: &managed,
        last: None,
        offer: Some(&plan_in_euros),
    };
    let after = Subscription::follow(&followed, &euros, day(1))
        .unwrap()
        .after;
    assert_eq!(after.plan.id, plan_in_euros.plan);
    assert_eq!(after.price(), Some(money(1_999, "USD")));
}

#[test]
fn terms_that_a_client_agreed_on_stay_at_the_first_fact() {
    let record = Subscription {
        custom_price: Some(money(500, "USD")),
        ..subscription(SubscriptionStatus::Active)
    };
    let first = fact(SubscriptionStatus::Active);
    let after = follow(&record, None, &first, day(1)).unwrap().after;
    assert_eq!(after.price(), Some(money(500, "USD")));
    assert_eq!(after.external_id, Some(first.external_id));
}

#[test]
fn payment_provider_takes_over_from_managed_billing() {
    let managed = Lifecycle::Managed(DUNNING);
    let first = fact(SubscriptionStatus::Active);
    let record = create(&first, managed, day(1));
    assert_eq!(record.lifecycle_kind(), LifecycleKind::Provider);
    assert_eq!((record.due_at(), record.managed_since), (None, None));

    // Without its external id, the service manages the subscription.
    let changes = SubscriptionChanges {
        external_id: Some(None),
        ..SubscriptionChanges::default()
    };
    let managed = record.update(&changes, day(2)).unwrap().unwrap().after;
    assert_eq!(managed.lifecycle_kind(), LifecycleKind::Managed);
    assert_eq!(follow(&managed, Some(&first), &first, day(3)), None);
    let renewed = SubscriptionFact {
        renews_at: Some(day(60)),
        ..first.clone()
    };
    let applied = follow(&managed, Some(&first), &renewed, day(31)).unwrap();
    let due: Vec<Transition> = applied.due.iter().map(|due| due.transition).collect();
    assert_eq!(
        due,
        [Transition::PastDue],
        "what was due before comes first"
    );
    assert_eq!(applied.after.lifecycle_kind(), LifecycleKind::Provider);
    assert_eq!(applied.after.status, SubscriptionStatus::Active);
    assert_eq!(applied.after.managed_since, None);
    assert_eq!(applied.after.late_since, None);
}

#[test]
fn expiry_that_is_not_stored_yet_comes_before_the_fact() {
    let cancelled = fact(SubscriptionStatus::Cancelled);
    let record = create(&cancelled, Lifecycle::Recorded, day(1));
    let resumed = SubscriptionFact {
        renews_at: Some(day(60)),
        ..fact(SubscriptionStatus::Active)
    };
    let applied = follow(&record, Some(&cancelled), &resumed, day(31)).unwrap();
    assert_eq!(applied.due.len(), 1);
    assert_eq!(applied.due[0].at, day(30));
    assert_eq!(applied.after.status, SubscriptionStatus::Active);
    assert_eq!(applied.after.ends_at, None);

    let expired = SubscriptionFact {
        ends_at: Some(day(30)),
        ..fact(SubscriptionStatus::Expired)
    };
    let applied = follow(&record, Some(&cancelled), &expired, day(31));
    assert_eq!(applied, None, "the end was known, and the worker stores it");
}

#[test]
fn missing_dates_get_the_closest_known_one() {
    let without_end = |status| SubscriptionFact {
        ends_at: None,
        ..fact(status)
    };
    let cancelled = without_end(SubscriptionStatus::Cancelled);
    let record = create(&cancelled, Lifecycle::Recorded, day(1));
    assert_eq!(record.ends_at, Some(day(30)), "the end of the paid time");
    let expired = without_end(SubscriptionStatus::Expired);
    let after = follow(&record, Some(&cancelled), &expired, day(2))
        .unwrap()
        .after;
    assert_eq!(after.ends_at, Some(day(2)), "not in the future");
    let record = create(&expired, Lifecycle::Recorded, day(9));
    assert_eq!(record.ends_at, Some(day(9)));

    let late = fact(SubscriptionStatus::PastDue);
    let record = create(&late, Lifecycle::Recorded, day(31));
    assert_eq!(record.late_since, Some(day(31)));
    let unpaid = fact(SubscriptionStatus::Unpaid);
    let record = follow(&record, Some(&late), &unpaid, day(38))
        .unwrap()
        .after;
    assert_eq!(record.late_since, Some(day(31)));
    let known = SubscriptionFact {
        late_since: Some(day(30)),
        ..unpaid.clone()
    };
    let record = follow(&record, Some(&unpaid), &known, day(39))
        .unwrap()
        .after;
    assert_eq!(record.late_since, Some(day(30)));
}

#[test]
fn trial_is_kept_after_its_end() {
    let trial = SubscriptionFact {
        trial_ends_at: None,
        ..fact(SubscriptionStatus::OnTrial)
    };
    let record = create(&trial, Lifecycle::Recorded, day(1));
    assert_eq!(record.trial.unwrap().ends_at, day(30));
    let active = SubscriptionFact {
        renews_at: Some(day(60)),
        ..fact(SubscriptionStatus::Active)
    };
    let after = follow(&record, Some(&trial), &active, day(30))
        .unwrap()
        .after;
    assert_eq!(after.trial, record.trial);
}

#[test]
fn record_that_follows_its_fact_has_no_differences() {
    for status in SubscriptionStatus::ALL {
        let reported = fact(status);
        let record = create(&reported, Lifecycle::Recorded, day(2));
        // Also after the reported end, when the record has expired by itself.
        for now in [day(2), day(29), day(31)] {
            assert_eq!(record.differences_from(&reported, now), [], "{status}");
        }
        let without_end = SubscriptionFact {
            ends_at: None,
            ..reported
        };
        let record = create(&without_end, Lifecycle::Recorded, day(2));
        assert_eq!(
            record.differences_from(&without_end, day(3)),
            [],
            "{status}"
        );
    }
}

#[test]
fn change_by_an_operator_is_a_difference() {
    let active = fact(SubscriptionStatus::Active);
    let record = create(&active, Lifecycle::Recorded, day(1));
    let changes = SubscriptionChanges {
        status: Some(SubscriptionStatus::Paused),
        quantity: Some(Quantity::try_from(7).unwrap()),
        ..SubscriptionChanges::default()
    };
    let mut operated = record.update(&changes, day(2)).unwrap().unwrap().after;
    operated.suspended = true;
    let differences = operated.differences_from(&active, day(3));
    let differences: Vec<[&str; 3]> = differences
        .iter()
        .map(|found| [found.field, &found.reported, &found.recorded])
        .collect();
    assert_eq!(
        differences,
        [
            ["status", "active", "paused"],
            ["suspended", "false", "true"],
            ["quantity", "1", "7"],
        ]
    );
}
