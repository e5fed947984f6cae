//! Ways to get access, time or money by self-service. Each of the [`cases`] sends one request as the user, and
//! says whether it is refused or what the subscription becomes.

mod cases;

use serde_json::{Value, json};

use super::SelfService;
use crate::{
    lifecycle::fixture::{START, minute},
    subscriptions::record_path,
};

/// What happens before the user's request.
enum Step {
    /// The server updates the subscription.
    Server(Value),
    /// The user updates the subscription.
    User(Value),
    /// The server records a payment.
    Pay(f64),
    /// Time passes, and workers run.
    Until(&'static str),
    /// Time passes before workers run.
    Now(&'static str),
}

enum Expected {
    /// A status and a problem code.
    Refused(u16, &'static str),
    /// A status, and `ends_at` to the minute.
    Becomes(&'static str, &'static str),
}

use Expected::{Becomes, Refused};
use Step::{Now, Pay, Server, Until, User};

type Case = (&'static str, Value, Vec<Step>, Value, Expected);

/// Runs each case with a new subscription of the same user.
async fn run_cases(settings: &[&str], cases: Vec<Case>) {
    let page = SelfService::start(settings).await;
    for (name, fields, steps, body, expected) in cases {
        page.service.server.set_time(START.parse().unwrap());
        let record = page.subscribe(&fields).await;
        for step in &steps {
            take(&page, &record, step, name).await;
        }
        let before = observe(&page, &record).await;
        let response = page.put(&record, &body).await;
        let after = observe(&page, &record).await;
        match expected {
            Refused(status, code) => {
                assert_eq!(
                    (response.status, response.problem().as_str()),
                    (status, code),
                    "{name}: {}",
                    response.text
                );
                assert_eq!(after, before, "{name}");
            }
            Becomes(status, ends_at) => {
                assert_eq!(response.status, 200, "{name}: {}", response.text);
                let (shown, was) = (response.json(), &before.record);
                assert_eq!(
                    (shown["status"].as_str().unwrap(), minute(&shown["ends_at"])),
                    (status, ends_at.to_owned()),
                    "{name}"
                );
                let has_access = shown["is_active"] == true;
                assert!(!has_access || was["is_active"] == true, "{name}");
                for field in [
                    "renews_at",
                    "starts_at",
                    "suspended",
                    "credit",
                    "price",
                    "quantity",
                ] {
                    assert_eq!(shown[field], was[field], "{name}: {field}");
                }
                assert_eq!(after.ledger, before.ledger, "{name}");
            }
        }
        // Later cases must not depend on this one.
        page.server.delete(&record_path(&record)).await;
    }
}

async fn take(page: &SelfService, record: &Value, step: &Step, name: &str) {
    let path = record_path(record);
    let response = match step {
        Server(body) => page.server.put(&path, &body.to_string()).await,
        User(body) => page.user.put(&path, &body.to_string()).await,
        Pay(amount) => {
            let payment = json!({"subscription_id": record["id"], "amount": amount, "currency": "USD",
                "status": "completed"});
            page.server
                .post("/subscription-payments", &payment.to_string())
                .await
        }
        Until(now) | Now(now) => {
            page.service.server.set_time(now.parse().unwrap());
            if matches!(step, Until(_)) {
                page.service.server.catch_up().await;
            }
            return;
        }
    };
    assert!(response.status < 300, "{name}: {}", response.text);
}

/// What a request could change.
#[derive(Debug, PartialEq)]
struct Observed {
    record: Value,
    ledger: Value,
    events: i64,
}

async fn observe(page: &SelfService, record: &Value) -> Observed {
    let path = record_path(record);
    let id = record["id"].as_str().unwrap().replace("sub_", "");
    let events = format!("SELECT count(*) FROM events WHERE subject_id = '{id}'");
    Observed {
        record: page.server.get_json(&path).await,
        ledger: page.server.get_json(&format!("{path}/ledger")).await["data"].clone(),
        events: page.service.count(&events).await,
    }
}

#[tokio::test]
async fn recorded_subscription() {
    run_cases(&["--self-service", "on"], cases::recorded()).await;
}

#[tokio::test]
async fn managed_subscription() {
    let settings = ["--self-service", "on", "--lifecycle", "managed"];
    run_cases(&settings, cases::managed()).await;
}

/// All refused fields are reported together. Fields that no caller can change are 422 as for servers.
#[tokio::test]
async fn other_fields_are_refused() {
    let page = SelfService::start(&["--self-service", "on"]).await;
    let record = page.subscribe(&json!({})).await;
    let other = page.server.get_json("/subscription-plans/other").await["id"].clone();
    for (field, value) in [
        ("subscription_plan_id", other),
        (
            "subscription_plan_id",
            json!("plan_01920000000070008000000000000001"),
        ),
        ("subscription_plan_slug", json!("other")),
        ("subscription_plan_slug", json!("unknown")),
        ("external_subscription_id", json!("mine")),
        ("billing_cycle", json!("yearly")),
        ("price", json!(0)),
        ("price", Value::Null),
        ("quantity", json!(2)),
        ("is_active", json!(false)),
        ("starts_at", json!("2026-01-01T00:00:00Z")),
        ("renews_at", json!("2028-01-01T00:00:00Z")),
        ("renews_at", Value::Null),
        ("ends_at", json!("2028-01-01T00:00:00Z")),
        ("metadata", json!({"role": "admin"})),
    ] {
        let mut body = json!({"status": "cancelled"});
        body[field] = value.clone();
        let refused = page.put(&record, &body).await;
        refused.assert_problem(403, "not_for_users");
        assert_eq!(refused.field_errors(), [format!("/{field} not_for_users")]);
    }
    let several = page
        .put(&record, &json!({"status": "paused", "quantity": 5}))
        .await;
    several.assert_problem(403, "not_for_users");
    assert_eq!(
        several.field_errors(),
        ["/quantity not_for_users", "/status not_for_users"]
    );
    assert_eq!(
        several.json()["errors"][1]["allowed"],
        json!(["cancelled", "active"])
    );
    for (field, value) in [
        ("id", "sub_01920000000070008000000000000001"),
        ("user_id", "usr_01920000000070008000000000000001"),
        ("currency", "EUR"),
        ("created_at", "2026-01-01T00:00:00Z"),
    ] {
        let body = json!({"status": "cancelled", field: value});
        page.put(&record, &body)
            .await
            .assert_problem(422, "immutable_field");
    }
    page.put(&record, &json!({"state": "cancelled"}))
        .await
        .assert_problem(422, "unknown_field");
    let shown = page.server.get_json(&record_path(&record)).await;
    assert_eq!(shown, record);
}
