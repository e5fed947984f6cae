//! Access, expiry and payments by status; fixtures for the other tests of this module.

use std::fmt::Write;

use uuid::Uuid;

use super::*;
use crate::Id;

pub(super) fn day(day: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + day * 86_400).unwrap()
}

/// An active plan for 19.99 USD.
pub(super) fn offer(plan: u128, billing_cycle: BillingCycle) -> Offer {
    Offer {
        plan: PlanId::new(Uuid::from_u128(plan)),
        slug: format!("plan-{plan}").parse().unwrap(),
        price: Money::from_minor_units(1_999, "USD".parse().unwrap()).unwrap(),
        billing_cycle,
        trial_days: 0,
        is_active: true,
    }
}

pub(super) fn new_subscription() -> NewSubscription {
    NewSubscription::new(UserId::new(Uuid::from_u128(2)))
}

/// The context of a recorded subscription that is created on day 0.
pub(super) fn recorded_context(offer: &Offer) -> CreateContext<'_> {
    CreateContext {
        offer,
        lifecycle: Lifecycle::Recorded,
        had_trial: false,
        id: SubscriptionId::new(Uuid::from_u128(1)),
        now: day(0),
    }
}

/// A recorded monthly subscription that starts on day 0 and renews on day 30.
pub(super) fn subscription(status: SubscriptionStatus) -> Subscription {
    let offer = offer(3, BillingCycle::Monthly);
    let created = Subscription::create(&new_subscription(), &recorded_context(&offer)).unwrap();
    Subscription {
        status,
        renews_at: Some(day(30)),
        ends_at: match status {
            SubscriptionStatus::Cancelled => Some(day(30)),
            SubscriptionStatus::Expired => Some(day(10)),
            _ => None,
        },
        late_since: match status {
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => Some(day(0)),
            _ => None,
        },
        ..created.after
    }
}

#[test]
fn access_by_status_and_time() {
    let mut grid = format!(
        "{:12}{:>12}{:>12}{:>12}{:>12}{:>20}",
        "", "before", "meanwhile", "suspended", "at its end", "after a payment"
    );
    for status in SubscriptionStatus::ALL {
        let mut sub = subscription(status);
        let cell = |access: bool| if access { "access" } else { "-" };
        let before = sub.has_access(day(-1));
        let meanwhile = sub.has_access(day(5));
        sub.suspended = true;
        let suspended = sub.has_access(day(5));
        sub.suspended = false;
        let reactivated = sub
            .reactivate(day(5))
            .map_or("-", |after| after.status.as_str());
        sub.ends_at = Some(sub.ends_at.unwrap_or(day(20)));
        let end = sub.ends_at.unwrap();
        let ended = sub.has_access(end);
        assert_eq!(sub.status_at(end), SubscriptionStatus::Expired);
        let just_before = end
            .checked_sub(jiff::SignedDuration::from_micros(1))
            .unwrap();
        assert_eq!(sub.has_access(just_before), meanwhile, "{status}");
        write!(
            grid,
            "\n{:12}{:>12}{:>12}{:>12}{:>12}{:>20}",
            status.as_str(),
            cell(before),
            cell(meanwhile),
            cell(suspended),
            cell(ended),
            reactivated
        )
        .unwrap();
    }
    insta::assert_snapshot!(grid);
}

#[test]
fn payment_with_external_id_has_no_effect() {
    let mut sub = subscription(SubscriptionStatus::PastDue);
    let reactivated = sub.reactivate(day(5)).unwrap();
    assert_eq!(
        (reactivated.status, reactivated.late_since),
        (SubscriptionStatus::Active, None)
    );
    sub.external_id = Some("sub_42".parse().unwrap());
    assert_eq!(sub.reactivate(day(5)), None);
}

#[test]
fn passed_end_shows_as_expired_at_that_end() {
    let mut sub = subscription(SubscriptionStatus::Active);
    sub.ends_at = Some(day(10));
    assert_eq!(sub.as_of(day(9)), sub);
    let current = sub.as_of(day(12));
    assert_eq!(
        (current.status, current.updated_at),
        (SubscriptionStatus::Expired, day(10))
    );
    // Stored or not, it looks the same.
    assert_eq!(current.as_of(day(15)), current);
    assert_eq!(sub.expire(day(12)), None);
    assert_eq!(sub.expire(day(5)).unwrap().after.ends_at, Some(day(5)));
    assert_eq!(sub.expire(day(-5)).unwrap().after.ends_at, Some(day(0)));
}
