//! What happens by itself, case by case.

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

/// Everything that has happened to it by then.
fn steps(one: &Subscription, lifecycle: &Lifecycle, now: Timestamp) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    while let Some(step) = steps
        .last()
        .map_or(one, |last| &last.after)
        .step(lifecycle, now)
    {
        steps.push(step);
    }
    steps
}

fn days_of(steps: &[Step]) -> String {
    let one = |step: &Step| {
        let day = step.at.duration_since(day(0)).as_hours() / 24;
        format!("{:?} {day}", step.turn)
    };
    steps.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn money(minor: i64) -> Money {
    Money::of_minor_units(minor, "USD".parse().unwrap()).unwrap()
}

#[test]
fn the_grid_of_a_hundred_days() {
    let mut grid = String::new();
    for status in Status::ALL {
        let mut one = subscription(status);
        // Thirty days from the anchor, whatever the month is.
        one.anchor = day(30);
        let mut line = |what: &str, one: &Subscription, lifecycle| {
            let happened = days_of(&steps(one, lifecycle, day(100)));
            let happened = if happened.is_empty() { "-" } else { &happened };
            writeln!(grid, "{:10} {what:13} {happened}", status.as_str()).unwrap();
        };
        line("recorded", &one, &Lifecycle::Recorded);
        line("managed", &one, &MANAGED);
        one.prepaid = 1;
        line("one ahead", &one, &MANAGED);
        one.prepaid = 0;
        one.terms.price = money(0);
        line("free", &one, &MANAGED);
        one.external_id = Some("sub_42".parse().unwrap());
        line("a provider's", &one, &MANAGED);
    }
    insta::assert_snapshot!(grid);
}

#[test]
fn the_grid_of_payments() {
    let mut grid = String::new();
    for status in Status::ALL {
        let one = subscription(status);
        for (what, amount) in [("enough", money(1_999)), ("too little", money(1_998))] {
            let paid = one.pay(amount, &MANAGED, day(5));
            let shown = paid.map_or("-".to_owned(), |paid| {
                let number = |at: Timestamp| at.duration_since(day(0)).as_hours() / 24;
                format!(
                    "{}, renews on day {}, {} ahead; paid the period of day {}",
                    paid.after.status,
                    number(paid.after.renews_at.unwrap()),
                    paid.after.prepaid,
                    number(paid.period.unwrap()),
                )
            });
            writeln!(grid, "{:10} {what:11} {shown}", status.as_str()).unwrap();
        }
    }
    insta::assert_snapshot!(grid);
    let euros = Money::of_minor_units(5_000, "EUR".parse().unwrap()).unwrap();
    assert_eq!(
        subscription(Status::PastDue).pay(euros, &MANAGED, day(5)),
        None
    );
}

/// Whoever pays late renews at the next date that is counted from the anchor, and missed periods are not asked for.
#[test]
fn paid_late() {
    let mut one = subscription(Status::Active);
    one.billing_cycle = BillingCycle::Weekly;
    one.terms.billing_cycle = BillingCycle::Weekly;
    one.renews_at = Some(day(7));
    let late = steps(&one, &MANAGED, day(30));
    assert_eq!(days_of(&late), "PastDue 7, Unpaid 14");
    let late = &late.last().unwrap().after;
    let paid = late.pay(money(1_999), &MANAGED, day(30)).unwrap();
    assert_eq!(paid.period, Some(day(7)));
    assert_eq!(paid.after.renews_at, Some(day(35)));
    assert_eq!(
        (paid.after.status, paid.after.late_since),
        (Status::Active, None)
    );
    // A second one is for the next period, and the one after a third for the one after.
    let second = paid.after.pay(money(1_999), &MANAGED, day(31)).unwrap();
    let third = second.after.pay(money(1_999), &MANAGED, day(32)).unwrap();
    assert_eq!(
        (second.period, third.period),
        (Some(day(35)), Some(day(42)))
    );
    assert_eq!(
        days_of(&steps(&third.after, &MANAGED, day(50))),
        "Renewed 35, Renewed 42, PastDue 49"
    );
}

/// What ends when it would renew ends; what ends before it is too late ends then.
#[test]
fn its_end_comes_first() {
    let mut one = subscription(Status::Active);
    one.ends_at = Some(day(30));
    one.prepaid = 1;
    let over = steps(&one, &MANAGED, day(90));
    assert_eq!(days_of(&over), "Expired 30");
    one.ends_at = Some(day(40));
    one.prepaid = 0;
    let over = steps(&one, &MANAGED, day(90));
    assert_eq!(days_of(&over), "PastDue 30, Unpaid 37, Expired 40");
    assert_eq!(over.last().unwrap().after.ends_at, Some(day(40)));
}

/// What had passed when the tenant began to have time moved is due then, and not before.
#[test]
fn begun_in_the_middle() {
    let mut rules = DUNNING;
    rules.since = day(400);
    let one = subscription(Status::Active);
    let moved = steps(&one, &Lifecycle::Managed(rules), day(410));
    assert_eq!(days_of(&moved), "PastDue 400, Unpaid 407");
    let mut free = one.clone();
    free.terms.price = money(0);
    let moved = steps(&free, &Lifecycle::Managed(rules), day(410));
    assert_eq!(
        moved.len(),
        1,
        "once, and not for each period that was missed"
    );
    assert!(moved[0].after.renews_at.unwrap() > day(400));
}

/// No two changes share an instant, also if somebody has changed it since it was due.
#[test]
fn due_before_it_was_changed() {
    let mut one = subscription(Status::Active);
    one.updated_at = day(33);
    let step = one.step(&MANAGED, day(34)).unwrap();
    assert!(step.at > day(33));
    assert_eq!(step.after.late_since, Some(step.at));
}

/// Somebody says that it goes on: the period that has begun is granted.
#[test]
fn made_active_by_hand() {
    let late = steps(&subscription(Status::Active), &MANAGED, day(40));
    let late = &late.last().unwrap().after;
    let sent = crate::Changes {
        status: Some(Status::Active),
        ..crate::Changes::default()
    };
    let active = late.amend(&sent, day(40)).unwrap().unwrap();
    assert_eq!(active.renews_at, Some(day(30)));
    let recorded = active.clone().granted(late, &Lifecycle::Recorded);
    assert_eq!(recorded, active);
    let granted = active.granted(late, &MANAGED);
    assert!(granted.renews_at.unwrap() > day(40));
    assert_eq!(granted.step(&MANAGED, day(41)), None);
}

#[test]
fn equal_delays_and_none() {
    let rules = |unpaid_after, expired_after| {
        Lifecycle::Managed(Dunning {
            unpaid_after,
            expired_after,
            ..DUNNING
        })
    };
    let one = subscription(Status::Active);
    let happened = |lifecycle| days_of(&steps(&one, &lifecycle, day(90)));
    assert_eq!(happened(rules(10, 10)), "PastDue 30, Expired 40");
    assert_eq!(happened(rules(0, 10)), "PastDue 30, Unpaid 30, Expired 40");
    assert_eq!(happened(rules(0, 0)), "PastDue 30, Expired 30");
}

/// Who cancels gets what was paid ahead.
#[test]
fn cancelled_with_periods_ahead() {
    let mut one = subscription(Status::Active);
    one.anchor = day(30);
    one.prepaid = 2;
    let sent = crate::Changes {
        status: Some(Status::Cancelled),
        ..crate::Changes::default()
    };
    let cancelled = one.amend(&sent, day(5)).unwrap().unwrap();
    let third = BillingCycle::Monthly.after(day(30), 2);
    assert_eq!(cancelled.ends_at, third);
}

/// Paid periods are used up one by one, whoever changes something before that is written down.
#[test]
fn nothing_is_given_away_by_a_late_worker() {
    let mut one = subscription(Status::Active);
    one.billing_cycle = BillingCycle::Daily;
    one.terms.billing_cycle = BillingCycle::Daily;
    one.renews_at = Some(day(1));
    one.prepaid = 3;
    let mut changed = one.clone();
    changed.suspended = true;
    changed.updated_at = day(3);
    for one in [one, changed] {
        let happened = steps(&one, &MANAGED, day(3));
        let last = &happened.last().unwrap().after;
        assert_eq!((happened.len(), last.prepaid), (3, 0));
        assert_eq!(last.renews_at, Some(day(4)));
    }
}

/// Who is late and is moved to what costs nothing is not late any more.
#[test]
fn late_and_then_free() {
    let late = subscription(Status::PastDue);
    let offer = crate::Offer {
        plan: crate::PlanId::new(uuid::Uuid::from_u128(9)),
        price: money(0),
        billing_cycle: BillingCycle::Monthly,
        is_active: true,
    };
    let sent = crate::Changes {
        offer: Some(offer),
        ..crate::Changes::default()
    };
    let free = late.amend(&sent, day(40)).unwrap().unwrap();
    assert_eq!(
        free.clone().granted(&late, &Lifecycle::Recorded).status,
        Status::PastDue
    );
    let free = free.granted(&late, &MANAGED);
    assert_eq!((free.status, free.late_since), (Status::Active, None));
    assert!(free.renews_at.unwrap() > day(40));
}

/// What is tried and then bought for good is active.
#[test]
fn a_trial_of_what_is_paid_once() {
    let mut one = subscription(Status::OnTrial);
    one.billing_cycle = BillingCycle::Lifetime;
    one.terms.billing_cycle = BillingCycle::Lifetime;
    one.renews_at = None;
    let paid = one.pay(money(1_999), &MANAGED, day(5)).unwrap();
    assert_eq!(
        (paid.after.status, paid.after.renews_at),
        (Status::Active, None)
    );
    assert_eq!(paid.period, Some(day(0)));
}
