//! What a change brings along.

use uuid::Uuid;

use super::*;
use crate::{
    Id, Money, PlanId,
    subscription::tests::{day, subscription},
};

pub(super) fn offer(plan: u128, billing_cycle: BillingCycle) -> Offer {
    Offer {
        plan: PlanId::new(Uuid::from_u128(plan)),
        price: Money::of_minor_units(4_900, "USD".parse().unwrap()).unwrap(),
        billing_cycle,
        is_active: true,
    }
}

pub(super) fn only_status(to: Status) -> Changes {
    Changes {
        status: Some(to),
        ..Changes::default()
    }
}

#[test]
fn cancelled_means_that_it_will_not_renew() {
    let active = subscription(Status::Active);
    let cancelled = active
        .amend(&only_status(Status::Cancelled), day(5))
        .unwrap()
        .unwrap();
    assert_eq!(
        (cancelled.status, cancelled.ends_at),
        (Status::Cancelled, Some(day(30)))
    );
    assert!(cancelled.has_access(day(29)) && !cancelled.has_access(day(30)));
    // Taken back before its end, it goes on as before.
    let back = cancelled
        .amend(&only_status(Status::Active), day(6))
        .unwrap()
        .unwrap();
    assert_eq!((back.ends_at, back.renews_at), (None, Some(day(30))));
    // What gives no access has nothing that could go on.
    for status in [Status::Pending, Status::Unpaid, Status::Paused] {
        let without = subscription(status);
        let ended = without
            .amend(&only_status(Status::Cancelled), day(5))
            .unwrap()
            .unwrap();
        assert_eq!(
            (ended.status, ended.ends_at),
            (Status::Expired, Some(day(5)))
        );
        let later = Changes {
            ends_at: Some(Some(day(40))),
            ..only_status(Status::Cancelled)
        };
        assert!(matches!(
            without.amend(&later, day(5)),
            Err(Refused::Fields(_))
        ));
    }
}

#[test]
fn what_is_over_is_opened_again_only_with_a_date() {
    let expired = subscription(Status::Expired);
    let bare = expired.amend(&only_status(Status::Active), day(40));
    let (from, to) = (Status::Expired, Status::Active);
    assert_eq!(bare, Err(Refused::Transition { from, to }));
    let renewed = Changes {
        renews_at: Some(Some(day(60))),
        ..only_status(Status::Active)
    };
    let open = expired.amend(&renewed, day(40)).unwrap().unwrap();
    assert_eq!((open.ends_at, open.anchor), (None, day(60)));
    assert!(open.has_access(day(41)));
    let until = Changes {
        ends_at: Some(Some(day(50))),
        ..only_status(Status::Active)
    };
    let open = expired.amend(&until, day(40)).unwrap().unwrap();
    assert_eq!(open.ends_at, Some(day(50)));
    assert!(open.renews_at.unwrap() > day(40), "counted from the anchor");
    // What is sent back as it was shown is no date that anybody set.
    let echoed = Changes {
        renews_at: Some(expired.renews_at),
        ..until
    };
    let same = expired.amend(&echoed, day(40)).unwrap().unwrap();
    assert_eq!(same.renews_at, open.renews_at);
    // A date alone opens nothing.
    let date = Changes {
        ends_at: Some(Some(day(50))),
        ..Changes::default()
    };
    assert!(matches!(
        expired.amend(&date, day(40)),
        Err(Refused::Fields(_))
    ));
}

#[test]
fn suspension_is_apart_from_status() {
    let is_active = |sent| Changes {
        is_active: Some(sent),
        ..Changes::default()
    };
    let active = subscription(Status::Active);
    let suspended = active.amend(&is_active(false), day(5)).unwrap().unwrap();
    assert_eq!(suspended.status, Status::Active);
    assert!(!suspended.has_access(day(5)));
    let late = suspended
        .amend(&only_status(Status::PastDue), day(6))
        .unwrap()
        .unwrap();
    assert!(!late.has_access(day(6)), "still suspended");
    let lifted = late.amend(&is_active(true), day(7)).unwrap().unwrap();
    assert!(lifted.has_access(day(7)));
    let unpaid = subscription(Status::Unpaid);
    assert!(matches!(
        unpaid.amend(&is_active(true), day(5)),
        Err(Refused::Fields(_))
    ));
    let both = Changes {
        is_active: Some(true),
        ..only_status(Status::Active)
    };
    assert!(
        unpaid
            .amend(&both, day(5))
            .unwrap()
            .unwrap()
            .has_access(day(5))
    );
}

#[test]
fn another_plan_has_its_own_price_and_cycle() {
    let monthly = subscription(Status::Active);
    let to = |offer| Changes {
        offer: Some(offer),
        ..Changes::default()
    };
    let yearly = monthly
        .amend(&to(offer(9, BillingCycle::Yearly)), day(5))
        .unwrap()
        .unwrap();
    assert_eq!(yearly.billing_cycle, BillingCycle::Yearly);
    assert_eq!(yearly.price().unwrap().minor_units(), 4_900);
    assert_eq!(
        yearly.renews_at, monthly.renews_at,
        "it was paid until then"
    );
    let once = monthly
        .amend(&to(offer(9, BillingCycle::Lifetime)), day(5))
        .unwrap()
        .unwrap();
    assert_eq!(once.renews_at, None);
    let mut waiting = once.clone();
    waiting.starts_at = day(40);
    waiting.anchor = day(40);
    let monthly_again = Changes {
        billing_cycle: Some(BillingCycle::Monthly),
        ..Changes::default()
    };
    let recurring = waiting.amend(&monthly_again, day(6)).unwrap().unwrap();
    assert!(
        recurring.renews_at.unwrap() > day(60),
        "a cycle after its begin"
    );
    // In another cycle than the plan's the price is not known; back in the plan's it is the one that was taken.
    let cycle = |billing_cycle| Changes {
        billing_cycle: Some(billing_cycle),
        ..Changes::default()
    };
    let weekly = monthly
        .amend(&cycle(BillingCycle::Weekly), day(5))
        .unwrap()
        .unwrap();
    assert_eq!(weekly.price(), None);
    let back = weekly
        .amend(&cycle(BillingCycle::Monthly), day(6))
        .unwrap()
        .unwrap();
    assert_eq!(back.price(), monthly.price());
    let gone = Offer {
        is_active: false,
        ..offer(9, BillingCycle::Monthly)
    };
    assert!(matches!(
        monthly.amend(&to(gone), day(5)),
        Err(Refused::Fields(_))
    ));
}
