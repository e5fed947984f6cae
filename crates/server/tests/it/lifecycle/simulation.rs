//! Ten years of random actions by many subscribers, while workers run, pause and are killed. The
//! billing clock advances by up to 20 days at a time.
//!
//! `SEEDS` sets the number of subscribers; `just simulate` uses 1,000.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{at, dump_records, start_managed};
use crate::{
    harness::{api::ApiClient, service::InProcessService},
    subscriptions::record_path,
};

/// A small deterministic random number generator.
struct SplitMix64(u64);

impl SplitMix64 {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

struct Subscriber {
    random: SplitMix64,
    user: Value,
    subscriptions: Vec<Value>,
    payments: Vec<Value>,
}

const STATUSES: [&str; 8] = [
    "pending",
    "on_trial",
    "active",
    "paused",
    "past_due",
    "unpaid",
    "cancelled",
    "expired",
];

impl Subscriber {
    /// Performs a random action, or none. Only expected errors may occur.
    async fn act(&mut self, api: &ApiClient, plans: &[Value], now: Timestamp) {
        match self.random.below(36) {
            0 if self.subscriptions.len() < 4 => self.subscribe(api, plans).await,
            1..=4 => self.pay(api).await,
            5 => self.update(api, now).await,
            6 => self.update_payment(api).await,
            7 if self.random.below(20) == 0 => {
                if let Some(subscription) = self.subscriptions.pop() {
                    let response = api.delete(&record_path(&subscription)).await;
                    assert_eq!(response.status, 204);
                }
            }
            _ => {}
        }
    }

    async fn subscribe(&mut self, api: &ApiClient, plans: &[Value]) {
        let plan = self.random.pick(plans);
        let status = *self
            .random
            .pick(&["active", "active", "on_trial", "pending"]);
        let fields = json!({"user_id": self.user["id"], "subscription_plan_id": plan["id"], "status": status});
        self.subscriptions
            .push(api.create("/subscriptions", &fields).await);
    }

    async fn pay(&mut self, api: &ApiClient) {
        let Some(subscription) = self.subscriptions.last() else {
            return;
        };
        let amount = *self.random.pick(&[20, 20, 20, 5, 0]);
        let status = *self
            .random
            .pick(&["completed", "completed", "pending", "failed"]);
        let fields = json!({"subscription_id": subscription["id"], "amount": amount, "currency": "USD", "status": status});
        self.payments
            .push(api.create("/subscription-payments", &fields).await);
    }

    async fn update(&mut self, api: &ApiClient, now: Timestamp) {
        let Some(subscription) = self.subscriptions.last() else {
            return;
        };
        let later = now + SignedDuration::from_hours(24 * self.random.below(60) as i64);
        let body = match self.random.below(4) {
            0 => json!({"is_active": self.random.below(2) == 0}),
            1 => json!({"renews_at": later.to_string()}),
            2 => json!({"status": "active", "renews_at": later.to_string()}),
            _ => json!({"status": self.random.pick(&STATUSES)}),
        };
        let response = api.put(&record_path(subscription), &body.to_string()).await;
        let expected = [200, 409, 422].contains(&response.status);
        assert!(expected, "{body}: {}", response.text);
    }

    async fn update_payment(&mut self, api: &ApiClient) {
        if self.payments.is_empty() {
            return;
        }
        let payment = self.random.pick(&self.payments);
        let to = *self
            .random
            .pick(&["completed", "completed", "disputed", "refunded", "void"]);
        let body = json!({"status": to});
        let response = api.put(&record_path(payment), &body.to_string()).await;
        let expected = [200, 409].contains(&response.status);
        assert!(expected, "{body}: {}", response.text);
    }
}

/// Asserts what holds after the workers have run.
async fn assert_nothing_is_due(service: &InProcessService, now: Timestamp) {
    let client = service.database.connect().await;
    for (what, sql) in [
        (
            "due transitions",
            "SELECT count(*) FROM subscriptions WHERE deleted_at IS NULL AND (ends_at <= $1 AND status <> 'expired'
                OR status IN ('active', 'on_trial') AND renews_at <= $1
                OR status = 'past_due' AND late_since <= $1::timestamptz - interval '7 days'
                OR status = 'unpaid' AND late_since <= $1::timestamptz - interval '30 days')",
        ),
        (
            "updates in the future",
            "SELECT count(*) FROM subscriptions WHERE updated_at > $1::timestamptz + interval '1 second'",
        ),
    ] {
        let count: i64 = client.query_one(sql, &[&now]).await.unwrap().get(0);
        assert_eq!(count, 0, "{what} at {now}");
    }
}

/// Asserts the invariants of all records.
async fn assert_records_are_consistent(service: &InProcessService) {
    let client = service.database.connect().await;
    for (what, sql) in [
        (
            "the last event differs from the record",
            "SELECT count(*) FROM subscriptions, LATERAL (SELECT data FROM events WHERE events.tenant_id = subscriptions.tenant_id
                AND subject_id = subscriptions.id ORDER BY at DESC, id DESC LIMIT 1) AS last
             WHERE deleted_at IS NULL AND (last.data ->> 'status' <> status
                OR (last.data ->> 'renews_at')::timestamptz IS DISTINCT FROM renews_at
                OR (last.data ->> 'ends_at')::timestamptz IS DISTINCT FROM ends_at)",
        ),
        (
            "two events of a subscription at one instant",
            "SELECT count(*) FROM (SELECT FROM events WHERE kind ~ '^subscription' GROUP BY subject_id, at HAVING count(*) > 1) AS twice",
        ),
        (
            "paid periods differ from started and prepaid periods",
            "SELECT count(*) FROM subscriptions,
                LATERAL (SELECT count(period) AS paid FROM subscription_payments WHERE subscription_id = subscriptions.id) AS a,
                LATERAL (SELECT count(*) FILTER (WHERE kind = 'subscription.renewed' AND (data ->> 'price')::numeric > 0)
                    + count(*) FILTER (WHERE kind = 'subscription.updated' AND data ->> 'status' = 'active' AND request_id IN (
                        SELECT request_id FROM events AS cause WHERE cause.kind ~ '^payment')) AS begun
                    FROM events WHERE subject_id = subscriptions.id) AS b
             WHERE paid <> begun + prepaid",
        ),
        (
            "renewal dates that do not follow from the anchor",
            "SELECT count(*) FROM subscriptions WHERE billing_cycle = 'monthly' AND renews_at <> anchor
             AND NOT EXISTS (SELECT FROM generate_series(0, 150) AS n
                WHERE ((anchor AT TIME ZONE 'UTC') + n * interval '1 month') AT TIME ZONE 'UTC' = renews_at)",
        ),
    ] {
        let count: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
        assert_eq!(count, 0, "{what}");
    }
}

/// Simulates ten years and returns each subscriber's records, by email address.
async fn simulate(seeds: u64) -> BTreeMap<String, Vec<String>> {
    let start = at("2027-01-31T09:30:00Z");
    let (service, api) = start_managed(start).await;
    let mut plans = Vec::new();
    for (slug, price, cycle) in [
        ("free", 0, "monthly"),
        ("pro", 20, "monthly"),
        ("weekly", 5, "weekly"),
        ("yearly", 20, "yearly"),
    ] {
        let fields = json!({"name": slug, "slug": slug, "price": price, "billing_cycle": cycle});
        plans.push(api.create("/subscription-plans", &fields).await);
    }
    let plans = Arc::new(plans);
    let mut subscribers = Vec::new();
    for seed in 0..seeds {
        let email = format!("{seed}@example.com");
        subscribers.push(Subscriber {
            random: SplitMix64(seed),
            user: api.create("/users", &json!({"email": email})).await,
            subscriptions: Vec::new(),
            payments: Vec::new(),
        });
    }
    let mut workers = SplitMix64(42);
    let (mut now, mut calls) = (start, 0);
    while now < at("2037-01-31T09:30:00Z") {
        now += SignedDuration::from_hours(1 + workers.below(20 * 24) as i64);
        service.server.set_time(now);
        // Between zero and three workers run, and some of them are killed.
        let count = workers.below(4);
        let mut working = JoinSet::new();
        for _ in 0..count {
            let (server, killed) = (service.server.clone(), workers.below(3) == 0);
            working.spawn(async move { server.apply_transitions(20, killed).await });
        }
        working.join_all().await;
        if count > 0 {
            service.server.catch_up().await;
            assert_nothing_is_due(&service, now).await;
        }
        // Two subscribers act at a time, each in its own order.
        let mut acting = JoinSet::new();
        let half = subscribers.len().div_ceil(2);
        for mut half in [subscribers.split_off(subscribers.len() - half), subscribers] {
            let (api, plans) = (api.clone(), plans.clone());
            acting.spawn(async move {
                for subscriber in &mut half {
                    subscriber.act(&api, &plans, now).await;
                }
                half
            });
        }
        subscribers = acting.join_all().await.into_iter().flatten().collect();
        calls += 1;
    }
    service.server.catch_up().await;
    assert_nothing_is_due(&service, now).await;
    assert_records_are_consistent(&service).await;
    let transitions = service
        .count("SELECT count(*) FROM events WHERE kind ~ '^subscription.(renewed|past_due|unpaid|expired)$'")
        .await;
    println!("{seeds} seeds: {calls} steps, {transitions} transitions");
    let mut records: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in dump_records(&service).await {
        let email = line.split(' ').nth(1).unwrap().to_owned();
        records.entry(email).or_default().push(line);
    }
    records
}

#[tokio::test]
async fn ten_year_simulation_is_consistent_and_deterministic() {
    let seeds = std::env::var("SEEDS").ok();
    let seeds = seeds.map_or(12, |seeds| seeds.parse().unwrap());
    let started = Instant::now();
    let all = simulate(seeds).await;
    println!("{:.0?}", started.elapsed());
    // A seed gives the same result with fewer other subscribers.
    let again = simulate(seeds.min(25)).await;
    assert!(again.len() > 5);
    for (email, records) in again {
        assert_eq!(all.get(&email), Some(&records), "{email}");
    }
}
