//! A managed tenant in process, with a fixed billing clock and a price list.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{at, audit::read_ledger, manage};
use crate::{
    harness::{
        api::{ApiClient, ApiResponse},
        merged,
        process::run_ok,
        service::{InProcessService, Service},
    },
    subscriptions::record_path,
};

/// Noon on January 1: one month later is February 1.
pub const START: &str = "2027-01-01T12:00:00Z";

/// Slugs, prices and cycles of the plans.
const PLANS: [(&str, i32, &str); 7] = [
    ("free", 0, "monthly"),
    ("pro", 10, "monthly"),
    ("big", 30, "monthly"),
    ("daily", 1, "daily"),
    ("weekly", 5, "weekly"),
    ("yearly", 100, "yearly"),
    ("lifetime", 300, "lifetime"),
];

pub struct Managed {
    pub service: InProcessService,
    pub api: ApiClient,
}

impl Managed {
    /// Starts at [`START`]. The grace is 7 days, and a subscription expires after 30.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts at [`START`] with these arguments of `perennial tenant set`.
    pub async fn start_with(settings: &[&str]) -> Self {
        let service = Service::start_in_process_at(at(START)).await;
        manage(&service.variables);
        if !settings.is_empty() {
            run_ok(&service.variables, &[&["tenant", "set"], settings].concat());
        }
        let database = service.database.connect().await;
        let since = "UPDATE tenants SET lifecycle_since = '2020-01-01T00:00:00Z'";
        database.execute(since, &[]).await.unwrap();
        let api = service.api(&[]);
        for (slug, price, cycle) in PLANS {
            let plan = json!({"name": slug, "slug": slug, "price": price, "billing_cycle": cycle});
            api.create("/subscription-plans", &plan).await;
        }
        Self { service, api }
    }

    /// Subscribes a new user and pays this amount immediately.
    pub async fn subscribe_and_pay(&self, slug: &str, amount: f64) -> Value {
        let subscription = self.api.subscribe(slug, json!({})).await;
        self.pay(&subscription, amount).await;
        subscription
    }

    /// Creates a completed payment in USD.
    pub async fn pay(&self, subscription: &Value, amount: f64) -> Value {
        self.pay_with(subscription, amount, json!({})).await
    }

    /// Creates a completed payment in USD with these further fields.
    pub async fn pay_with(&self, subscription: &Value, amount: f64, extra: Value) -> Value {
        let fields = json!({"subscription_id": subscription["id"], "amount": amount, "currency": "USD",
            "status": "completed"});
        let fields = merged(fields, &extra);
        self.api.create("/subscription-payments", &fields).await
    }

    pub async fn send(&self, record: &Value, body: &Value) -> ApiResponse {
        self.api.put(&record_path(record), &body.to_string()).await
    }

    /// Sends an update that the credit must not pay, and returns the amount due.
    pub async fn amount_due(&self, record: &Value, body: Value) -> Value {
        let before = self.read(record).await;
        let response = self.send(record, &body).await;
        response.assert_problem(402, "payment_required");
        assert_eq!(response.json()["currency"], "USD");
        assert_eq!(self.read(record).await, before, "changed by {body}");
        response.json()["amount_due"].clone()
    }

    /// Sends an update that must be rejected with these field errors.
    pub async fn assert_rejected(&self, record: &Value, body: Value, errors: &[&str]) {
        let before = self.read(record).await;
        let response = self.send(record, &body).await;
        assert_eq!(response.status, 422, "{body}: {}", response.text);
        assert_eq!(response.field_errors(), errors, "{body}");
        assert_eq!(self.read(record).await, before, "changed by {body}");
    }

    pub async fn read(&self, record: &Value) -> Value {
        self.api.get_json(&record_path(record)).await
    }

    /// Sets the clock. Workers have not run yet.
    pub fn set_time(&self, now: &str) {
        self.service.server.set_time(at(now));
    }

    /// Sets the clock and applies due transitions.
    pub async fn advance(&self, now: &str) {
        self.set_time(now);
        self.service.server.catch_up().await;
    }

    /// Returns the subscription in one line, see [`state`].
    pub async fn state(&self, subscription: &Value) -> String {
        state(&self.read(subscription).await)
    }

    /// Returns the entries of the ledger as JSON, oldest first.
    pub async fn entries(&self, subscription: &Value) -> Vec<Value> {
        read_ledger(&self.api, subscription).await
    }

    /// Returns the ledger, one line per entry, and checks that its amounts add up to the credit.
    pub async fn ledger(&self, subscription: &Value) -> Vec<String> {
        let entries = self.entries(subscription).await;
        let mut credit = 0;
        for entry in &entries {
            credit += cents(&entry["amount"]);
            assert_eq!(cents(&entry["credit_after"]), credit, "{entries:?}");
        }
        let shown = self.read(subscription).await["credit"].clone();
        assert_eq!(cents(&shown), credit, "{entries:?}");
        entries.iter().map(ledger_line).collect()
    }
}

/// Returns an amount in minor units.
pub fn cents(amount: &Value) -> i64 {
    (amount.as_f64().unwrap() * 100.0).round() as i64
}

/// Returns a date without its seconds: payments take effect a microsecond after they are created.
pub fn minute(date: &Value) -> String {
    date.as_str().map_or("-".to_owned(), |date| {
        let _: Timestamp = date.parse().unwrap();
        date[..16].to_owned()
    })
}

/// Returns status, access, dates and amounts of a managed subscription in one line.
pub fn state(record: &Value) -> String {
    assert_eq!(record["lifecycle"], "managed", "{record}");
    let access = if record["is_active"] == true {
        "access"
    } else {
        "no access"
    };
    format!(
        "{}, {access}, renews {}, paid until {}, credit {:.2}, due {:.2}",
        record["status"].as_str().unwrap(),
        minute(&record["renews_at"]),
        minute(&record["paid_until"]),
        record["credit"].as_f64().unwrap(),
        record["amount_due"].as_f64().unwrap(),
    )
}

/// Returns type, cause, amount, credit afterwards and period of a ledger entry in one line.
pub fn ledger_line(entry: &Value) -> String {
    let mut line = format!(
        "{}/{} {:+.2} = {:.2}",
        entry["type"].as_str().unwrap(),
        entry["cause"].as_str().unwrap(),
        entry["amount"].as_f64().unwrap(),
        entry["credit_after"].as_f64().unwrap(),
    );
    if let Some(start) = entry["period_starts_at"].as_str() {
        let end = entry["period_ends_at"]
            .as_str()
            .map_or("-", |end| &end[..10]);
        line.push_str(&format!(" {} {end}", &start[..10]));
    }
    line
}
