//! The API of a sandbox: the billing clock and demo data.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    commands::live,
    harness::{
        api::ApiClient,
        database::Database,
        process::{Server, run_ok},
        service::{InProcessService, Service},
    },
};

const SCOPES: &[&str] = &["--scope", "sandbox:write", "--scope", "users:read"];

fn instant(value: &Value) -> Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

async fn set_clock(api: &ApiClient, body: Value) -> Value {
    let response = api.put("/sandbox/clock", &body.to_string()).await;
    assert_eq!(response.status, 200, "{}", response.text);
    assert_eq!(response.header("cache-control"), "no-store");
    response.json()
}

#[tokio::test]
async fn demo_data_is_created_once_and_ages_with_the_clock() {
    let service = Service::start().await;
    let api = service.api(SCOPES);
    let created = api.post("/sandbox/demo-data", "").await;
    assert_eq!(created.status, 200, "{}", created.text);
    let created = created.json();
    assert_eq!(
        (&created["plans"], &created["subscribers"]),
        (&json!(3), &json!(240))
    );
    let payments = "SELECT count(*) FROM subscription_payments";
    assert_eq!(json!(service.count(payments).await), created["payments"]);
    api.post("/sandbox/demo-data", "")
        .await
        .assert_problem(409, "sandbox_not_empty");

    let before = api.get_json("/sandbox/clock").await;
    let advanced = set_clock(&api, json!({"advance": "P1M"})).await;
    let days = instant(&advanced["now"]).duration_since(instant(&before["now"]));
    assert!((28 * 24..=32 * 24).contains(&days.as_hours()), "{advanced}");
    assert!(advanced["renewed"].as_i64().unwrap() > 100, "{advanced}");
    assert!(advanced["past_due"].as_i64().unwrap() > 0, "{advanced}");
    let renewed = "SELECT count(*) FROM events WHERE kind = 'subscription.renewed' AND at > now()";
    assert_eq!(json!(service.count(renewed).await), advanced["renewed"]);
    let shown = service.run_json(&["sandbox", "clock", "show", "--json"]);
    assert_eq!(
        shown["billing_time"].as_str().unwrap()[..16],
        advanced["now"].as_str().unwrap()[..16]
    );
}

#[tokio::test]
async fn clock_only_moves_forward() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(SCOPES);
    let clock = api.get_json("/sandbox/clock").await;
    let now = instant(&clock["now"]);
    assert!(now.duration_since(instant(&clock["real_time"])).abs() < SignedDuration::from_secs(1));
    let later = now + SignedDuration::from_hours(36);
    let advanced = set_clock(&api, json!({"now": later.to_string()})).await;
    let ahead = instant(&advanced["now"]).duration_since(later);
    assert!((0..60).contains(&ahead.as_secs()), "{advanced}");
    assert!(instant(&advanced["real_time"]) < later);
    for (body, pointer, code) in [
        (json!({}), "/now", "required"),
        (json!({"now": now.to_string()}), "/now", "out_of_range"),
        (
            json!({"now": "2999-01-01T00:00:00Z"}),
            "/now",
            "out_of_range",
        ),
        (json!({"advance": "11y"}), "/advance", "out_of_range"),
        (json!({"advance": "-1d"}), "/advance", "invalid_format"),
        (json!({"advance": "P0D"}), "/advance", "invalid_format"),
        (json!({"advance": "soon"}), "/advance", "invalid_format"),
        (
            json!({"advance": "1d", "now": later.to_string()}),
            "/advance",
            "invalid_format",
        ),
        (json!({"reset": true}), "/reset", "unknown_field"),
    ] {
        let refused = api.put("/sandbox/clock", &body.to_string()).await;
        refused.assert_problem(422, code);
        assert_eq!(refused.json()["errors"][0]["pointer"], pointer, "{body}");
    }
    let ahead = "SELECT clock_ahead FROM instance";
    assert!(service.count(ahead).await > 36 * 3_600 * 1_000_000 - 60_000_000);
}

/// The step is finished in the background, and no other one starts meanwhile.
#[tokio::test]
async fn changes_do_not_run_at_the_same_time() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(SCOPES);
    let guard = service
        .server
        .app
        .sandbox_changes
        .clone()
        .lock_owned()
        .await;
    for response in [
        api.put("/sandbox/clock", r#"{"advance": "1d"}"#).await,
        api.post("/sandbox/demo-data", "").await,
    ] {
        response.assert_problem(409, "sandbox_busy");
        assert!(!response.header("retry-after").is_empty());
    }
    drop(guard);
    set_clock(&api, json!({"advance": "1d"})).await;
}

#[tokio::test]
async fn live_installation_refuses() {
    let database = Database::empty().await;
    let variables = live(&database.url);
    let create = ["client", "create", "--scope", "sandbox:write", "--json"];
    let created: Value = serde_json::from_str(&run_ok(&variables, &create)).unwrap();
    let server = Server::start(&variables).await;
    let api = ApiClient::new(&server.url).with("client-id", created["client_id"].as_str().unwrap());
    for response in [
        api.get("/sandbox/clock").await,
        api.put("/sandbox/clock", r#"{"advance": "1d"}"#).await,
        api.post("/sandbox/demo-data", "").await,
    ] {
        response.assert_problem(403, "sandbox_only");
    }
    let connection = database.connect().await;
    let unchanged =
        "SELECT (SELECT clock_ahead FROM instance) + (SELECT count(*) FROM subscription_plans)";
    let unchanged: i64 = connection.query_one(unchanged, &[]).await.unwrap().get(0);
    assert_eq!(unchanged, 0);
}

/// The counts are those of the caller's tenant.
#[tokio::test]
async fn other_tenants_are_not_counted() {
    let service = InProcessService::start_in_process().await;
    run_ok(&service.variables, &["tenant", "create", "--name", "other"]);
    run_ok(&service.variables, &["seed", "--demo", "--tenant", "other"]);
    let api = service.api(&[SCOPES, &["--tenant", "default"]].concat());
    let advanced = set_clock(&api, json!({"advance": "P1M"})).await;
    assert_eq!(
        (&advanced["renewed"], &advanced["events"]),
        (&json!(0), &json!(0))
    );
}
