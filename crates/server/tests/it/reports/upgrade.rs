//! Subscriptions from before there were reports: their histories are read from events.

use std::{process::Command, time::Duration};

use serde_json::{Value, json};
use tokio_postgres::Client;

use super::races::wait_for_roll_up;
use crate::{
    harness::{
        api::ApiClient,
        process::{Process, Server, run_ok},
        service::Service,
        wait_until,
    },
    subscription_plans::minimal_plan,
};

struct Upgrade {
    service: Service<Server>,
    api: ApiClient,
    database: Client,
    plan: Value,
    user: Value,
}

impl Upgrade {
    async fn start() -> Self {
        let service = Service::start_with(|variables| {
            variables.insert("PERENNIAL_WORKERS", "0".to_owned());
        })
        .await;
        let api = service.api(&[]);
        let plan = api
            .create("/subscription-plans", &minimal_plan("pro"))
            .await;
        let user = api
            .create("/users", &json!({"email": "early@example.com"}))
            .await;
        let database = service.database.connect().await;
        Self {
            service,
            api,
            database,
            plan,
            user,
        }
    }

    async fn create(&self) -> String {
        let fields = json!({"user_id": self.user["id"], "subscription_plan_id": self.plan["id"]});
        let created = self.api.create("/subscriptions", &fields).await;
        format!("/subscriptions/{}", created["id"].as_str().unwrap())
    }

    /// Makes the database look as it does right after the migration.
    async fn forget_reports(&self) {
        let sql = "TRUNCATE revenue_changes, pending_revenue_changes, payment_changes, revenue_movements, revenue_statuses,
                revenue_outcomes, revenue_cohorts, payments_daily, report_state;
            UPDATE report_installation SET installed_at = now(), snapshot = pg_current_snapshot()";
        self.database.batch_execute(sql).await.unwrap();
    }

    async fn backfill(&self) -> Process {
        let worker = Process::spawn(&self.service.variables, &["work"]);
        wait_until("the histories are read", Duration::from_mins(1), async || {
            let sql = "SELECT count(*) FROM report_state WHERE backfilled_at IS NOT NULL AND rebuild_generation IS NULL
                AND generation > 0";
            self.service.count(sql).await == 1
        })
        .await;
        wait_for_roll_up(&self.database).await;
        worker
    }

    /// Runs a worker until the state of the reports meets the condition, while another transaction holds a lock.
    async fn interrupt_backfill(&self, lock: &str, condition: &str) {
        let mut other = self.service.database.connect().await;
        let tx = other.transaction().await.unwrap();
        tx.batch_execute(lock).await.unwrap();
        let mut worker = Process::spawn(&self.service.variables, &["work"]);
        wait_until(condition, Duration::from_mins(1), async || {
            let sql = format!("SELECT count(*) FROM report_state WHERE {condition}");
            self.service.count(&sql).await == 1
        })
        .await;
        assert!(worker.stop().await);
        tx.rollback().await.unwrap();
        let report = self.api.get_json("/reports/revenue").await;
        assert_eq!(report["is_complete"], false, "{report}");
    }

    async fn closing_subscriptions(&self) -> Value {
        let report = self.api.get_json("/reports/revenue").await;
        assert_eq!(report["is_complete"], true, "{report}");
        report["currencies"][0]["closing"]["subscriptions"].clone()
    }

    async fn assert_collected(&self, amount: &str) {
        let payments = self.api.get_json("/reports/payments").await;
        let intervals = payments["currencies"][0]["intervals"].as_array().unwrap();
        assert_eq!(intervals.last().unwrap()["collected"]["amount"], amount);
    }

    /// Records a payment of 19.99.
    async fn pay(&self, subscription: &str) {
        let payment = json!({"subscription_id": subscription.rsplit('/').next().unwrap(), "amount": 19.99,
            "currency": "USD", "status": "completed"});
        self.api.create("/subscription-payments", &payment).await;
    }

    fn assert_replay_agrees(&self) {
        let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/report-replay");
        let mut replay = Command::new(tool);
        replay.args(["--database", &self.service.database.url]);
        let output = replay.output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{out}");
    }
}

#[tokio::test]
async fn histories_from_before_the_reports_are_read_from_events() {
    let upgrade = Upgrade::start().await;
    let first = upgrade.create().await;
    upgrade.api.put(&first, r#"{"quantity": 3}"#).await;
    upgrade.api.put(&first, r#"{"status": "past_due"}"#).await;
    let deleted = upgrade.create().await;
    upgrade.api.delete(&deleted).await;
    let changed_since = upgrade.create().await;
    upgrade.pay(&first).await;
    upgrade.forget_reports().await;
    let report = upgrade.api.get_json("/reports/revenue").await;
    assert_eq!(report["is_complete"], false, "{report}");
    // A change after the upgrade, before the history is read.
    upgrade.api.put(&changed_since, r#"{"quantity": 5}"#).await;
    let created_since = upgrade.create().await;
    upgrade
        .api
        .put(&created_since, r#"{"status": "paused"}"#)
        .await;

    let _worker = upgrade.backfill().await;
    upgrade.assert_replay_agrees();
    let report = upgrade.api.get_json("/reports/revenue").await;
    assert_eq!(report["known_since"], Value::Null, "{report}");
    assert_eq!(upgrade.closing_subscriptions().await, 2);
    upgrade.assert_collected("19.99").await;
}

#[tokio::test]
async fn interrupted_backfill_continues() {
    let upgrade = Upgrade::start().await;
    // More than one chunk of histories.
    let mut last = String::new();
    for _ in 0..210 {
        last = upgrade.create().await;
    }
    upgrade.pay(&last).await;
    upgrade.forget_reports().await;
    // The last chunk waits for its last subscription.
    let lock = "SELECT FROM subscriptions ORDER BY id DESC LIMIT 1 FOR UPDATE";
    upgrade
        .interrupt_backfill(lock, "backfilled_to IS NOT NULL")
        .await;
    let checked = run_ok(&upgrade.service.variables, &["report", "check"]);
    assert!(checked.contains("not complete yet"), "{checked}");
    // The sums wait for the payments.
    let lock = "LOCK TABLE subscription_payments";
    upgrade
        .interrupt_backfill(lock, "rebuild_generation IS NOT NULL")
        .await;

    let _worker = upgrade.backfill().await;
    upgrade.assert_replay_agrees();
    assert_eq!(upgrade.closing_subscriptions().await, 210);
    upgrade.assert_collected("19.99").await;
    let checked = run_ok(&upgrade.service.variables, &["report", "check"]);
    assert!(checked.contains("equal the subscriptions"), "{checked}");
}

#[tokio::test]
async fn deletion_by_an_earlier_version_during_the_upgrade_counts() {
    let upgrade = Upgrade::start().await;
    let path = upgrade.create().await;
    upgrade.forget_reports().await;
    upgrade.api.put(&path, r#"{"quantity": 3}"#).await;
    upgrade.api.delete(&path).await;
    // The earlier version records no state.
    let forget = "DELETE FROM pending_revenue_changes";
    assert_eq!(upgrade.database.execute(forget, &[]).await.unwrap(), 1);
    let _worker = upgrade.backfill().await;
    upgrade.assert_replay_agrees();
    assert_eq!(upgrade.closing_subscriptions().await, 0);
}

#[tokio::test]
async fn days_before_the_first_event_are_unknown() {
    let upgrade = Upgrade::start().await;
    let path = upgrade.create().await;
    upgrade.api.put(&path, r#"{"quantity": 3}"#).await;
    upgrade.api.put(&path, r#"{"quantity": 2}"#).await;
    let forget =
        "DELETE FROM events WHERE kind IN ('user.created', 'plan.created', 'subscription.created')";
    upgrade.database.execute(forget, &[]).await.unwrap();
    upgrade.forget_reports().await;
    let _worker = upgrade.backfill().await;
    let report = upgrade.api.get_json("/reports/revenue").await;
    let today = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    assert_eq!(report["known_since"], today, "{report}");
    assert_eq!(
        report["currencies"][0]["closing"]["mrr"], "39.98",
        "{report}"
    );
}
