//! A thousand simulated subscriptions over ten years of random requests: invariants hold after
//! every change, and the result does not depend on when the worker runs.

use jiff::civil::date;
use jiff::tz::TimeZone;
use uuid::Uuid;

use super::{super::NewSubscription, tests::MANAGED, *};
use crate::{BillingCycle, Id, Offer, PlanId, SubscriptionChanges, SubscriptionId, UserId};

const SEEDS: u64 = 1_000;

/// `SplitMix64`, a deterministic random number generator.
struct SplitMix64(u64);

impl SplitMix64 {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let len = u64::try_from(from.len()).unwrap();
        from[usize::try_from(self.below(len)).unwrap()]
    }
}

/// One simulated subscription.
struct Simulation {
    sub: Subscription,
    transitions: Vec<(Transition, Timestamp)>,
    /// Paid periods, and how many of those have started.
    paid: u32,
    started: u32,
    periods: Vec<Timestamp>,
    /// Only time and payments change it.
    payments_only: bool,
}

impl Simulation {
    fn start(rng: &mut SplitMix64) -> Self {
        let day = i8::try_from(1 + rng.below(31)).unwrap();
        let start = date(2026, 1, day).at(9, 30, 0, 0);
        let now = start.to_zoned(TimeZone::UTC).unwrap().timestamp();
        let price = rng.pick(&[0, 500, 1_999, 1_999, 1_999]);
        let offer = Offer {
            plan: PlanId::new(Uuid::from_u128(3)),
            price: Money::from_minor_units(price, "USD".parse().unwrap()).unwrap(),
            billing_cycle: rng.pick(&BillingCycle::ALL),
            is_active: true,
        };
        let new = NewSubscription {
            status: Some(rng.pick(&[
                SubscriptionStatus::Active,
                SubscriptionStatus::Active,
                SubscriptionStatus::OnTrial,
                SubscriptionStatus::Pending,
            ])),
            ..NewSubscription::new(UserId::new(Uuid::from_u128(2)))
        };
        let id = SubscriptionId::new(Uuid::from_u128(1));
        Self {
            sub: Subscription::create(new, &offer, id, now).unwrap(),
            transitions: Vec::new(),
            paid: 0,
            started: 0,
            periods: Vec::new(),
            payments_only: rng.below(2) == 0,
        }
    }

    /// Applies all transitions due by `now`, as the worker does.
    fn catch_up(&mut self, now: Timestamp) {
        while let Some(due) = self.sub.next_transition(&MANAGED, now) {
            assert!(due.at <= now && due.at >= self.sub.updated_at);
            if due.transition == Transition::Renewed && !self.sub.is_free() {
                self.started += 1;
            }
            self.transitions.push((due.transition, due.at));
            self.sub = due.after;
            self.check(due.at);
        }
        let due_at = match self.sub.status {
            SubscriptionStatus::Active | SubscriptionStatus::OnTrial => self.sub.renews_at,
            SubscriptionStatus::PastDue => self.sub.past_due_since,
            _ => None,
        };
        match self.sub.status {
            SubscriptionStatus::PastDue => {
                assert!(now.duration_since(due_at.unwrap()).as_hours() < 7 * 24);
            }
            _ => assert!(due_at.is_none_or(|due| due > now), "{:?}", self.sub),
        }
    }

    fn random_request(&mut self, rng: &mut SplitMix64, now: Timestamp) {
        match rng.below(10) {
            0..=5 => self.pay(rng.pick(&[1_999, 1_999, 1_999, 500, 0]), now),
            6.. if self.payments_only => {}
            6 => {
                let to = rng.pick(self.sub.status_at(now).allowed_transitions());
                self.update(
                    &SubscriptionChanges {
                        status: Some(to),
                        ..SubscriptionChanges::default()
                    },
                    now,
                );
            }
            7 => {
                let is_active = Some(!self.sub.has_access(now));
                self.update(
                    &SubscriptionChanges {
                        is_active,
                        ..SubscriptionChanges::default()
                    },
                    now,
                );
            }
            8 if rng.below(4) == 0 => {
                let days = i64::try_from(rng.below(40)).unwrap() - 5;
                let renewal = now + SignedDuration::from_hours(24 * days);
                let changes = SubscriptionChanges {
                    renews_at: Some(Some(renewal)),
                    status: (self.sub.status == SubscriptionStatus::Expired)
                        .then_some(SubscriptionStatus::Active),
                    ..SubscriptionChanges::default()
                };
                self.update(&changes, now);
            }
            _ => {}
        }
        self.check(now);
    }

    fn update(&mut self, changes: &SubscriptionChanges, now: Timestamp) {
        if let Ok(Some(after)) = self.sub.update(changes, now) {
            self.sub = after.with_current_period_granted(&self.sub, &MANAGED);
        }
    }

    fn pay(&mut self, minor: i64, now: Timestamp) {
        let amount = Money::from_minor_units(minor, "USD".parse().unwrap()).unwrap();
        let Some(PaymentEffect { after, period }) = self.sub.apply_payment(amount, &MANAGED, now)
        else {
            return;
        };
        assert!(minor >= self.sub.plan.price.minor_units());
        self.paid += 1;
        if after.prepaid == self.sub.prepaid {
            self.started += 1;
            assert!(after.renews_at.is_none_or(|renewal| renewal > now));
            assert_eq!(after.status, SubscriptionStatus::Active);
        }
        self.periods.push(period.unwrap());
        self.sub = after;
    }

    /// Checks the invariants.
    fn check(&self, now: Timestamp) {
        let sub = &self.sub;
        let past_due = matches!(
            sub.status,
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid
        );
        assert_eq!(sub.past_due_since.is_some(), past_due, "{sub:?}");
        assert!(
            !matches!(
                sub.status,
                SubscriptionStatus::Cancelled | SubscriptionStatus::Expired
            ) || sub.ends_at.is_some()
        );
        assert!(sub.ends_at.is_none_or(|end| end > now) || !sub.has_access(now));
        assert!(sub.validate_dates().is_empty(), "{sub:?}");
        // Each payment paid for sub period, started or prepaid.
        assert_eq!(self.paid, self.started + sub.prepaid, "{sub:?}");
        if self.payments_only {
            let mut periods = self.periods.clone();
            periods.dedup();
            assert_eq!(periods.len(), self.periods.len(), "a period was paid twice");
            assert!(self.periods.is_sorted(), "the earliest first");
        }
        // Renewal dates are counted from the anchor.
        if let Some(renewal) = sub.renews_at {
            let before = renewal - SignedDuration::from_micros(1);
            let counted = sub.billing_cycle.next_renewal(sub.anchor, before);
            assert_eq!(counted, Some(renewal), "{sub:?}");
        }
    }
}

/// Simulates ten years. `worker` adds runs of the worker at random times between requests.
fn simulate(
    seed: u64,
    mut worker: Option<SplitMix64>,
) -> (Subscription, Vec<(Transition, Timestamp)>, u32) {
    let mut rng = SplitMix64(seed);
    let mut simulation = Simulation::start(&mut rng);
    let start = simulation.sub.created_at;
    let mut hours = 0;
    while hours < 10 * 365 * 24 {
        let pause = 1 + i64::try_from(rng.below(40 * 24)).unwrap();
        if let Some(worker) = &mut worker {
            for hour in 1..pause {
                if worker.below(30) == 0 {
                    simulation.catch_up(start + SignedDuration::from_hours(hours + hour));
                }
            }
        }
        hours += pause;
        // Requests see the transitions due before them.
        let now = start + SignedDuration::from_hours(hours);
        simulation.catch_up(now);
        simulation.random_request(&mut rng, now);
    }
    (simulation.sub, simulation.transitions, simulation.paid)
}

#[test]
fn result_does_not_depend_on_when_the_worker_runs() {
    let (mut transitions, mut paid) = (0, 0);
    for seed in 0..SEEDS {
        let at_requests_only = simulate(seed, None);
        assert_eq!(at_requests_only, simulate(seed, None), "seed {seed} again");
        let with_worker = simulate(seed, Some(SplitMix64(seed)));
        assert_eq!(at_requests_only, with_worker, "seed {seed} with a worker");
        transitions += at_requests_only.1.len();
        paid += at_requests_only.2;
    }
    println!("{SEEDS} subscriptions: {transitions} transitions, {paid} paid periods");
    assert!(
        transitions > 50_000 && paid > 10_000,
        "{transitions}, {paid}"
    );
}
