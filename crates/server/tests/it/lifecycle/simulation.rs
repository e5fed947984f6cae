//! Ten years of many subscribers, each of whom does whatever their dice say, while workers come, go and are killed: over
//! the interface, on a real database, with a clock that jumps from day to day.
//!
//! `SEEDS` says how many; `just simulate` takes 1,000.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use axum::http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{at, held, on_record};
use crate::{
    harness::{held::Held, service::Service},
    subscriptions::path_of,
};

/// `SplitMix64`: small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.throw(from.len() as u64) as usize]
    }
}

/// A subscriber.
struct Person {
    dice: Dice,
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

impl Person {
    /// Does one thing, or nothing. Whatever is refused is refused properly.
    async fn act(&mut self, held: &Held, plans: &[Value], now: Timestamp) {
        match self.dice.throw(36) {
            0 if self.subscriptions.len() < 4 => self.subscribe(held, plans).await,
            1..=4 => self.pay(held).await,
            5 => self.change(held, now).await,
            6 => self.settle(held).await,
            7 if self.dice.throw(20) == 0 => {
                if let Some(one) = self.subscriptions.pop() {
                    let (status, _) = held.call(Method::DELETE, &path_of(&one), None).await;
                    assert_eq!(status, 204);
                }
            }
            _ => {}
        }
    }

    async fn subscribe(&mut self, held: &Held, plans: &[Value]) {
        let plan = self.dice.pick(plans);
        let status = *self.dice.pick(&["active", "active", "on_trial", "pending"]);
        let fields = json!({"user_id": self.user["id"], "subscription_plan_id": plan["id"], "status": status});
        self.subscriptions
            .push(held.post("/subscriptions", &fields).await);
    }

    async fn pay(&mut self, held: &Held) {
        let Some(one) = self.subscriptions.last() else {
            return;
        };
        let amount = *self.dice.pick(&[20, 20, 20, 5, 0]);
        let status = *self
            .dice
            .pick(&["completed", "completed", "pending", "failed"]);
        let fields = json!({"subscription_id": one["id"], "amount": amount, "currency": "USD", "status": status});
        self.payments
            .push(held.post("/subscription-payments", &fields).await);
    }

    async fn change(&mut self, held: &Held, now: Timestamp) {
        let Some(one) = self.subscriptions.last() else {
            return;
        };
        let later = now + SignedDuration::from_hours(24 * self.dice.throw(60) as i64);
        let body = match self.dice.throw(4) {
            0 => json!({"is_active": self.dice.throw(2) == 0}),
            1 => json!({"renews_at": later.to_string()}),
            2 => json!({"status": "active", "renews_at": later.to_string()}),
            _ => json!({"status": self.dice.pick(&STATUSES)}),
        };
        let (status, answer) = held.call(Method::PUT, &path_of(one), Some(&body)).await;
        assert!([200, 409, 422].contains(&status), "{body}: {answer}");
    }

    /// What becomes of a payment.
    async fn settle(&mut self, held: &Held) {
        if self.payments.is_empty() {
            return;
        }
        let one = self.dice.pick(&self.payments);
        let to = *self
            .dice
            .pick(&["completed", "completed", "disputed", "refunded", "void"]);
        let body = json!({"status": to});
        let (status, answer) = held.call(Method::PUT, &path_of(one), Some(&body)).await;
        assert!([200, 409].contains(&status), "{body}: {answer}");
    }
}

/// What is true whenever the workers have been by.
async fn holds(service: &Service, now: Timestamp) {
    let client = service.database.connect().await;
    for (what, sql) in [
        (
            "due, and not moved",
            "SELECT count(*) FROM subscriptions WHERE deleted_at IS NULL AND (ends_at <= $1 AND status <> 'expired'
                OR status IN ('active', 'on_trial') AND renews_at <= $1
                OR status = 'past_due' AND late_since <= $1::timestamptz - interval '7 days'
                OR status = 'unpaid' AND late_since <= $1::timestamptz - interval '30 days')",
        ),
        (
            "changed in the future",
            "SELECT count(*) FROM subscriptions WHERE updated_at > $1::timestamptz + interval '1 second'",
        ),
    ] {
        let found: i64 = client.query_one(sql, &[&now]).await.unwrap().get(0);
        assert_eq!(found, 0, "{what} at {now}");
    }
}

/// What is true of everything that was recorded.
async fn adds_up(service: &Service) {
    let client = service.database.connect().await;
    for (what, sql) in [
        (
            "what the last event says is what is so",
            "SELECT count(*) FROM subscriptions, LATERAL (SELECT data FROM events WHERE events.tenant_id = subscriptions.tenant_id
                AND subject_id = subscriptions.id ORDER BY at DESC, id DESC LIMIT 1) AS last
             WHERE deleted_at IS NULL AND (last.data ->> 'status' <> status
                OR (last.data ->> 'renews_at')::timestamptz IS DISTINCT FROM renews_at
                OR (last.data ->> 'ends_at')::timestamptz IS DISTINCT FROM ends_at)",
        ),
        (
            "two things of one subscription at one instant",
            "SELECT count(*) FROM (SELECT FROM events WHERE kind ~ '^subscription' GROUP BY subject_id, at HAVING count(*) > 1) AS twice",
        ),
        (
            "each payment has paid for one period, that has begun or is ahead",
            "SELECT count(*) FROM subscriptions,
                LATERAL (SELECT count(period) AS paid FROM subscription_payments WHERE subscription_id = subscriptions.id) AS a,
                LATERAL (SELECT count(*) FILTER (WHERE kind = 'subscription.renewed' AND (data ->> 'price')::numeric > 0)
                    + count(*) FILTER (WHERE kind = 'subscription.updated' AND data ->> 'status' = 'active' AND request_id IN (
                        SELECT request_id FROM events AS cause WHERE cause.kind ~ '^payment')) AS begun
                    FROM events WHERE subject_id = subscriptions.id) AS b
             WHERE paid <> begun + prepaid",
        ),
        (
            "it renews on a date that is counted from the anchor",
            "SELECT count(*) FROM subscriptions WHERE billing_cycle = 'monthly' AND renews_at <> anchor
             AND NOT EXISTS (SELECT FROM generate_series(0, 150) AS n
                WHERE ((anchor AT TIME ZONE 'UTC') + n * interval '1 month') AT TIME ZONE 'UTC' = renews_at)",
        ),
    ] {
        let found: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
        assert_eq!(found, 0, "{what}");
    }
}

/// Ten years; answers what is on record of each in the end, by e-mail address.
async fn ten_years(seeds: u64) -> BTreeMap<String, Vec<String>> {
    let begin = at("2027-01-31T09:30:00Z");
    let (service, held) = held(begin).await;
    let held = Arc::new(held);
    let mut plans = Vec::new();
    for (slug, price, cycle) in [
        ("free", 0, "monthly"),
        ("pro", 20, "monthly"),
        ("weekly", 5, "weekly"),
        ("yearly", 20, "yearly"),
    ] {
        let fields = json!({"name": slug, "slug": slug, "price": price, "billing_cycle": cycle});
        plans.push(held.post("/subscription-plans", &fields).await);
    }
    let plans = Arc::new(plans);
    let mut people = Vec::new();
    for seed in 0..seeds {
        let email = format!("{seed}@example.com");
        people.push(Person {
            dice: Dice(seed),
            user: held.post("/users", &json!({"email": email})).await,
            subscriptions: Vec::new(),
            payments: Vec::new(),
        });
    }
    let mut workers = Dice(42);
    let (mut now, mut calls) = (begin, 0);
    while now < at("2037-01-31T09:30:00Z") {
        now += SignedDuration::from_hours(1 + workers.throw(20 * 24) as i64);
        held.set(now);
        // Some days nobody works; on others several do, and some of them are killed.
        let count = workers.throw(4);
        let mut working = JoinSet::new();
        for _ in 0..count {
            let (held, killed) = (held.clone(), workers.throw(3) == 0);
            working.spawn(async move { held.work(20, killed).await });
        }
        working.join_all().await;
        if count > 0 {
            held.catch_up().await;
            holds(&service, now).await;
        }
        // Two at a time: everybody's own things happen in their order.
        let mut acting = JoinSet::new();
        let half = people.len().div_ceil(2);
        for mut half in [people.split_off(people.len() - half), people] {
            let (held, plans) = (held.clone(), plans.clone());
            acting.spawn(async move {
                for person in &mut half {
                    person.act(&held, &plans, now).await;
                }
                half
            });
        }
        people = acting.join_all().await.into_iter().flatten().collect();
        calls += 1;
    }
    held.catch_up().await;
    holds(&service, now).await;
    adds_up(&service).await;
    let moved = service
        .count("SELECT count(*) FROM events WHERE kind ~ '^subscription.(renewed|past_due|unpaid|expired)$'")
        .await;
    println!("{seeds} seeds: {calls} days with calls, {moved} things happened by themselves");
    let mut records: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in on_record(&service).await {
        let email = line.split(' ').nth(1).unwrap().to_owned();
        records.entry(email).or_default().push(line);
    }
    records
}

#[tokio::test]
async fn ten_years_of_whatever_people_do_alone() {
    let seeds = std::env::var("SEEDS").ok();
    let seeds = seeds.map_or(12, |seeds| seeds.parse().unwrap());
    let began = Instant::now();
    let all = ten_years(seeds).await;
    println!("{:.0?}", began.elapsed());
    // Alone or among a thousand, a seed gives the same.
    let again = ten_years(seeds.min(25)).await;
    assert!(again.len() > 5);
    for (email, records) in again {
        assert_eq!(all.get(&email), Some(&records), "{email}");
    }
}
