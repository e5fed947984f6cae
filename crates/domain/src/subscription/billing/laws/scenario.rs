//! Random sequences of calls.

use jiff::{SignedDuration, Timestamp, civil::date, tz::TimeZone};

use super::super::{fixtures::*, *};
use crate::{BillingCycle, Offer, subscription::random::SplitMix64};

/// Which calls a sequence has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verbs {
    /// Every call of the API.
    All,
    /// What a user can do: pay, pause, resume, cancel, undo, change the plan and the quantity.
    User,
    /// Bursts of changes of the plan and the quantity, up to ten within an hour, and back.
    Changes,
}

/// The time of a call.
#[derive(Debug, Clone, Copy)]
pub(super) enum When {
    /// So long after the call before.
    After(SignedDuration),
    /// So many microseconds after the next renewal, if it is in the future.
    Renewal(i64),
}

/// A date in a request.
pub(super) type Days = i64;

/// A call. It does not depend on the calls before it, so that a sequence can be shortened.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    Pay(Amount),
    /// Refunds so many tenths of a payment in all. A refund may become smaller.
    Refund(usize, i64),
    Dispute(usize),
    WinDispute(usize),
    LoseDispute(usize),
    /// A payment that is disputed when it is recorded.
    PayDisputed(Amount),
    Status(SubscriptionStatus, Option<Days>, Option<Days>),
    Plan(Offer),
    Quantity(i64),
    /// Back to the plan, cycle, price and quantity before the last change of them.
    Back,
    /// Another plan and a status in one request.
    PlanAndStatus(Offer, SubscriptionStatus),
    Price(BillingCycle, i64),
    FreeUntil(Days),
    /// To recorded mode or back, by the tenant's setting or by an external id.
    Switch(bool),
    Start(Days),
    End(Option<Days>),
    Suspend(bool),
}

/// The amount of a payment.
#[derive(Debug, Clone, Copy)]
pub(super) enum Amount {
    /// What the subscription shows as due.
    Due,
    /// So many periods, and so many minor units more.
    Periods(i64, i64),
}

#[derive(Debug, Clone)]
pub(super) struct Creation {
    pub at: Timestamp,
    pub offer: Offer,
    pub quantity: i64,
    pub status: Option<SubscriptionStatus>,
    pub starts: Option<Days>,
    pub renews: Option<Days>,
    pub ends: Option<Days>,
    /// Days until the tenant is switched to managed mode, for a subscription created before.
    pub switch_after: Option<Days>,
}

/// A sequence of calls and when to look at the result.
#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub dunning: Dunning,
    pub creation: Creation,
    pub calls: Vec<(When, Action)>,
    /// Time after the last call.
    pub rest: SignedDuration,
    /// For instants to look at.
    pub seed: u64,
}

const PRICES: [i64; 8] = [0, 1, 7, 100, 999, 3_100, 3_100, 36_500];

impl Scenario {
    pub(super) fn random(seed: u64, verbs: Verbs) -> Self {
        let rng = &mut SplitMix64(seed);
        let unpaid_after = rng.pick(&[0, 1, 3, 7, 7, 7, 14]);
        let expired_after = unpaid_after + rng.pick(&[0, 0, 1, 23, 23, 50]);
        let dunning = Dunning {
            unpaid_after,
            expired_after,
            ..DUNNING
        };
        let creation = random_creation(rng, verbs);
        let count = 1 + rng.below(30);
        let mut calls: Vec<_> = (0..count).map(|_| random_call(rng, verbs)).collect();
        if verbs == Verbs::Changes {
            calls.extend(random_burst(rng));
        }
        Self {
            dunning,
            creation,
            calls,
            rest: SignedDuration::from_hours(24 * rng.between(0, 120)),
            seed,
        }
    }
}

fn random_creation(rng: &mut SplitMix64, verbs: Verbs) -> Creation {
    // Month ends are frequent.
    let day = rng.pick(&[1, 15, 28, 29, 30, 31, 31]);
    let month = rng.pick(&[1, 1, 3, 8, 10, 12]);
    let day = if month == 10 { day.min(30) } else { day };
    let start = date(rng.pick(&[2023, 2024, 2026]), month, day);
    let time = rng.pick(&[(0, 0), (9, 30), (23, 59)]);
    let start = start.at(time.0, time.1, 0, 0);
    let offer = Offer {
        trial_days: if rng.one_in(4) {
            rng.pick(&[1, 14, 40])
        } else {
            0
        },
        ..random_plan(rng)
    };
    let mut creation = Creation {
        at: start.to_zoned(TimeZone::UTC).unwrap().timestamp(),
        offer,
        quantity: random_quantity(rng),
        status: None,
        starts: None,
        renews: None,
        ends: None,
        switch_after: None,
    };
    if verbs != Verbs::User {
        let statuses = [
            SubscriptionStatus::Active,
            SubscriptionStatus::Active,
            SubscriptionStatus::Pending,
            SubscriptionStatus::OnTrial,
            SubscriptionStatus::Paused,
            SubscriptionStatus::Cancelled,
            SubscriptionStatus::Expired,
        ];
        creation.status = rng.one_in(2).then(|| rng.pick(&statuses));
        creation.starts = rng.one_in(6).then(|| rng.between(-100, 40));
        creation.renews = rng.one_in(8).then(|| rng.between(-30, 120));
        creation.ends = rng.one_in(12).then(|| rng.between(-10, 200));
        if rng.one_in(10) {
            creation.switch_after = Some(rng.between(1, 60));
            if rng.one_in(4) {
                let late = [SubscriptionStatus::PastDue, SubscriptionStatus::Unpaid];
                creation.status = Some(rng.pick(&late));
                creation.starts = creation.starts.map(|days| days.min(0));
            }
        }
    }
    creation
}

/// Returns whether the user has had a trial of a plan to change to.
pub(super) fn had_trial(offer: &Offer) -> bool {
    offer.price.minor_units() % 2 == 0
}

/// Up to ten changes within an hour. Some are undone at the same instant.
fn random_burst(rng: &mut SplitMix64) -> Vec<(When, Action)> {
    let mut calls = Vec::new();
    for _ in 0..rng.between(2, 10) {
        let seconds = SignedDuration::from_secs(rng.pick(&[0, 1, 17, 59, 300]));
        let action = if rng.one_in(2) {
            Action::Quantity(random_quantity(rng))
        } else {
            Action::Plan(random_plan(rng))
        };
        calls.push((When::After(seconds), action));
        if rng.one_in(2) {
            calls.push((When::After(SignedDuration::ZERO), Action::Back));
        }
    }
    calls
}

fn random_plan(rng: &mut SplitMix64) -> Offer {
    let cycle = if rng.one_in(12) {
        BillingCycle::Lifetime
    } else {
        rng.pick(&[
            BillingCycle::Daily,
            BillingCycle::Weekly,
            BillingCycle::Monthly,
            BillingCycle::Monthly,
            BillingCycle::Monthly,
            BillingCycle::Quarterly,
            BillingCycle::Semiannual,
            BillingCycle::Yearly,
        ])
    };
    let number = rng.below(1_000);
    Offer {
        trial_days: rng.pick(&[0, 0, 0, 14]),
        ..plan(u128::from(number), rng.pick(&PRICES), cycle)
    }
}

fn random_quantity(rng: &mut SplitMix64) -> i64 {
    if rng.one_in(40) {
        100_000
    } else {
        rng.between(1, 5)
    }
}

pub(super) fn random_call(rng: &mut SplitMix64, verbs: Verbs) -> (When, Action) {
    (random_time(rng), random_action(rng, verbs))
}

fn random_time(rng: &mut SplitMix64) -> When {
    match rng.below(20) {
        0 => When::After(SignedDuration::ZERO),
        1 => When::After(SignedDuration::from_micros(rng.between(1, 5))),
        2..=4 => When::After(SignedDuration::from_mins(rng.between(1, 1_440))),
        5..=12 => {
            let days = SignedDuration::from_hours(24 * rng.between(1, 40));
            let rest = SignedDuration::from_mins(rng.pick(&[0, 0, 17, 800]));
            When::After(days + rest)
        }
        13 => When::After(SignedDuration::from_hours(24 * rng.between(30, 200))),
        14..=16 => When::Renewal(rng.between(-2, 2)),
        17 => When::Renewal(-1_000_000 * rng.between(1, 86_400)),
        _ => When::Renewal(1_000_000 * rng.between(1, 10 * 86_400)),
    }
}

fn random_action(rng: &mut SplitMix64, verbs: Verbs) -> Action {
    if rng.one_in(25) {
        let statuses = [
            SubscriptionStatus::Active,
            SubscriptionStatus::Paused,
            SubscriptionStatus::Cancelled,
        ];
        return Action::PlanAndStatus(random_plan(rng), rng.pick(&statuses));
    }
    let choice = match verbs {
        Verbs::All => rng.below(46),
        Verbs::User => rng.below(20),
        Verbs::Changes => rng.below(22),
    };
    let payment = usize::try_from(rng.below(8)).unwrap();
    match choice {
        0..=3 => Action::Pay(Amount::Due),
        4..=6 => Action::Pay(Amount::Periods(rng.between(1, 3), 0)),
        7 => {
            let rest = rng.pick(&[-1, 1, 50, 1_000]);
            Action::Pay(Amount::Periods(rng.between(0, 2), rest))
        }
        8..=9 => Action::Status(SubscriptionStatus::Paused, None, None),
        10..=12 => Action::Status(SubscriptionStatus::Active, None, None),
        13..=14 => Action::Status(SubscriptionStatus::Cancelled, None, None),
        15..=17 => Action::Plan(random_plan(rng)),
        18..=19 => Action::Quantity(random_quantity(rng)),
        20..=21 => Action::Refund(payment, rng.between(0, 10)),
        22..=23 => Action::Dispute(payment),
        24..=25 => Action::WinDispute(payment),
        26 => Action::LoseDispute(payment),
        27 => {
            let statuses = [SubscriptionStatus::OnTrial, SubscriptionStatus::Expired];
            Action::Status(rng.pick(&statuses), None, None)
        }
        28 => Action::Status(SubscriptionStatus::Active, Some(rng.between(1, 90)), None),
        29 => Action::Status(
            SubscriptionStatus::Cancelled,
            None,
            Some(rng.between(-1, 400)),
        ),
        30..=31 => {
            let plan = random_plan(rng);
            Action::Price(plan.billing_cycle, plan.price.minor_units())
        }
        32..=33 => Action::FreeUntil(rng.between(1, 120)),
        34 => Action::End(rng.one_in(2).then(|| rng.between(0, 200))),
        35 => Action::Suspend(rng.one_in(2)),
        36 => Action::Start(rng.between(-5, 40)),
        37..=38 => {
            let statuses = [
                SubscriptionStatus::Active,
                SubscriptionStatus::OnTrial,
                SubscriptionStatus::Paused,
                SubscriptionStatus::Cancelled,
            ];
            let status = rng.pick(&statuses);
            let renews = rng.one_in(2).then(|| rng.between(1, 60));
            let ends = rng.one_in(3).then(|| rng.between(-1, 200));
            Action::Status(status, renews, ends)
        }
        39 => Action::FreeUntil(rng.between(-3, 10)),
        40..=42 => Action::Switch(rng.one_in(2)),
        43 => Action::PayDisputed(Amount::Periods(rng.between(1, 2), 0)),
        44 => Action::Back,
        _ => Action::End(Some(rng.between(-3, 60))),
    }
}
