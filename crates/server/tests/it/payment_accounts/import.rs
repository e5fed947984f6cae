//! `perennial import` against stand-ins with many records: killed runs, second runs, totals and dry runs.

use std::{collections::BTreeMap, time::Duration};

use reqwest::Method;
use serde_json::{Value, json};
use tokio_postgres::Client;

use super::{ACCOUNTS, reconcile::run_reconcile, sync::wait_until_clean};
use crate::harness::{
    env_number,
    payment_stand_in::{PaymentStandIn, TEST_KEY},
    process::Process,
    service::Service,
    wait_until,
};

const KILLS: i64 = 4;
const LIMIT: Duration = Duration::from_mins(30);
/// Currencies whose amounts the payment providers write in ISO 4217 minor units.
const CURRENCIES: [&str; 3] = ["usd", "eur", "kwd"];

/// A service with an account of a payment provider that has many records.
pub struct FullShop {
    // The service stops before the stand-in.
    pub service: Service,
    pub stand_in: PaymentStandIn,
    database: Client,
    provider: &'static str,
    subscriptions: i64,
    invoices: i64,
}

impl FullShop {
    /// Starts a shop with as many records as `IMPORT_SUBSCRIPTIONS` and `IMPORT_INVOICES` say.
    async fn start(provider: &'static str) -> Self {
        let subscriptions: i64 = env_number("IMPORT_SUBSCRIPTIONS").unwrap_or(250);
        let invoices: i64 = env_number("IMPORT_INVOICES").unwrap_or(3 * subscriptions);
        Self::with_records(provider, subscriptions, invoices).await
    }

    pub async fn with_records(provider: &'static str, subscriptions: i64, invoices: i64) -> Self {
        let stand_in = PaymentStandIn::start(provider).await;
        let base = stand_in.url.clone();
        let name = if provider == "stripe" {
            "PERENNIAL_STRIPE_API_BASE"
        } else {
            "PERENNIAL_LEMON_SQUEEZY_API_BASE"
        };
        let service = Service::start_with(|variables| {
            variables.insert(name, base);
        })
        .await;
        let account = json!({"provider": provider, "mode": "test", "api_key": TEST_KEY});
        service.api(&[]).create(ACCOUNTS, &account).await;
        let currencies = if provider == "stripe" {
            json!(CURRENCIES)
        } else {
            stand_in
                .post("/settings", json!({"rate_limit": 100_000}))
                .await;
            json!(["USD", "EUR"])
        };
        let bulk =
            json!({"subscriptions": subscriptions, "invoices": invoices, "currencies": currencies});
        stand_in.post("/bulk", bulk).await;
        Self {
            database: service.database.connect().await,
            service,
            stand_in,
            provider,
            subscriptions,
            invoices,
        }
    }

    pub fn import(&self, options: &[&str]) -> Value {
        let arguments = [&["import", self.provider, "--json"][..], options].concat();
        self.service.run_json(&arguments)
    }

    pub async fn count(&self, query: &str) -> i64 {
        self.database.query_one(query, &[]).await.unwrap().get(0)
    }

    /// Returns the number of rows that an import can change.
    async fn rows(&self) -> Vec<i64> {
        let mut rows = Vec::new();
        for table in [
            "users",
            "subscription_plans",
            "subscriptions",
            "subscription_payments",
            "payment_objects",
            "payment_list_positions",
        ] {
            rows.push(self.count(&format!("SELECT count(*) FROM {table}")).await);
        }
        let events =
            "SELECT count(*) FROM events WHERE kind LIKE 'user%' OR kind LIKE 'subscription%'";
        rows.push(self.count(events).await);
        rows
    }

    async fn totals(&self) -> Value {
        self.stand_in
            .control(Method::GET, "/totals", Value::Null)
            .await
    }

    /// Returns the number of subscriptions by status, from the records.
    async fn stored_subscriptions(&self) -> Value {
        let query =
            "SELECT status, count(*) FROM subscriptions WHERE deleted_at IS NULL GROUP BY status";
        let rows = self.database.query(query, &[]).await.unwrap();
        let by_status: BTreeMap<String, i64> =
            rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        json!(by_status)
    }

    /// Returns the payments by currency and status, from the records.
    async fn stored_payments(&self) -> Value {
        let query = "SELECT currency, status, count(*), sum(amount_minor)::bigint, sum(refunded_minor)::bigint
            FROM subscription_payments WHERE deleted_at IS NULL GROUP BY currency, status";
        let mut totals = json!({});
        for row in self.database.query(query, &[]).await.unwrap() {
            let (currency, status): (String, String) = (row.get(0), row.get(1));
            totals[currency][status] = json!({
                "count": row.get::<_, i64>(2),
                "amount_minor": row.get::<_, i64>(3),
                "refunded_minor": row.get::<_, i64>(4),
            });
        }
        totals
    }

    /// Kills imports at several points, and returns how many were killed before their end.
    async fn kill_imports(&self, options: &[&str]) -> i64 {
        let total = self.subscriptions + self.invoices;
        let applied = "SELECT count(*) FROM payment_objects WHERE fact IS NOT NULL";
        let mut killed = 0;
        for part in 1..=KILLS {
            let arguments = [&["import", self.provider][..], options].concat();
            let mut import = Process::spawn(&self.service.variables, &arguments);
            wait_until("an import proceeds", LIMIT, async || {
                self.count(applied).await >= total * part / (KILLS + 2)
            })
            .await;
            import.kill();
            let positions = "SELECT count(*) FROM payment_list_positions";
            killed += self.count(positions).await;
        }
        killed
    }

    /// Asserts that the last import continued where the killed ones stopped: it met only few of their
    /// objects again.
    fn assert_resumed(&self, report: &Value) {
        let unchanged = ["subscriptions", "invoices"]
            .map(|kind| report[kind]["unchanged"].as_i64().unwrap())
            .iter()
            .sum::<i64>();
        let applied_before = (self.subscriptions + self.invoices) * KILLS / (KILLS + 2);
        assert!(unchanged < applied_before, "{report}");
    }
}

/// Adds up a field of all payments in a currency.
fn sum(by_status: &Value, field: &str) -> i64 {
    let by_status = by_status.as_object().unwrap().values();
    by_status.map(|total| total[field].as_i64().unwrap()).sum()
}

#[tokio::test]
async fn killed_import_of_stripe_resumes_and_has_the_totals_of_the_provider() {
    let shop = FullShop::start("stripe").await;
    let killed = shop.kill_imports(&["--create-plans"]).await;
    assert!(killed > 0, "no import was killed between two pages");
    let report = shop.import(&["--create-plans"]);
    shop.assert_resumed(&report);
    let expected = shop.totals().await;

    let ours = |word: &str| {
        match word {
            "trialing" => "on_trial",
            "canceled" => "expired",
            other => other,
        }
        .to_owned()
    };
    let subscriptions: BTreeMap<String, Value> = { expected["subscriptions"].as_object().unwrap() }
        .iter()
        .map(|(status, count)| (ours(status), count.clone()))
        .collect();
    assert_eq!(report["totals"]["subscriptions"], json!(subscriptions));
    assert_eq!(shop.stored_subscriptions().await, json!(subscriptions));

    let payments = &report["totals"]["payments"];
    assert_eq!(&shop.stored_payments().await, payments);
    for currency in CURRENCIES {
        let entry = |status: &str, field: &str| {
            expected["invoices"][status][currency][field]
                .as_i64()
                .unwrap_or(0)
        };
        let ours = &payments[currency.to_uppercase()];
        let statuses = ["paid", "open", "void", "uncollectible"];
        let count: i64 = statuses
            .map(|status| entry(status, "count") - entry(status, "zero"))
            .iter()
            .sum();
        let amount: i64 = statuses
            .map(|status| entry(status, "amount_due"))
            .iter()
            .sum();
        assert_eq!(sum(ours, "count"), count, "{currency}: {ours}");
        assert_eq!(sum(ours, "amount_minor"), amount, "{currency}: {ours}");
        let refunded = expected["refunded"][currency].as_i64().unwrap_or(0);
        assert_eq!(sum(ours, "refunded_minor"), refunded, "{currency}: {ours}");
        let failed = entry("open", "attempted") + entry("uncollectible", "count");
        assert_eq!(
            ours["failed"]["count"].as_i64().unwrap_or(0),
            failed,
            "{currency}"
        );
        assert_eq!(
            ours["void"]["count"].as_i64().unwrap_or(0),
            entry("void", "count"),
            "{currency}"
        );
    }
    let users = shop.count("SELECT count(*) FROM users").await;
    assert_eq!(users, shop.subscriptions, "each customer is a user");
    second_run_changes_nothing(&shop).await;
}

#[tokio::test]
async fn killed_import_of_lemon_squeezy_resumes_and_has_the_totals_of_the_provider() {
    let shop = FullShop::start("lemonsqueezy").await;
    let killed = shop.kill_imports(&["--create-plans"]).await;
    assert!(killed > 0, "no import was killed between two pages");
    let report = shop.import(&["--create-plans"]);
    let expected = shop.totals().await;
    assert_eq!(
        shop.stored_subscriptions().await,
        report["totals"]["subscriptions"]
    );
    let subscriptions = report["totals"]["subscriptions"].as_object().unwrap();
    for status in ["on_trial", "past_due", "unpaid", "cancelled", "expired"] {
        let count = expected["subscriptions"][status].as_i64().unwrap_or(0);
        let ours = subscriptions
            .get(status)
            .and_then(Value::as_i64)
            .unwrap_or(0);
        assert_eq!(ours, count, "{status}");
    }
    let payments = &report["totals"]["payments"];
    assert_eq!(&shop.stored_payments().await, payments);
    for currency in ["USD", "EUR"] {
        let (mut count, mut amount, mut refunded) = (0, 0, 0);
        for by_currency in expected["invoices"].as_object().unwrap().values() {
            let entry = |field: &str| by_currency[currency][field].as_i64().unwrap_or(0);
            count += entry("count") - entry("zero");
            amount += entry("total");
            refunded += entry("refunded");
        }
        let ours = &payments[currency];
        assert_eq!(sum(ours, "count"), count, "{currency}: {ours}");
        assert_eq!(sum(ours, "amount_minor"), amount, "{currency}: {ours}");
        assert_eq!(sum(ours, "refunded_minor"), refunded, "{currency}: {ours}");
    }
    second_run_changes_nothing(&shop).await;
}

async fn second_run_changes_nothing(shop: &FullShop) {
    wait_until_clean(&shop.database, "due_at IS NOT NULL").await;
    let before = shop.rows().await;
    let again = shop.import(&["--create-plans"]);
    for objects in ["subscriptions", "invoices"] {
        for change in ["created", "changed", "waiting", "failed"] {
            assert_eq!(again[objects][change], 0, "{objects} {change}: {again}");
        }
    }
    assert_eq!(again["plans"]["created"], json!([]), "{again}");
    assert_eq!(again["subscriptions"]["unchanged"], shop.subscriptions);
    assert_eq!(shop.rows().await, before);
    let dirty = "SELECT count(*) FROM payment_objects WHERE due_at IS NOT NULL";
    assert_eq!(shop.count(dirty).await, 0);
}

#[tokio::test]
async fn dry_run_predicts_the_import_and_stores_nothing() {
    let shop = FullShop::start("stripe").await;
    let before = shop.rows().await;
    let without_plans = shop.import(&["--dry-run"]);
    assert_eq!(
        without_plans["subscriptions"]["waiting"],
        shop.subscriptions
    );
    assert_eq!(without_plans["plans"]["missing"], CURRENCIES.len());
    let predicted = shop.import(&["--dry-run", "--create-plans"]);
    assert_eq!(shop.rows().await, before);
    let report = shop.import(&["--create-plans"]);
    for field in ["plans", "subscriptions", "invoices", "totals"] {
        assert_eq!(predicted[field], report[field], "{field}");
    }
    assert_eq!(report["subscriptions"]["created"], shop.subscriptions);
    let slugs = json!(["bulk-kwd-monthly", "bulk-eur-monthly", "bulk-usd-monthly"]);
    assert_eq!(report["plans"]["created"], slugs);
}

#[tokio::test]
async fn import_obeys_the_rate_limit_of_the_provider() {
    let shop = FullShop::start("stripe").await;
    let limited = json!({
        "path": "/v1/invoices", "method": "GET", "kind": "status", "status": 429, "retry_after": 1, "count": 2,
    });
    shop.stand_in.add_fault(limited).await;
    let started_at = std::time::Instant::now();
    let report = shop.import(&["--create-plans"]);
    assert!(started_at.elapsed() >= Duration::from_secs(1));
    assert_eq!(report["invoices"]["failed"], 0, "{report}");
    assert_eq!(report["subscriptions"]["created"], shop.subscriptions);
}

#[tokio::test]
async fn reconcile_of_lemon_squeezy_finds_changes_without_notifications() {
    let shop = FullShop::start("lemonsqueezy").await;
    shop.import(&["--create-plans"]);
    let query =
        "SELECT external_id FROM subscriptions WHERE status = 'active' AND renews_at > now()
        ORDER BY external_id LIMIT 2";
    let rows = shop.database.query(query, &[]).await.unwrap();
    let ids: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let path = |id: &str, change: &str| format!("/subscriptions/{id}/{change}");
    shop.stand_in
        .post(&path(&ids[0], "expire"), json!({}))
        .await;
    shop.stand_in.post(&path(&ids[1], "renew"), json!({})).await;
    let payments = "SELECT count(*) FROM subscription_payments";
    let before = shop.count(payments).await;
    run_reconcile(&shop.database).await;
    wait_until_clean(&shop.database, "due_at IS NOT NULL").await;
    let status = "SELECT status FROM subscriptions WHERE external_id = $1";
    let row = shop.database.query_one(status, &[&ids[0]]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), "expired");
    assert_eq!(shop.count(payments).await, before + 1, "the renewal");
}
