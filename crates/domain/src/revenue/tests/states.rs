//! Tests of the states of a subscription.

use super::*;

#[test]
fn year_has_whole_cycles() {
    let per_year = BillingCycle::ALL.map(BillingCycle::per_year);
    let expected = [
        Some(365),
        Some(52),
        Some(12),
        Some(4),
        Some(2),
        Some(1),
        None,
    ];
    assert_eq!(per_year, expected);
}

#[test]
fn basis_and_status_decide_what_counts() {
    let counted = |change: fn(&mut RevenueFacts)| {
        let mut facts = facts();
        change(&mut facts);
        facts.started_state().counted_value()
    };
    assert_eq!(counted(|_| ()), 12_000);
    assert_eq!(counted(|facts| facts.quantity = 3), 36_000);
    assert_eq!(
        counted(|facts| facts.billing_cycle = BillingCycle::Yearly),
        1_000
    );
    assert_eq!(counted(|facts| facts.suspended = true), 12_000);
    assert_eq!(
        counted(|facts| facts.billing_cycle = BillingCycle::Lifetime),
        0
    );
    assert_eq!(counted(|facts| facts.price = None), 0);
    assert_eq!(counted(|facts| facts.price = Some(0)), 0);
    for status in SubscriptionStatus::ALL {
        let state = RevenueFacts { status, ..facts() }.started_state();
        let expected = match status {
            SubscriptionStatus::Active
            | SubscriptionStatus::PastDue
            | SubscriptionStatus::Cancelled => 12_000,
            _ => 0,
        };
        assert_eq!(state.counted_value(), expected, "{status}");
    }
}

#[test]
fn largest_subscription_is_exact() {
    let largest = RevenueFacts {
        price: Some(crate::MAX_MINOR_UNITS),
        quantity: 100_000,
        billing_cycle: BillingCycle::Daily,
        ..facts()
    };
    let expected = 36_500_000_000_000_000_000;
    assert_eq!(largest.started_state().annual_value, expected);
}

#[test]
fn trial_that_is_cancelled_never_counts() {
    let cancelled = RevenueFacts {
        status: SubscriptionStatus::Cancelled,
        trial_ends_at: Some(at("2026-01-29")),
        ends_at: Some(at("2026-01-29")),
        ..facts()
    };
    assert_eq!(cancelled.started_state().basis, RevenueBasis::Trial);
    let later = RevenueFacts {
        ends_at: Some(at("2026-03-01")),
        ..cancelled
    };
    assert_eq!(later.started_state().basis, RevenueBasis::Recurring);
}

#[test]
fn renewal_writes_nothing_and_a_future_start_two_states() {
    let active = facts();
    assert_eq!(active.changes(Some(&active), at("2026-02-15")), []);
    let future = RevenueFacts {
        starts_at: at("2026-03-01"),
        ..facts()
    };
    let changes = future.changes(None, at("2026-01-15"));
    let states: Vec<_> = (changes.iter())
        .map(|change| (change.at, change.state.status.as_str()))
        .collect();
    assert_eq!(
        states,
        [
            (at("2026-01-15"), "scheduled"),
            (at("2026-03-01"), "active")
        ]
    );
}
