//! One customer with several subscriptions and payments: its random requests.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::Shop;
use crate::{
    harness::{api::ApiResponse, unique_name},
    lifecycle::simulation::SplitMix64,
    subscriptions::{create_user, record_path},
};

/// The most subscriptions that a customer has at a time. Further ones replace the oldest.
const MAX_SUBSCRIPTIONS: usize = 4;
const CYCLES: &str = "daily weekly monthly quarterly semiannual yearly lifetime";

#[derive(Debug, Clone, Copy, Default)]
pub struct RequestCounts {
    pub accepted: u32,
    /// Responses of 402, 404, 409 and 422.
    pub rejected: u32,
}

impl RequestCounts {
    pub fn sum(customers: &[Customer]) -> Self {
        let counts = customers.iter().map(|customer| customer.counts);
        counts.fold(Self::default(), |sum, one| Self {
            accepted: sum.accepted + one.accepted,
            rejected: sum.rejected + one.rejected,
        })
    }
}

/// The id of a user; `None` before the first subscription and after the account was deleted.
pub type SharedUser = Arc<Mutex<Option<String>>>;

pub struct Customer {
    pub seed: u64,
    pub counts: RequestCounts,
    pub shop: Arc<Shop>,
    random: SplitMix64,
    /// Shared with another customer, so that two requests change records of one user at the same time.
    user: SharedUser,
    /// As they were last shown.
    subscriptions: Vec<Value>,
    payments: Vec<Value>,
}

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

/// Returns the number of decimals of the currencies of the plans.
fn scale(currency: &str) -> i32 {
    match currency {
        "JPY" => 0,
        "KWD" => 3,
        _ => 2,
    }
}

/// Returns an amount as a JSON number with no more decimals than its currency has.
fn amount(minor_units: i64, currency: &str) -> Value {
    match scale(currency) {
        0 => json!(minor_units),
        scale => json!(minor_units as f64 / 10_f64.powi(scale)),
    }
}

fn minor_units(amount: &Value, currency: &str) -> i64 {
    let factor = 10_f64.powi(scale(currency));
    (amount.as_f64().unwrap_or(0.0) * factor).round() as i64
}

impl Customer {
    pub fn new(seed: u64, shop: Arc<Shop>, user: SharedUser) -> Self {
        Self {
            seed,
            counts: RequestCounts::default(),
            shop,
            random: SplitMix64(seed),
            user,
            subscriptions: Vec::new(),
            payments: Vec::new(),
        }
    }

    fn one_in(&mut self, number: u64) -> bool {
        self.random.below(number) == 0
    }

    fn index(&mut self, length: usize) -> usize {
        self.random.below(length as u64) as usize
    }

    /// Returns a time up to `most` days after `now`.
    fn later(&mut self, now: Timestamp, most: u64) -> String {
        let seconds = 1 + self.random.below(86_400 * most) as i64;
        (now + SignedDuration::from_secs(seconds)).to_string()
    }

    /// Returns one of the words in a text.
    fn word(&mut self, words: &'static str) -> &'static str {
        let words: Vec<&str> = words.split(' ').collect();
        self.random.pick(&words)
    }

    fn plan(&mut self) -> Value {
        let index = self.index(self.shop.plans.len());
        self.shop.plans[index].clone()
    }

    fn price(&mut self, currency: &str) -> Value {
        let minor_units = match self.random.below(6) {
            0 => 0,
            _ => self.random.below(9_000) as i64,
        };
        amount(minor_units, currency)
    }

    /// Counts a response. Returns whether the request was accepted.
    fn count(&mut self, response: &ApiResponse, request: &dyn std::fmt::Debug) -> bool {
        match response.status {
            200 | 201 | 204 => self.counts.accepted += 1,
            // 503 comes from an overloaded machine. The replay reads from the events whether the change was made.
            402 | 404 | 409 | 422 | 503 => self.counts.rejected += 1,
            _ => panic!("seed {}: {request:?}: {}", self.seed, response.text),
        }
        response.status < 300
    }

    /// Sends a few random requests, or none.
    pub async fn act(&mut self, now: Timestamp) {
        while self.one_in(2) {
            self.act_once(now).await;
        }
    }

    async fn act_once(&mut self, now: Timestamp) {
        if self.subscriptions.is_empty() || self.one_in(9) {
            return self.subscribe(now).await;
        }
        match self.random.below(40) {
            0..=16 => self.change_subscription(now).await,
            17..=29 => self.pay(now).await,
            30..=37 => self.change_payment(now).await,
            38 => self.delete_subscription().await,
            _ if self.one_in(3) => self.erase().await,
            _ => {}
        }
    }

    async fn subscribe(&mut self, now: Timestamp) {
        let user = {
            let mut user = self.user.lock().await;
            if user.is_none() {
                let email = format!("{}@example.com", unique_name("user"));
                *user = Some(create_user(&self.shop.api, &email).await);
            }
            user.clone()
        };
        let plan = self.plan();
        let currency = plan["currency"].as_str().unwrap().to_owned();
        let mut fields = json!({"user_id": user, "subscription_plan_id": plan["id"]});
        let status = self.word(if self.shop.is_managed {
            "- - - active on_trial pending paused"
        } else {
            "- - - active active on_trial pending paused past_due unpaid cancelled expired"
        });
        if status != "-" {
            fields["status"] = json!(status);
        }
        match self.random.below(10) {
            0 => fields["starts_at"] = json!(self.later(now, 40)),
            1 => fields["starts_at"] = json!(self.later(now, 1)),
            2 => fields["starts_at"] = json!((now - days(3)).to_string()),
            3 => fields["starts_at"] = json!((now - days(60)).to_string()),
            4 => fields["renews_at"] = json!(self.later(now, 60)),
            5 => fields["ends_at"] = json!(self.later(now, 90)),
            _ => {}
        }
        if self.one_in(3) {
            fields["quantity"] = json!(1 + self.random.below(5));
        }
        if self.one_in(5) {
            fields["billing_cycle"] = json!(self.word(CYCLES));
        }
        if self.one_in(4) {
            fields["price"] = self.price(&currency);
        }
        if self.one_in(12) {
            fields["external_subscription_id"] = json!(unique_name("external-"));
        }
        if self.one_in(12) {
            fields["is_active"] = json!(false);
        }
        let response = self
            .shop
            .api
            .post("/subscriptions", &fields.to_string())
            .await;
        if self.count(&response, &fields) {
            if self.subscriptions.len() == MAX_SUBSCRIPTIONS {
                self.subscriptions.remove(0);
            }
            self.subscriptions.push(response.json());
            // In managed billing, a subscription without a payment never starts.
            if self.shop.is_managed && self.random.below(3) > 0 {
                let last = self.subscriptions.len() - 1;
                self.pay_for(last, "completed", now).await;
            }
        }
    }

    async fn change_subscription(&mut self, now: Timestamp) {
        let index = self.index(self.subscriptions.len());
        let before = self.subscriptions[index].clone();
        let currency = before["currency"].as_str().unwrap_or("USD").to_owned();
        let statuses = if self.shop.is_managed {
            "paused active active cancelled on_trial"
        } else {
            "paused active active active cancelled cancelled on_trial past_due past_due unpaid"
        };
        let body = match self.random.below(30) {
            0..=8 => json!({"status": self.word(statuses)}),
            9 if self.one_in(3) => json!({"status": "expired"}),
            10 | 11 => json!({"status": "active", "renews_at": self.later(now, 60)}),
            12 => json!({"status": "cancelled", "ends_at": self.later(now, 60)}),
            13 => json!({"is_active": before["is_active"] == false}),
            14 => json!({"is_active": false}),
            15 => json!({"is_active": true}),
            16 if self.shop.is_managed => json!({"free_until": self.later(now, 60)}),
            16 => json!({"renews_at": self.later(now, 60)}),
            17 => json!({"price": self.price(&currency)}),
            18 | 19 => json!({"quantity": 1 + self.random.below(5)}),
            20 => json!({"billing_cycle": self.word(CYCLES)}),
            21 => {
                let cycle = self.word(CYCLES);
                json!({"billing_cycle": cycle, "price": self.price(&currency)})
            }
            22 => json!({"ends_at": self.later(now, 60)}),
            23 => json!({"ends_at": null}),
            24 => json!({"starts_at": self.later(now, 30)}),
            25 => json!({"starts_at": (now - days(self.random.below(90) as i64)).to_string()}),
            26 => json!({"metadata": {"note": self.random.below(1_000).to_string()}}),
            27 if self.one_in(2) => {
                json!({"external_subscription_id": unique_name("external-")})
            }
            27 => json!({"external_subscription_id": null}),
            _ => json!({"subscription_plan_id": self.plan()["id"]}),
        };
        let path = record_path(&before);
        let response = self.shop.api.put(&path, &body.to_string()).await;
        if self.count(&response, &body) {
            self.subscriptions[index] = response.json();
        }
    }

    async fn delete_subscription(&mut self) {
        let index = self.index(self.subscriptions.len());
        let path = record_path(&self.subscriptions[index]);
        let response = self.shop.api.delete(&path).await;
        self.count(&response, &path);
        self.subscriptions.remove(index);
    }

    /// Deletes the user's account. The customer comes back as another user.
    async fn erase(&mut self) {
        let user = self.user.lock().await.take();
        if let Some(user) = user {
            let path = format!("/users/{user}");
            let response = self.shop.api.delete(&path).await;
            self.count(&response, &path);
        }
        self.subscriptions.clear();
    }

    async fn pay(&mut self, now: Timestamp) {
        let index = self.index(self.subscriptions.len());
        let status = self.word(
            "completed completed completed completed completed pending failed failed refunded",
        );
        self.pay_for(index, status, now).await;
    }

    async fn pay_for(&mut self, index: usize, status: &str, now: Timestamp) {
        let subscription = &self.subscriptions[index];
        let currency = subscription["currency"]
            .as_str()
            .unwrap_or("USD")
            .to_owned();
        let quantity = subscription["quantity"].as_i64().unwrap();
        let price = minor_units(&subscription["price"], &currency) * quantity;
        let due = minor_units(&subscription["amount_due"], &currency);
        let id = subscription["id"].clone();
        let paid = self
            .random
            .pick(&[price, price, price, due, price * 3, 777, 0]);
        let mut fields = json!({"subscription_id": id, "amount": amount(paid, &currency), "currency": currency, "status": status});
        if self.one_in(4) {
            let hours = self.random.below(24 * 40) as i64;
            fields["paid_at"] = json!((now - SignedDuration::from_hours(hours)).to_string());
        }
        let api = &self.shop.api;
        let response = api
            .post("/subscription-payments", &fields.to_string())
            .await;
        if self.count(&response, &fields) {
            self.payments.push(response.json());
        }
    }

    async fn change_payment(&mut self, now: Timestamp) {
        if self.payments.is_empty() {
            return;
        }
        let index = self.payments.len() - 1 - self.index(self.payments.len().min(5));
        let before = self.payments[index].clone();
        let path = record_path(&before);
        if self.one_in(8) {
            let response = self.shop.api.delete(&path).await;
            if self.count(&response, &path) {
                self.payments.remove(index);
            }
            return;
        }
        let currency = before["currency"].as_str().unwrap();
        let paid = minor_units(&before["amount"], currency);
        let part = amount(self.random.below(paid.max(1) as u64) as i64, currency);
        // Mostly what is allowed.
        let body = match (before["status"].as_str().unwrap(), self.random.below(8)) {
            (_, 0) => {
                json!({"status": self.word("completed refunded disputed void")})
            }
            ("pending" | "failed", 1) => json!({"amount": amount(paid + 100, currency)}),
            ("pending" | "failed", 2) => {
                json!({"currency": self.word("USD EUR KWD")})
            }
            ("pending", 3) => json!({"status": "failed"}),
            ("failed", 3) => json!({"status": "void"}),
            ("pending" | "failed", _) | ("disputed", 1..=3) => json!({"status": "completed"}),
            ("disputed", _) | (_, 3) => json!({"status": "refunded"}),
            (_, 1 | 2) => json!({"status": "disputed"}),
            (_, 4) => json!({"paid_at": (now - days(self.random.below(50) as i64)).to_string()}),
            (_, 5) => json!({"status": "partially_refunded"}),
            (_, _) => json!({"status": "partially_refunded", "refunded_amount": part}),
        };
        let response = self.shop.api.put(&path, &body.to_string()).await;
        if self.count(&response, &body) {
            self.payments[index] = response.json();
        }
    }
}
