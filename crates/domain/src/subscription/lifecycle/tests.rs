//! Due transitions and payments, case by case.

use std::fmt::Write;

use super::super::{
    billing::fixtures::DUNNING,
    tests::{day, subscription},
};
use super::*;
use crate::{BillingCycle, Id, Money, PaymentId, PaymentPosting};

/// Managed mode since day 1.
const SINCE: Timestamp = Timestamp::constant(1_800_086_400, 0);
const MANAGED: Lifecycle = Lifecycle::Managed(Dunning {
    since: SINCE,
    ..DUNNING
});

/// The subscription of a tenant that was switched to managed mode on day 1.
fn managed(status: SubscriptionStatus) -> Subscription {
    Subscription {
        lifecycle: MANAGED,
        // Renewal dates are 30 days from the anchor in every month.
        anchor: day(30),
        ..subscription(status)
    }
}

fn number(at: Timestamp) -> i64 {
    at.duration_since(day(0)).as_hours() / 24
}

fn with_days(transitions: &[DueTransition]) -> String {
    let label = |due: &DueTransition| format!("{:?} {}", due.transition, number(due.at));
    transitions.iter().map(label).collect::<Vec<_>>().join(", ")
}

fn money(minor: i64) -> Money {
    Money::from_minor_units(minor, "USD".parse().unwrap()).unwrap()
}

#[test]
fn transitions_in_100_days_by_status() {
    let mut grid = String::new();
    for status in SubscriptionStatus::ALL {
        let mut sub = managed(status);
        let mut row = |label: &str, sub: &Subscription| {
            let due = with_days(&sub.due_transitions(day(100)));
            let due = if due.is_empty() { "-" } else { &due };
            writeln!(grid, "{:10} {label:13} {due}", status.as_str()).unwrap();
        };
        sub.lifecycle = Lifecycle::Recorded;
        row("recorded", &sub);
        sub.lifecycle = MANAGED;
        row("managed", &sub);
        sub.credit = 1_999;
        row("one ahead", &sub);
        sub.credit = 0;
        sub.plan.price = money(0);
        row("free", &sub);
        sub.external_id = Some("sub_42".parse().unwrap());
        row("a provider's", &sub);
    }
    insta::assert_snapshot!(grid);
}

#[test]
fn payment_effect_by_status() {
    let mut grid = String::new();
    for status in SubscriptionStatus::ALL {
        let sub = managed(status);
        for (label, amount) in [("enough", 1_999), ("too little", 1_998)] {
            let posting = PaymentPosting {
                payment: PaymentId::new(uuid::Uuid::from_u128(9)),
                cause: crate::EntryCause::Payment,
                amount,
                waived: 0,
                lost: 0,
            };
            let paid = sub.apply_posting(&posting, day(5)).unwrap();
            let days = |at: Option<Timestamp>| {
                at.map_or("-".to_owned(), |at| format!("day {}", number(at)))
            };
            let period = paid.paid_time(&sub).map_or("-".to_owned(), |(start, end)| {
                format!("{} to {}", days(Some(start)), days(end))
            });
            let after = &paid.after;
            writeln!(
                grid,
                "{:10} {label:11} {}, renews {}, credit {}, paid {period}",
                status.as_str(),
                after.status,
                days(after.renews_at),
                after.credit
            )
            .unwrap();
        }
    }
    insta::assert_snapshot!(grid);
}

/// Expires instead of renewing, also before the dunning deadline.
#[test]
fn end_before_or_at_renewal_expires() {
    let mut sub = managed(SubscriptionStatus::Active);
    sub.ends_at = Some(day(30));
    sub.credit = 1_999;
    let expired = sub.due_transitions(day(90));
    assert_eq!(with_days(&expired), "Managed 1, Expired 30");
    assert_eq!(expired[1].after.credit, 1_999);
    sub.ends_at = Some(day(40));
    sub.credit = 0;
    let expired = sub.due_transitions(day(90));
    assert_eq!(
        with_days(&expired),
        "Managed 1, PastDue 30, Unpaid 37, Expired 40"
    );
    assert_eq!(expired.last().unwrap().after.ends_at, Some(day(40)));
}

#[test]
fn renewals_before_managed_mode_are_due_at_its_start() {
    let rules = Dunning {
        since: day(400),
        ..DUNNING
    };
    let mut sub = subscription(SubscriptionStatus::Active);
    sub.lifecycle = Lifecycle::Managed(rules);
    let due = sub.due_transitions(day(410));
    assert_eq!(with_days(&due), "Managed 400, PastDue 400, Unpaid 407");
    assert_eq!(due[1].after.late_since, Some(day(400)));
    sub.plan.price = money(0);
    let due = sub.due_transitions(day(410));
    assert_eq!(
        with_days(&due),
        "Managed 400, Renewed 400",
        "missed periods are skipped"
    );
    assert!(due[1].after.renews_at.unwrap() > day(410));
    assert!(due[1].entries.is_empty());
}

#[test]
fn transition_due_before_an_update_follows_it() {
    let mut sub = managed(SubscriptionStatus::Active);
    sub.managed_since = Some(SINCE);
    sub.updated_at = day(33);
    let due = sub.next_transition(day(34)).unwrap();
    assert!(due.at > day(33));
    assert_eq!(
        due.after.late_since,
        Some(day(30)),
        "late from its due date"
    );
}

#[test]
fn equal_or_zero_deadlines_skip_states() {
    let due = |unpaid_after, expired_after| {
        let rules = Dunning {
            unpaid_after,
            expired_after,
            since: SINCE,
        };
        let mut sub = managed(SubscriptionStatus::Active);
        sub.managed_since = Some(SINCE);
        sub.lifecycle = Lifecycle::Managed(rules);
        with_days(&sub.due_transitions(day(90)))
    };
    assert_eq!(due(10, 10), "PastDue 30, Expired 40");
    assert_eq!(due(0, 10), "PastDue 30, Unpaid 30, Expired 40");
    assert_eq!(due(0, 0), "PastDue 30, Expired 30");
}

#[test]
fn lifecycle_kind_depends_on_tenant_provider_and_price() {
    let mut sub = subscription(SubscriptionStatus::Active);
    assert_eq!(sub.lifecycle_kind(), LifecycleKind::Recorded);
    sub.lifecycle = MANAGED;
    assert_eq!(sub.lifecycle_kind(), LifecycleKind::Managed);
    sub.billing_cycle = BillingCycle::Yearly;
    assert_eq!(
        sub.lifecycle_kind(),
        LifecycleKind::Recorded,
        "no price is known"
    );
    sub.external_id = Some("sub_42".parse().unwrap());
    assert_eq!(sub.lifecycle_kind(), LifecycleKind::Provider);
}
