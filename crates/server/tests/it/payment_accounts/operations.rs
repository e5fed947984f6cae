//! What operators and support people see: metrics, `doctor`, `user show` and `payment-account show`.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    reconcile::run_reconcile,
    sync::{StripeShop, id_of},
};
use crate::{
    harness::{
        process::{run, run_ok},
        wait_until,
    },
    subscriptions::record_path,
};

const LIMIT: Duration = Duration::from_mins(1);

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A shop with a subscriber of the plan `pro`, and the provider's id of the subscription.
async fn start() -> (StripeShop, String) {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    let subscription = shop.subscribe(&customer, &price, &[]).await;
    shop.settle().await;
    (shop, subscription)
}

impl StripeShop {
    fn run_ok(&self, arguments: &[&str]) -> String {
        run_ok(&self.service.variables, arguments)
    }

    async fn metric(&self, series: &str) -> f64 {
        let value = self.service.server.metric(series).await;
        value.unwrap_or_else(|| panic!("{series}"))
    }

    /// Asserts that a series has a value from the start.
    async fn assert_metric(&self, series: &str, expected: f64) {
        let value = self.service.server.metric(series).await;
        assert_eq!(value, Some(expected), "{series}");
    }

    fn doctor(&self) -> String {
        let output = run(&self.service.variables, &["doctor"]);
        String::from_utf8(output.stdout).unwrap()
    }

    async fn wait_for_metric(&self, series: &str, is_expected: impl Fn(f64) -> bool) {
        wait_until(series, LIMIT, async || {
            is_expected(self.metric(series).await)
        })
        .await;
    }

    async fn execute(&self, statement: &str) {
        let database = self.service.database.connect().await;
        database.batch_execute(statement).await.unwrap();
    }
}

fn requests(outcome: &str) -> String {
    format!(r#"perennial_payment_provider_requests_total{{provider="stripe",outcome="{outcome}"}}"#)
}

fn unresolved(state: &str) -> String {
    format!(r#"perennial_payment_objects_unresolved{{cell="home",state="{state}"}}"#)
}

#[tokio::test]
async fn provider_outage_shows_in_metrics_until_everything_is_applied() {
    let (shop, subscription) = start().await;
    let behind = r#"perennial_payment_objects_behind_seconds{cell="home"}"#;
    assert!(shop.metric(&requests("ok")).await > 0.0);
    for outcome in [
        "unavailable",
        "rate_limited",
        "unauthorized",
        "not_found",
        "rejected",
    ] {
        shop.assert_metric(&requests(outcome), 0.0).await;
    }
    shop.assert_metric(behind, 0.0).await;
    let fault = json!({"kind": "status", "status": 503, "path": "/v1/*"});
    shop.stand_in.add_fault(fault).await;
    shop.emit("customer.subscription.updated", &subscription)
        .await;
    shop.wait_for_metric(&requests("unavailable"), |count| count >= 2.0)
        .await;
    shop.wait_for_metric(behind, |seconds| seconds > 0.5).await;
    let shown = shop.run_ok(&["user", "show", "ada@example.com"]);
    let pending = format!("    pending: stripe subscription {subscription}, ");
    assert!(shown.contains(&pending), "{shown}");
    assert!(
        shown.contains("the API is unavailable (status 503)"),
        "{shown}"
    );
    let shown = shop.run_ok(&["payment-account", "show", &shop.account.id]);
    assert!(shown.contains(&pending), "{shown}");
    shop.stand_in.clear_faults().await;
    shop.settle().await;
    shop.assert_metric(behind, 0.0).await;
    let shown = shop.run_ok(&["user", "show", "ada@example.com"]);
    assert!(!shown.contains("pending:"), "{shown}");
}

#[tokio::test]
async fn failed_object_is_shown_until_a_replay_applies_it() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    shop.create_plan_for("other", &price).await;
    let customer = shop.create_customer("ada@example.com").await;
    let subscription = shop.subscribe(&customer, &price, &[]).await;
    shop.settle_or_wait().await;
    shop.assert_metric(&unresolved("failed"), 1.0).await;
    // The invoice waits for its subscription.
    shop.assert_metric(&unresolved("waiting"), 1.0).await;
    let account = shop.account.id.as_str();
    let shown = shop.run_ok(&["payment-account", "show", account]);
    for part in [
        format!("    failed: stripe subscription {subscription}: "),
        "    waiting: stripe invoice in_".to_owned(),
    ] {
        assert!(shown.contains(&part), "{part}: {shown}");
    }
    let shown = json(&shop.run_ok(&["payment-account", "show", account, "--json"]));
    assert_eq!(shown["failed_objects"], 1, "{shown}");
    assert_eq!(shown["payment_objects"][0]["state"], "failed", "{shown}");
    let doctor = shop.doctor();
    assert!(
        doctor.contains("payment-account notifications --state failed --account pac_"),
        "{doctor}"
    );

    let listed = [
        "payment-account",
        "notifications",
        "--object",
        &subscription,
    ];
    let listed = shop.run_ok(&[&listed[..], &["--json", "--state", "failed,refused"]].concat());
    let notification = json(listed.lines().next().unwrap());
    let updated = shop
        .api
        .put("/subscription-plans/other", r#"{"variants":[]}"#)
        .await;
    assert_eq!(updated.status, 200, "{}", updated.text);
    shop.run_ok(&["payment-account", "replay", &id_of(&notification)]);
    shop.settle().await;
    assert_eq!(shop.status(&subscription).await, "active");
    for state in ["failed", "waiting"] {
        shop.assert_metric(&unresolved(state), 0.0).await;
    }
    let shown = shop.run_ok(&["payment-account", "show", account]);
    assert!(!shown.contains("failed:"), "{shown}");
}

#[tokio::test]
async fn change_by_an_operator_is_shown_as_a_difference() {
    let (shop, subscription) = start().await;
    let show_user = || shop.run_ok(&["user", "show", "ada@example.com"]);
    let shown = show_user();
    let account = format!(
        "    stripe: {subscription}, payment account {}",
        shop.account.id
    );
    assert!(shown.contains(&account), "{shown}");
    assert!(!shown.contains("differs:"), "{shown}");
    let record = shop.subscription(&subscription).await;
    let path = record_path(&record);
    let suspended = shop.api.put(&path, r#"{"is_active":false}"#).await;
    assert_eq!(suspended.status, 200, "{}", suspended.text);
    let shown = show_user();
    let difference = format!(
        "    differs: stripe reports suspended false for subscription {subscription}, the record has true"
    );
    assert!(shown.contains(&difference), "{shown}");
    let shown = shop.run_ok(&["subscription", "show", &id_of(&record)]);
    assert!(shown.contains(&difference), "{shown}");
    let exported = json(&shop.run_ok(&["user", "show", "ada@example.com", "--json"]));
    let objects = exported["payment_objects"].as_array().unwrap();
    let found = objects
        .iter()
        .find(|object| object["external_id"] == subscription.as_str())
        .unwrap();
    assert_eq!(
        found["differences"],
        json!([{"field": "suspended", "reported": "false", "recorded": "true"}])
    );
}

#[tokio::test]
async fn pending_command_is_shown_and_measured_until_its_acknowledgment() {
    let (shop, subscription) = start().await;
    let pending = r#"perennial_payment_commands_pending{cell="home"}"#;
    let behind = r#"perennial_payment_commands_behind_seconds{cell="home"}"#;
    shop.assert_metric(pending, 0.0).await;
    let path = format!("/v1/subscriptions/{subscription}");
    let fault = json!({"kind": "status", "status": 503, "path": path, "method": "POST"});
    shop.stand_in.add_fault(fault).await;
    let record = shop.subscription(&subscription).await;
    let cancelled = shop
        .api
        .put(&record_path(&record), r#"{"status":"cancelled"}"#)
        .await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text);
    wait_until("an attempt has failed", LIMIT, async || {
        shop.count("SELECT count(*) FROM payment_commands WHERE attempts > 0")
            .await
            == 1
    })
    .await;
    shop.assert_metric(pending, 1.0).await;
    shop.wait_for_metric(behind, |seconds| seconds > 0.1).await;
    let line = format!("    not acknowledged by stripe: cancel {subscription}, since ");
    for arguments in [
        ["user", "show", "ada@example.com"],
        ["payment-account", "show", &shop.account.id],
    ] {
        let shown = shop.run_ok(&arguments);
        assert!(shown.contains(&line), "{shown}");
        assert!(shown.contains("(status 503)"), "{shown}");
    }
    shop.execute("UPDATE payment_commands SET created_at = now() - interval '20 minutes'")
        .await;
    let doctor = shop.doctor();
    let finding = format!(
        "! payment account {}: 1 command not acknowledged",
        shop.account.id
    );
    assert!(doctor.contains(&finding), "{doctor}");
    shop.stand_in.clear_faults().await;
    shop.wait_for_metric(pending, |count| count < 0.5).await;
    shop.assert_metric(behind, 0.0).await;
}

#[tokio::test]
async fn reconcile_is_measured_with_what_notifications_have_missed() {
    let (shop, subscription) = start().await;
    let database = shop.service.database.connect().await;
    let behind = r#"perennial_payment_reconcile_behind_seconds{cell="home"}"#;
    let missed = "perennial_payment_events_missed_total";
    let done = r#"perennial_payment_reconciles_total{outcome="done"}"#;
    run_reconcile(&database).await;
    assert!(shop.metric(behind).await < 60.0);
    let (missed_before, done_before) = (shop.metric(missed).await, shop.metric(done).await);
    shop.execute("UPDATE payment_accounts SET last_reconciled_at = now() - interval '1 day'")
        .await;
    assert!(shop.metric(behind).await > 86_000.0);
    let doctor = shop.doctor();
    assert!(doctor.contains(": not reconciled since "), "{doctor}");
    shop.stand_in.queue_notifications().await;
    let cancel = [("cancel_at_period_end", "true")];
    let path = format!("subscriptions/{subscription}");
    shop.stand_in.stripe(&path, &cancel).await;
    let ids = shop.stand_in.notifications("queued").await;
    let drop = json!({ "ids": ids });
    shop.stand_in.post("/notifications/drop", drop).await;
    run_reconcile(&database).await;
    assert!(shop.metric(missed).await > missed_before);
    assert!(shop.metric(done).await > done_before);
    assert!(shop.metric(behind).await < 60.0);
    shop.settle().await;
    assert_eq!(shop.status(&subscription).await, "cancelled");
}
