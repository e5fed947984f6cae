//! Fields that change together.

use super::*;
use crate::{
    BillingCycle, Money, Offer,
    subscription::tests::{self, day, subscription},
};

/// An active plan for 49.00 USD.
pub(super) fn offer(plan: u128, billing_cycle: BillingCycle) -> Offer {
    Offer {
        price: Money::from_minor_units(4_900, "USD".parse().unwrap()).unwrap(),
        ..tests::offer(plan, billing_cycle)
    }
}

pub(super) fn only_status(to: SubscriptionStatus) -> SubscriptionChanges {
    SubscriptionChanges {
        status: Some(to),
        ..SubscriptionChanges::default()
    }
}

#[test]
fn cancelled_subscription_ends_at_its_renewal() {
    let active = subscription(SubscriptionStatus::Active);
    let cancelled = active
        .update(&only_status(SubscriptionStatus::Cancelled), day(5))
        .unwrap()
        .unwrap()
        .after;
    assert_eq!(
        (cancelled.status, cancelled.ends_at),
        (SubscriptionStatus::Cancelled, Some(day(30)))
    );
    assert!(cancelled.has_access(day(29)) && !cancelled.has_access(day(30)));
    // Reactivated before its end, it renews as before.
    let back = cancelled
        .update(&only_status(SubscriptionStatus::Active), day(6))
        .unwrap()
        .unwrap()
        .after;
    assert_eq!((back.ends_at, back.renews_at), (None, Some(day(30))));
    // Without access there is no paid period to serve.
    for status in [
        SubscriptionStatus::Pending,
        SubscriptionStatus::Unpaid,
        SubscriptionStatus::Paused,
    ] {
        let without = subscription(status);
        let ended = without
            .update(&only_status(SubscriptionStatus::Cancelled), day(5))
            .unwrap()
            .unwrap()
            .after;
        assert_eq!(
            (ended.status, ended.ends_at),
            (SubscriptionStatus::Expired, Some(day(5)))
        );
        let later = SubscriptionChanges {
            ends_at: Some(Some(day(40))),
            ..only_status(SubscriptionStatus::Cancelled)
        };
        assert!(matches!(
            without.update(&later, day(5)),
            Err(SubscriptionUpdateError::InvalidFields(_))
        ));
    }
}

#[test]
fn expired_subscription_reopens_only_with_a_future_date() {
    let expired = subscription(SubscriptionStatus::Expired);
    let bare = expired.update(&only_status(SubscriptionStatus::Active), day(40));
    let (from, to) = (SubscriptionStatus::Expired, SubscriptionStatus::Active);
    assert_eq!(
        bare,
        Err(SubscriptionUpdateError::TransitionNotAllowed { from, to })
    );
    let renewed = SubscriptionChanges {
        renews_at: Some(Some(day(60))),
        ..only_status(SubscriptionStatus::Active)
    };
    let open = expired.update(&renewed, day(40)).unwrap().unwrap().after;
    assert_eq!((open.ends_at, open.anchor), (None, day(60)));
    assert!(open.has_access(day(41)));
    let until = SubscriptionChanges {
        ends_at: Some(Some(day(50))),
        ..only_status(SubscriptionStatus::Active)
    };
    let open = expired.update(&until, day(40)).unwrap().unwrap().after;
    assert_eq!(open.ends_at, Some(day(50)));
    assert!(open.renews_at.unwrap() > day(40), "counted from the anchor");
    // A date equal to the current one does not count as a new date.
    let echoed = SubscriptionChanges {
        renews_at: Some(expired.renews_at),
        ..until
    };
    let same = expired.update(&echoed, day(40)).unwrap().unwrap().after;
    assert_eq!(same.renews_at, open.renews_at);
    // A date without a status does not reopen.
    let date = SubscriptionChanges {
        ends_at: Some(Some(day(50))),
        ..SubscriptionChanges::default()
    };
    assert!(matches!(
        expired.update(&date, day(40)),
        Err(SubscriptionUpdateError::InvalidFields(_))
    ));
}

#[test]
fn suspension_survives_status_changes() {
    let is_active = |sent| SubscriptionChanges {
        is_active: Some(sent),
        ..SubscriptionChanges::default()
    };
    let active = subscription(SubscriptionStatus::Active);
    let suspended = active
        .update(&is_active(false), day(5))
        .unwrap()
        .unwrap()
        .after;
    assert_eq!(suspended.status, SubscriptionStatus::Active);
    assert!(!suspended.has_access(day(5)));
    let late = suspended
        .update(&only_status(SubscriptionStatus::PastDue), day(6))
        .unwrap()
        .unwrap()
        .after;
    assert!(!late.has_access(day(6)), "still suspended");
    let lifted = late
        .update(&is_active(true), day(7))
        .unwrap()
        .unwrap()
        .after;
    assert!(lifted.has_access(day(7)));
    let unpaid = subscription(SubscriptionStatus::Unpaid);
    assert!(matches!(
        unpaid.update(&is_active(true), day(5)),
        Err(SubscriptionUpdateError::InvalidFields(_))
    ));
    let both = SubscriptionChanges {
        is_active: Some(true),
        ..only_status(SubscriptionStatus::Active)
    };
    assert!(
        unpaid
            .update(&both, day(5))
            .unwrap()
            .unwrap()
            .after
            .has_access(day(5))
    );
}

#[test]
fn plan_switch_takes_over_price_and_cycle() {
    let monthly = subscription(SubscriptionStatus::Active);
    let to = |offer| SubscriptionChanges {
        offer: Some(offer),
        ..SubscriptionChanges::default()
    };
    let yearly = monthly
        .update(&to(offer(9, BillingCycle::Yearly)), day(5))
        .unwrap()
        .unwrap()
        .after;
    assert_eq!(yearly.billing_cycle, BillingCycle::Yearly);
    assert_eq!(yearly.price().unwrap().minor_units(), 4_900);
    assert_eq!(
        yearly.renews_at, monthly.renews_at,
        "the current period stays paid"
    );
    let once = monthly
        .update(&to(offer(9, BillingCycle::Lifetime)), day(5))
        .unwrap()
        .unwrap()
        .after;
    assert_eq!(once.renews_at, None);
    let mut waiting = once.clone();
    waiting.starts_at = day(40);
    waiting.anchor = day(40);
    let monthly_again = SubscriptionChanges {
        billing_cycle: Some(BillingCycle::Monthly),
        ..SubscriptionChanges::default()
    };
    let recurring = waiting
        .update(&monthly_again, day(6))
        .unwrap()
        .unwrap()
        .after;
    assert!(
        recurring.renews_at.unwrap() > day(60),
        "one cycle after it starts"
    );
    // In a cycle other than the plan's the price is unknown; back in the plan's cycle it is the
    // snapshot's.
    let cycle = |billing_cycle| SubscriptionChanges {
        billing_cycle: Some(billing_cycle),
        ..SubscriptionChanges::default()
    };
    let weekly = monthly
        .update(&cycle(BillingCycle::Weekly), day(5))
        .unwrap()
        .unwrap()
        .after;
    assert_eq!(weekly.price(), None);
    let back = weekly
        .update(&cycle(BillingCycle::Monthly), day(6))
        .unwrap()
        .unwrap()
        .after;
    assert_eq!(back.price(), monthly.price());
    let gone = Offer {
        is_active: false,
        ..offer(9, BillingCycle::Monthly)
    };
    assert!(matches!(
        monthly.update(&to(gone), day(5)),
        Err(SubscriptionUpdateError::InvalidFields(_))
    ));
}

#[test]
fn cancelling_a_lifetime_is_rejected() {
    let mut lifetime = subscription(SubscriptionStatus::Active);
    lifetime.billing_cycle = BillingCycle::Lifetime;
    lifetime.renews_at = None;
    for ends_at in [None, Some(Some(day(40)))] {
        let changes = SubscriptionChanges {
            ends_at,
            ..only_status(SubscriptionStatus::Cancelled)
        };
        assert_eq!(
            lifetime.update(&changes, day(5)),
            Err(SubscriptionUpdateError::LifetimeCancelled)
        );
    }
    let end = SubscriptionChanges {
        ends_at: Some(Some(day(40))),
        ..SubscriptionChanges::default()
    };
    let ending = lifetime.update(&end, day(5)).unwrap().unwrap().after;
    assert_eq!(
        (ending.status, ending.ends_at),
        (SubscriptionStatus::Active, Some(day(40)))
    );
}

#[test]
fn is_active_true_with_a_status_is_never_an_error() {
    for from in SubscriptionStatus::ALL {
        let sub = subscription(from);
        for to in SubscriptionStatus::ALL {
            let alone = sub.update(&only_status(to), day(5));
            let both = SubscriptionChanges {
                is_active: Some(true),
                ..only_status(to)
            };
            assert_eq!(sub.update(&both, day(5)), alone, "{from} to {to}");
        }
    }
}

#[test]
fn is_active_true_before_the_start_is_accepted() {
    let mut sub = subscription(SubscriptionStatus::Active);
    sub.starts_at = day(10);
    sub.suspended = true;
    let lift = SubscriptionChanges {
        is_active: Some(true),
        ..SubscriptionChanges::default()
    };
    let lifted = sub.update(&lift, day(5)).unwrap().unwrap().after;
    assert!(!lifted.has_access(day(9)) && lifted.has_access(day(10)));
    let new = crate::NewSubscription {
        is_active: Some(true),
        starts_at: Some(day(10)),
        ..tests::new_subscription()
    };
    let offer = offer(3, BillingCycle::Monthly);
    let created = Subscription::create(&new, &tests::recorded_context(&offer)).unwrap();
    assert_eq!(created.after.status, SubscriptionStatus::Active);
}

/// Without a date in the request, the earlier of the existing end and the renewal counts.
#[test]
fn cancelling_keeps_an_earlier_end_and_shortens_a_later_one() {
    for (existing, end) in [(day(20), day(20)), (day(40), day(30))] {
        let mut sub = subscription(SubscriptionStatus::Active);
        sub.ends_at = Some(existing);
        let cancelled = sub.update(&only_status(SubscriptionStatus::Cancelled), day(5));
        assert_eq!(cancelled.unwrap().unwrap().after.ends_at, Some(end));
    }
}
