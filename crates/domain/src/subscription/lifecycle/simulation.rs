//! A thousand subscriptions, ten years each, of whatever people may do: what holds is held after every step, and it makes
//! no difference when somebody came by to write down what had happened.

use jiff::civil::date;
use jiff::tz::TimeZone;
use uuid::Uuid;

use super::{super::NewSubscription, tests::MANAGED, *};
use crate::{BillingCycle, Changes, Id, Offer, PlanId, SubscriptionId, UserId};

const SEEDS: u64 = 1_000;

/// `SplitMix64`: small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let sides = u64::try_from(from.len()).unwrap();
        from[usize::try_from(self.throw(sides)).unwrap()]
    }
}

/// One subscription's ten years.
struct Life {
    one: Subscription,
    steps: Vec<(Turn, Timestamp)>,
    /// How many periods were paid for, and how many of those have begun.
    paid: u32,
    begun: u32,
    periods: Vec<Timestamp>,
    /// Nobody but time and payments moves it.
    undisturbed: bool,
}

impl Life {
    fn begin(dice: &mut Dice) -> Self {
        let day = i8::try_from(1 + dice.throw(31)).unwrap();
        let start = date(2026, 1, day).at(9, 30, 0, 0);
        let now = start.to_zoned(TimeZone::UTC).unwrap().timestamp();
        let price = dice.pick(&[0, 500, 1_999, 1_999, 1_999]);
        let offer = Offer {
            plan: PlanId::new(Uuid::from_u128(3)),
            price: Money::of_minor_units(price, "USD".parse().unwrap()).unwrap(),
            billing_cycle: dice.pick(&BillingCycle::ALL),
            is_active: true,
        };
        let new = NewSubscription {
            user: UserId::new(Uuid::from_u128(2)),
            external_id: None,
            billing_cycle: None,
            status: Some(dice.pick(&[
                Status::Active,
                Status::Active,
                Status::OnTrial,
                Status::Pending,
            ])),
            is_active: None,
            starts_at: None,
            renews_at: None,
            ends_at: None,
        };
        let id = SubscriptionId::new(Uuid::from_u128(1));
        Self {
            one: Subscription::start(new, &offer, id, now).unwrap(),
            steps: Vec::new(),
            paid: 0,
            begun: 0,
            periods: Vec::new(),
            undisturbed: dice.throw(2) == 0,
        }
    }

    /// A worker comes by.
    fn catch_up(&mut self, now: Timestamp) {
        while let Some(step) = self.one.step(&MANAGED, now) {
            assert!(step.at <= now && step.at >= self.one.updated_at);
            if step.turn == Turn::Renewed && !self.one.is_free() {
                self.begun += 1;
            }
            self.steps.push((step.turn, step.at));
            self.one = step.after;
            self.holds(step.at);
        }
        let waits = match self.one.status {
            Status::Active | Status::OnTrial => self.one.renews_at,
            Status::PastDue => self.one.late_since,
            _ => None,
        };
        match self.one.status {
            Status::PastDue => assert!(now.duration_since(waits.unwrap()).as_hours() < 7 * 24),
            _ => assert!(waits.is_none_or(|due| due > now), "{:?}", self.one),
        }
    }

    fn call(&mut self, dice: &mut Dice, now: Timestamp) {
        match dice.throw(10) {
            0..=5 => self.pay(dice.pick(&[1_999, 1_999, 1_999, 500, 0]), now),
            6.. if self.undisturbed => {}
            6 => {
                let to = dice.pick(self.one.status_at(now).may_become());
                self.amend(
                    &Changes {
                        status: Some(to),
                        ..Changes::default()
                    },
                    now,
                );
            }
            7 => {
                let is_active = Some(!self.one.has_access(now));
                self.amend(
                    &Changes {
                        is_active,
                        ..Changes::default()
                    },
                    now,
                );
            }
            8 if dice.throw(4) == 0 => {
                let days = i64::try_from(dice.throw(40)).unwrap() - 5;
                let renewal = now + SignedDuration::from_hours(24 * days);
                let changes = Changes {
                    renews_at: Some(Some(renewal)),
                    status: (self.one.status == Status::Expired).then_some(Status::Active),
                    ..Changes::default()
                };
                self.amend(&changes, now);
            }
            _ => {}
        }
        self.holds(now);
    }

    fn amend(&mut self, changes: &Changes, now: Timestamp) {
        if let Ok(Some(after)) = self.one.amend(changes, now) {
            self.one = after.granted(&self.one, &MANAGED);
        }
    }

    fn pay(&mut self, minor: i64, now: Timestamp) {
        let amount = Money::of_minor_units(minor, "USD".parse().unwrap()).unwrap();
        let Some(Paid { after, period }) = self.one.pay(amount, &MANAGED, now) else {
            return;
        };
        assert!(minor >= self.one.terms.price.minor_units());
        self.paid += 1;
        if after.prepaid == self.one.prepaid {
            self.begun += 1;
            assert!(after.renews_at.is_none_or(|renewal| renewal > now));
            assert_eq!(after.status, Status::Active);
        }
        self.periods.push(period.unwrap());
        self.one = after;
    }

    /// What is true at every instant.
    fn holds(&self, now: Timestamp) {
        let one = &self.one;
        let late = matches!(one.status, Status::PastDue | Status::Unpaid);
        assert_eq!(one.late_since.is_some(), late, "{one:?}");
        assert!(
            !matches!(one.status, Status::Cancelled | Status::Expired) || one.ends_at.is_some()
        );
        assert!(one.ends_at.is_none_or(|end| end > now) || !one.has_access(now));
        assert!(one.wrong_dates().is_empty(), "{one:?}");
        // Each payment has paid for one period, which has begun or is still to come.
        assert_eq!(self.paid, self.begun + one.prepaid, "{one:?}");
        if self.undisturbed {
            let mut periods = self.periods.clone();
            periods.dedup();
            assert_eq!(periods.len(), self.periods.len(), "no period is paid twice");
            assert!(self.periods.is_sorted(), "the earliest first");
        }
        // It renews on a date that is counted from the anchor.
        if let Some(renewal) = one.renews_at {
            let before = renewal - SignedDuration::from_micros(1);
            let counted = one.billing_cycle.first_after(one.anchor, before);
            assert_eq!(counted, Some(renewal), "{one:?}");
        }
    }
}

/// Ten years of a seed, with workers that come by besides whenever these dice say so.
fn live(seed: u64, mut workers: Option<Dice>) -> (Subscription, Vec<(Turn, Timestamp)>, u32) {
    let mut dice = Dice(seed);
    let mut life = Life::begin(&mut dice);
    let begin = life.one.created_at;
    let mut hours = 0;
    while hours < 10 * 365 * 24 {
        let pause = 1 + i64::try_from(dice.throw(40 * 24)).unwrap();
        if let Some(workers) = &mut workers {
            for hour in 1..pause {
                if workers.throw(30) == 0 {
                    life.catch_up(begin + SignedDuration::from_hours(hours + hour));
                }
            }
        }
        hours += pause;
        // A call that is about money sees what was due before.
        let now = begin + SignedDuration::from_hours(hours);
        life.catch_up(now);
        life.call(&mut dice, now);
    }
    (life.one, life.steps, life.paid)
}

#[test]
fn a_thousand_lives_of_ten_years() {
    let (mut steps, mut paid) = (0, 0);
    for seed in 0..SEEDS {
        let at_calls_only = live(seed, None);
        assert_eq!(at_calls_only, live(seed, None), "seed {seed} again");
        let day_by_day = live(seed, Some(Dice(seed)));
        assert_eq!(at_calls_only, day_by_day, "seed {seed} with more workers");
        steps += at_calls_only.1.len();
        paid += at_calls_only.2;
    }
    println!("{SEEDS} lives: {steps} things happened by themselves, {paid} periods were paid for");
    assert!(steps > 50_000 && paid > 10_000, "{steps}, {paid}");
}
