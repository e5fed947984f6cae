//! Due transitions and payments, case by case.

use std::fmt::Write;

use super::super::tests::{day, subscription};
use super::*;
use crate::{BillingCycle, Id};

pub(super) const DUNNING: Dunning = Dunning {
    since: Timestamp::UNIX_EPOCH,
    unpaid_after: 7,
    expired_after: 30,
};
pub(super) const MANAGED: Lifecycle = Lifecycle::Managed(DUNNING);

/// Returns all transitions due by `now`.
fn transitions(sub: &Subscription, lifecycle: &Lifecycle, now: Timestamp) -> Vec<DueTransition> {
    let mut transitions: Vec<DueTransition> = Vec::new();
    while let Some(due) = transitions
        .last()
        .map_or(sub, |last| &last.after)
        .next_transition(lifecycle, now)
    {
        transitions.push(due);
    }
    transitions
}

fn with_days(transitions: &[DueTransition]) -> String {
    let label = |due: &DueTransition| {
        let day = due.at.duration_since(day(0)).as_hours() / 24;
        format!("{:?} {day}", due.transition)
    };
    transitions.iter().map(label).collect::<Vec<_>>().join(", ")
}

fn money(minor: i64) -> Money {
    Money::from_minor_units(minor, "USD".parse().unwrap()).unwrap()
}

#[test]
fn transitions_in_100_days_by_status() {
    let mut grid = String::new();
    for status in SubscriptionStatus::ALL {
        let mut sub = subscription(status);
        // Renewal dates are 30 days from the anchor in every month.
        sub.anchor = day(30);
        let mut row = |label: &str, sub: &Subscription, lifecycle| {
            let due = with_days(&transitions(sub, lifecycle, day(100)));
            let due = if due.is_empty() { "-" } else { &due };
            writeln!(grid, "{:10} {label:13} {due}", status.as_str()).unwrap();
        };
        row("recorded", &sub, &Lifecycle::Recorded);
        row("managed", &sub, &MANAGED);
        sub.prepaid = 1;
        row("one ahead", &sub, &MANAGED);
        sub.prepaid = 0;
        sub.plan.price = money(0);
        row("free", &sub, &MANAGED);
        sub.external_id = Some("sub_42".parse().unwrap());
        row("a provider's", &sub, &MANAGED);
    }
    insta::assert_snapshot!(grid);
}

#[test]
fn payment_effect_by_status() {
    let mut grid = String::new();
    for status in SubscriptionStatus::ALL {
        let sub = subscription(status);
        for (label, amount) in [("enough", money(1_999)), ("too little", money(1_998))] {
            let paid = sub.apply_payment(amount, &MANAGED, day(5));
            let cell = paid.map_or("-".to_owned(), |paid| {
                let number = |at: Timestamp| at.duration_since(day(0)).as_hours() / 24;
                format!(
                    "{}, renews on day {}, {} ahead; paid the period of day {}",
                    paid.after.status,
                    number(paid.after.renews_at.unwrap()),
                    paid.after.prepaid,
                    number(paid.period.unwrap()),
                )
            });
            writeln!(grid, "{:10} {label:11} {cell}", status.as_str()).unwrap();
        }
    }
    insta::assert_snapshot!(grid);
    let euros = Money::from_minor_units(5_000, "EUR".parse().unwrap()).unwrap();
    assert_eq!(
        subscription(SubscriptionStatus::PastDue).apply_payment(euros, &MANAGED, day(5)),
        None
    );
}

/// The next renewal is counted from the anchor; missed periods are not charged.
#[test]
fn late_payment_renews_at_the_next_anchor_date() {
    let mut sub = subscription(SubscriptionStatus::Active);
    sub.billing_cycle = BillingCycle::Weekly;
    sub.plan.billing_cycle = BillingCycle::Weekly;
    sub.renews_at = Some(day(7));
    let late = transitions(&sub, &MANAGED, day(30));
    assert_eq!(with_days(&late), "PastDue 7, Unpaid 14");
    let late = &late.last().unwrap().after;
    let paid = late.apply_payment(money(1_999), &MANAGED, day(30)).unwrap();
    assert_eq!(paid.period, Some(day(7)));
    assert_eq!(paid.after.renews_at, Some(day(35)));
    assert_eq!(
        (paid.after.status, paid.after.past_due_since),
        (SubscriptionStatus::Active, None)
    );
    // Further payments pay for the following periods.
    let second = paid
        .after
        .apply_payment(money(1_999), &MANAGED, day(31))
        .unwrap();
    let third = second
        .after
        .apply_payment(money(1_999), &MANAGED, day(32))
        .unwrap();
    assert_eq!(
        (second.period, third.period),
        (Some(day(35)), Some(day(42)))
    );
    assert_eq!(
        with_days(&transitions(&third.after, &MANAGED, day(50))),
        "Renewed 35, Renewed 42, PastDue 49"
    );
}

/// Expires instead of renewing, also before the dunning deadline.
#[test]
fn end_before_or_at_renewal_expires() {
    let mut sub = subscription(SubscriptionStatus::Active);
    sub.ends_at = Some(day(30));
    sub.prepaid = 1;
    let expired = transitions(&sub, &MANAGED, day(90));
    assert_eq!(with_days(&expired), "Expired 30");
    sub.ends_at = Some(day(40));
    sub.prepaid = 0;
    let expired = transitions(&sub, &MANAGED, day(90));
    assert_eq!(with_days(&expired), "PastDue 30, Unpaid 37, Expired 40");
    assert_eq!(expired.last().unwrap().after.ends_at, Some(day(40)));
}

#[test]
fn transitions_before_managed_mode_are_due_at_its_start() {
    let mut rules = DUNNING;
    rules.since = day(400);
    let sub = subscription(SubscriptionStatus::Active);
    let due = transitions(&sub, &Lifecycle::Managed(rules), day(410));
    assert_eq!(with_days(&due), "PastDue 400, Unpaid 407");
    let mut free = sub.clone();
    free.plan.price = money(0);
    let due = transitions(&free, &Lifecycle::Managed(rules), day(410));
    assert_eq!(due.len(), 1, "missed periods are skipped");
    assert!(due[0].after.renews_at.unwrap() > day(400));
}

#[test]
fn transition_due_before_an_update_follows_it() {
    let mut sub = subscription(SubscriptionStatus::Active);
    sub.updated_at = day(33);
    let due = sub.next_transition(&MANAGED, day(34)).unwrap();
    assert!(due.at > day(33));
    assert_eq!(due.after.past_due_since, Some(due.at));
}

#[test]
fn manual_reactivation_grants_the_current_period() {
    let late = transitions(&subscription(SubscriptionStatus::Active), &MANAGED, day(40));
    let late = &late.last().unwrap().after;
    let changes = crate::SubscriptionChanges {
        status: Some(SubscriptionStatus::Active),
        ..crate::SubscriptionChanges::default()
    };
    let active = late.update(&changes, day(40)).unwrap().unwrap();
    assert_eq!(active.renews_at, Some(day(30)));
    let recorded = active
        .clone()
        .with_current_period_granted(late, &Lifecycle::Recorded);
    assert_eq!(recorded, active);
    let granted = active.with_current_period_granted(late, &MANAGED);
    assert!(granted.renews_at.unwrap() > day(40));
    assert_eq!(granted.next_transition(&MANAGED, day(41)), None);
}

#[test]
fn equal_or_zero_deadlines_skip_states() {
    let rules = |unpaid_after, expired_after| {
        Lifecycle::Managed(Dunning {
            unpaid_after,
            expired_after,
            ..DUNNING
        })
    };
    let sub = subscription(SubscriptionStatus::Active);
    let due = |lifecycle| with_days(&transitions(&sub, &lifecycle, day(90)));
    assert_eq!(due(rules(10, 10)), "PastDue 30, Expired 40");
    assert_eq!(due(rules(0, 10)), "PastDue 30, Unpaid 30, Expired 40");
    assert_eq!(due(rules(0, 0)), "PastDue 30, Expired 30");
}

#[test]
fn cancelled_subscription_keeps_prepaid_periods() {
    let mut sub = subscription(SubscriptionStatus::Active);
    sub.anchor = day(30);
    sub.prepaid = 2;
    let changes = crate::SubscriptionChanges {
        status: Some(SubscriptionStatus::Cancelled),
        ..crate::SubscriptionChanges::default()
    };
    let cancelled = sub.update(&changes, day(5)).unwrap().unwrap();
    let third = BillingCycle::Monthly.nth_renewal(day(30), 2);
    assert_eq!(cancelled.ends_at, third);
}

#[test]
fn prepaid_periods_are_used_one_by_one() {
    let mut sub = subscription(SubscriptionStatus::Active);
    sub.billing_cycle = BillingCycle::Daily;
    sub.plan.billing_cycle = BillingCycle::Daily;
    sub.renews_at = Some(day(1));
    sub.prepaid = 3;
    let mut changed = sub.clone();
    changed.suspended = true;
    changed.updated_at = day(3);
    for sub in [sub, changed] {
        let due = transitions(&sub, &MANAGED, day(3));
        let last = &due.last().unwrap().after;
        assert_eq!((due.len(), last.prepaid), (3, 0));
        assert_eq!(last.renews_at, Some(day(4)));
    }
}

#[test]
fn past_due_subscription_on_a_free_plan_becomes_active() {
    let late = subscription(SubscriptionStatus::PastDue);
    let offer = crate::Offer {
        plan: crate::PlanId::new(uuid::Uuid::from_u128(9)),
        price: money(0),
        billing_cycle: BillingCycle::Monthly,
        is_active: true,
    };
    let changes = crate::SubscriptionChanges {
        offer: Some(offer),
        ..crate::SubscriptionChanges::default()
    };
    let free = late.update(&changes, day(40)).unwrap().unwrap();
    assert_eq!(
        free.clone()
            .with_current_period_granted(&late, &Lifecycle::Recorded)
            .status,
        SubscriptionStatus::PastDue
    );
    let free = free.with_current_period_granted(&late, &MANAGED);
    assert_eq!(
        (free.status, free.past_due_since),
        (SubscriptionStatus::Active, None)
    );
    assert!(free.renews_at.unwrap() > day(40));
}

#[test]
fn payment_in_a_lifetime_trial_activates() {
    let mut sub = subscription(SubscriptionStatus::OnTrial);
    sub.billing_cycle = BillingCycle::Lifetime;
    sub.plan.billing_cycle = BillingCycle::Lifetime;
    sub.renews_at = None;
    let paid = sub.apply_payment(money(1_999), &MANAGED, day(5)).unwrap();
    assert_eq!(
        (paid.after.status, paid.after.renews_at),
        (SubscriptionStatus::Active, None)
    );
    assert_eq!(paid.period, Some(day(0)));
}
