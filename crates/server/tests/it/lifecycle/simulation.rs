//! Years of random calls by many subscribers, while workers run, lag and are killed. The auditor, which
//! shares no code with the service, then checks the money and access laws for each subscription.
//!
//! `SEEDS` sets the number of subscribers; `just prove simulate` uses 300. `SEED` selects the first one.

mod request;
mod subscriber;

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{at, dump_records, start_managed};
use crate::harness::{api::ApiClient, env_number, service::InProcessService};
use subscriber::{Record, Subscriber};

/// A small deterministic random number generator.
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    fn hours(&mut self, days: u64) -> SignedDuration {
        SignedDuration::from_hours(self.below(24 * days) as i64)
    }
}

const START: &str = "2027-01-31T09:30:00Z";
const YEARS: i64 = 2;
/// Longer than the largest distance between a call and its entries.
const AFTER_CALL: SignedDuration = SignedDuration::from_micros(100);

/// Slug, price, billing cycle and trial days.
const PLANS: [(&str, i64, &str, i64); 7] = [
    ("free", 0, "monthly", 0),
    ("pro", 20, "monthly", 0),
    ("team", 50, "monthly", 14),
    ("weekly", 5, "weekly", 0),
    ("daily", 1, "daily", 3),
    ("yearly", 200, "yearly", 30),
    ("lifetime", 300, "lifetime", 7),
];

/// What subscribers share.
struct World {
    api: ApiClient,
    plans: Vec<Value>,
}

struct Simulation {
    service: InProcessService,
    world: Arc<World>,
    subscribers: Vec<Subscriber>,
    /// Decides about time. Another one decides about workers, which run more often with more
    /// subscribers.
    random: SplitMix64,
    workers: SplitMix64,
}

impl Simulation {
    async fn start(seeds: std::ops::Range<u64>) -> Self {
        let (service, api) = start_managed(at(START)).await;
        let mut plans = Vec::new();
        for (slug, price, cycle, trial_days) in PLANS {
            let fields = json!({"name": slug, "slug": slug, "price": price, "billing_cycle": cycle, "trial_days": trial_days});
            plans.push(api.create("/subscription-plans", &fields).await);
        }
        let mut subscribers = Vec::new();
        for seed in seeds {
            let email = json!({"email": format!("{seed}@example.com")});
            subscribers.push(Subscriber::new(seed, api.create("/users", &email).await));
        }
        Self {
            service,
            world: Arc::new(World { api, plans }),
            subscribers,
            random: SplitMix64(42),
            workers: SplitMix64(43),
        }
    }

    /// Advances the clock to `target`. Unless the workers lag, stops at each instant that matters to a
    /// subscription, applies due transitions and reads the subscription.
    async fn advance(&mut self, target: Timestamp, workers_lag: bool) {
        if workers_lag {
            self.service.server.set_time(target);
            return;
        }
        loop {
            let instants = self.subscribers.iter_mut();
            let next = instants.filter_map(|one| one.next_instant(target)).min();
            self.work(next.unwrap_or(target)).await;
            let Some(next) = next else { return };
            for subscriber in &mut self.subscribers {
                if subscriber.take_instant(next) {
                    subscriber.probe(&self.world.api, next).await;
                }
            }
        }
    }

    /// Sets the time and runs workers, of which some are killed, until nothing is due.
    async fn work(&mut self, now: Timestamp) {
        self.service.server.set_time(now);
        if self.workers.below(10) == 0 {
            let mut working = JoinSet::new();
            for _ in 0..3 {
                let (server, killed) = (self.service.server.clone(), self.workers.below(2) == 0);
                working.spawn(async move { server.apply_transitions(5, killed).await });
            }
            working.join_all().await;
        }
        self.service.server.catch_up().await;
    }

    /// Two subscribers act at a time, each in its own order.
    async fn act(&mut self, now: Timestamp, workers_lag: bool) {
        let mut acting = JoinSet::new();
        let half = self.subscribers.len() / 2;
        let later = self.subscribers.split_off(half);
        for mut half in [std::mem::take(&mut self.subscribers), later] {
            let world = self.world.clone();
            acting.spawn(async move {
                for subscriber in &mut half {
                    subscriber.act(&world, now, workers_lag).await;
                }
                half
            });
        }
        self.subscribers = acting.join_all().await.into_iter().flatten().collect();
        self.subscribers.sort_by_key(|subscriber| subscriber.seed);
        let shown = now + AFTER_CALL;
        self.work(shown).await;
        for subscriber in &mut self.subscribers {
            subscriber.probe(&self.world.api, shown).await;
        }
    }

    async fn run(&mut self) {
        let mut now = at(START);
        let end = now + SignedDuration::from_hours(24 * 365 * YEARS);
        while now < end {
            now += SignedDuration::from_secs(1) + self.random.hours(12);
            let workers_lag = self.random.below(4) == 0;
            self.advance(now, workers_lag).await;
            self.act(now, workers_lag).await;
            now += AFTER_CALL;
        }
        self.work(now).await;
    }

    /// Hands each subscription to the auditor. Returns a description of each violation.
    async fn audit(&mut self) -> Vec<String> {
        let mut violations = Vec::new();
        for subscriber in &mut self.subscribers {
            violations.extend(subscriber.audit(&self.world.api).await);
        }
        violations
    }
}

/// Asserts that the last event of each subscription equals the record, and that events have an order.
async fn assert_events_are_consistent(service: &InProcessService) {
    for (what, sql) in [
        (
            "the last event differs from the record",
            "SELECT count(*) FROM subscriptions, LATERAL (SELECT data FROM events WHERE events.tenant_id = subscriptions.tenant_id
                AND subject_id = subscriptions.id ORDER BY at DESC, id DESC LIMIT 1) AS last
             WHERE deleted_at IS NULL AND (last.data ->> 'status' <> status
                OR (last.data ->> 'credit')::numeric * 100 <> credit_minor
                OR (last.data ->> 'renews_at')::timestamptz IS DISTINCT FROM renews_at
                OR (last.data ->> 'ends_at')::timestamptz IS DISTINCT FROM ends_at)",
        ),
        (
            "two events of a subscription at one instant",
            "SELECT count(*) FROM (SELECT FROM events WHERE kind ~ '^subscription' GROUP BY subject_id, at HAVING count(*) > 1) AS twice",
        ),
        (
            "two ledger entries of a subscription at one instant",
            "SELECT count(*) FROM (SELECT FROM ledger_entries GROUP BY subscription_id, created_at HAVING count(*) > 1) AS twice",
        ),
        (
            "a period that was charged twice",
            "SELECT count(*) FROM (SELECT FROM ledger_entries WHERE type = 'period'
                GROUP BY subscription_id, period_starts_at HAVING count(*) > 1) AS twice",
        ),
    ] {
        assert_eq!(service.count(sql).await, 0, "{what}");
    }
}

/// Simulates these subscribers and returns each one's records, by email address.
async fn simulate(seeds: std::ops::Range<u64>) -> BTreeMap<String, Vec<String>> {
    let started = Instant::now();
    let mut simulation = Simulation::start(seeds.clone()).await;
    simulation.run().await;
    let violations = simulation.audit().await;
    let records = || simulation.subscribers.iter().flat_map(Subscriber::records);
    let sum = |count: fn(&Record) -> usize| records().map(count).sum::<usize>();
    println!(
        "{} seeds, {YEARS} years: {} subscriptions, {} calls, of which the auditor received {}, {} reads, {} ledger entries, \
         {} violations, {:.0?}",
        simulation.subscribers.len(),
        records().count(),
        sum(|one| one.log.len()),
        sum(|one| one.audit.history.calls.len()),
        sum(|one| one.audit.history.probes.len()),
        sum(|one| one.audit.history.entries.len()),
        violations.len(),
        started.elapsed()
    );
    let shown = violations.iter().take(3).cloned().collect::<Vec<_>>();
    assert!(violations.is_empty(), "{}", shown.join("\n\n"));
    assert_events_are_consistent(&simulation.service).await;
    let mut records: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in dump_records(&simulation.service).await {
        let email = line.split(' ').nth(1).unwrap().to_owned();
        records.entry(email).or_default().push(line);
    }
    records
}

#[tokio::test]
async fn simulated_subscriptions_obey_the_laws() {
    let first = env_number("SEED").unwrap_or(0);
    let all = simulate(first..first + env_number("SEEDS").unwrap_or(12)).await;
    // A seed gives the same result with fewer other subscribers.
    let again = simulate(first..first + 3).await;
    for (email, records) in again {
        assert!(records.len() > 3, "{records:?}");
        if let Some(before) = all.get(&email) {
            let lines = before.iter().zip(&records);
            let differing = lines.into_iter().find(|(before, after)| before != after);
            assert_eq!(differing, None, "{email}");
            assert_eq!(before.len(), records.len(), "{email}");
        }
    }
}
