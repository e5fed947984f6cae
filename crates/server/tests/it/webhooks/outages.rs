//! Endpoints that are down for days, and events that are given up.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::{Value, json};
use tokio_postgres::Client;

use super::{
    create_endpoint, create_plan, end_pauses, first_arrivals_are_in_order, path, start,
    wait_for_count,
};
use crate::harness::{
    api::ApiClient,
    wait_until,
    webhook_receiver::{Reply, WebhookReceiver},
};

/// Moves all stored times of deliveries back, as if this many minutes had passed.
async fn pass_minutes(database: &Client, minutes: u32) {
    let change = format!(
        "UPDATE webhook_endpoints SET failing_since = failing_since - passed, paused_until = paused_until - passed,
             due_at = due_at - passed FROM (SELECT interval '{minutes} minutes' AS passed) AS time;
         UPDATE webhook_retries SET since = since - passed, next_attempt_at = next_attempt_at - passed
         FROM (SELECT interval '{minutes} minutes' AS passed) AS time"
    );
    database.batch_execute(&change).await.unwrap();
}

/// Waits until all attempts that are due have failed.
async fn wait_for_pauses(database: &Client) {
    let active = "SELECT count(*) FROM webhook_endpoints
        WHERE status = 'enabled' AND (leased_until IS NOT NULL OR due_at <= now() OR due_at IS NULL)";
    wait_until(
        "all endpoints are paused",
        Duration::from_mins(1),
        async || {
            let row = database.query_one(active, &[]).await.unwrap();
            row.get::<_, i64>(0) == 0
        },
    )
    .await;
}

async fn update_plan(api: &ApiClient, slug: &str, tier: u32) {
    let change = json!({"tier": tier}).to_string();
    let path = format!("/subscription-plans/{slug}");
    assert_eq!(api.put(&path, &change).await.status, 200);
}

struct DownEndpoint {
    order: &'static str,
    endpoint: Value,
    receiver: WebhookReceiver,
}

async fn is_disabled(api: &ApiClient, endpoint: &Value) -> bool {
    let endpoint = api.get_json(&path(endpoint)).await;
    let is_disabled = endpoint["status"] == "disabled";
    if is_disabled {
        assert_eq!(endpoint["disabled_reason"], "failures");
    }
    is_disabled
}

#[tokio::test]
async fn endpoint_that_is_down_for_a_week_continues_where_it_stopped() {
    let (service, api) = start().await;
    let mut endpoints = Vec::new();
    for order in ["none", "subject", "strict"] {
        let receiver = WebhookReceiver::start().await;
        receiver.respond(|_| Reply::Status(503, ""));
        let fields = json!({"order": order, "event_types": ["plan.created", "plan.updated"]});
        endpoints.push(DownEndpoint {
            order,
            endpoint: create_endpoint(&api, &receiver, fields).await,
            receiver,
        });
    }
    for plan in 0..5 {
        let slug = format!("p{plan}");
        create_plan(&api, &slug).await;
        update_plan(&api, &slug, 1).await;
        update_plan(&api, &slug, 2).await;
    }
    let database = service.database.connect().await;
    let mut disabled_after: BTreeMap<&str, u32> = BTreeMap::new();
    let mut hours = 0;
    while disabled_after.len() < endpoints.len() {
        assert!(hours < 7 * 24, "disabled: {disabled_after:?}");
        wait_for_pauses(&database).await;
        hours += 12;
        pass_minutes(&database, 12 * 60).await;
        wait_for_pauses(&database).await;
        for DownEndpoint {
            order, endpoint, ..
        } in &endpoints
        {
            if is_disabled(&api, endpoint).await {
                disabled_after.entry(order).or_insert(hours);
            }
        }
    }
    println!("disabled after these hours: {disabled_after:?}");
    // With the first attempt after five days, which in strict order is up to a day later.
    assert!(
        disabled_after
            .values()
            .all(|hours| (120..=156).contains(hours)),
        "{disabled_after:?}"
    );
    let events =
        "SELECT count(*) FROM events WHERE kind = 'webhook_endpoint.disabled' AND client_id IS NULL
        AND data ->> 'disabled_reason' = 'failures'";
    assert_eq!(service.count(events).await, 3);
    let given_up = "SELECT count(*) FROM webhook_retries WHERE given_up_at IS NOT NULL";
    assert_eq!(service.count(given_up).await, 0);

    // The rest of the week, with further events.
    let sent_while_down: Vec<usize> = { endpoints.iter() }
        .map(|endpoint| endpoint.receiver.count())
        .collect();
    for plan in 0..5 {
        update_plan(&api, &format!("p{plan}"), 3).await;
    }
    create_plan(&api, "late").await;
    pass_minutes(&database, 48 * 60).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let expected = 5 * 4 + 1;
    for (down, sent_while_down) in endpoints.iter().zip(sent_while_down) {
        let DownEndpoint {
            order,
            endpoint,
            receiver,
        } = down;
        assert_eq!(
            receiver.count(),
            sent_while_down,
            "{order}: sent while disabled"
        );
        receiver.respond(|_| Reply::Status(200, ""));
        let enabled = api.post(&(path(endpoint) + "/enable"), "{}").await;
        assert_eq!(enabled.status, 200, "{}", enabled.text);
        wait_until("all events arrive", Duration::from_mins(1), async || {
            // Retries are spread over a minute.
            pass_minutes(&database, 1).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            let received = receiver.received();
            let ids: BTreeSet<&str> = { received.iter().skip(sent_while_down) }
                .map(|received| received.id.as_str())
                .collect();
            ids.len() == expected
        })
        .await;
        let received = receiver.received().split_off(sent_while_down);
        assert_eq!(received.len(), expected, "{order}: each event once");
        assert!(first_arrivals_are_in_order(order, &received), "{order}");
        let working = api.get_json(&path(endpoint)).await;
        assert_eq!(working["status"], "enabled");
        assert_eq!(working["failing_since"], Value::Null);
    }
    assert_eq!(
        service.count("SELECT count(*) FROM webhook_retries").await,
        0
    );
}

#[tokio::test]
async fn given_up_event_can_be_replayed() {
    replay_given_up_event(true, 1).await;
}

#[tokio::test]
async fn replay_of_a_range_delivers_its_given_up_events() {
    replay_given_up_event(false, 2).await;
}

/// Gives up one of two events, and sends this many of them again.
async fn replay_given_up_event(only_failed: bool, replayed: usize) {
    let (service, api) = start().await;
    let receiver = WebhookReceiver::start().await;
    receiver.respond(|received| {
        let is_bad = received.body()["data"]["data"]["slug"] == "bad";
        Reply::Status(if is_bad { 400 } else { 200 }, "")
    });
    let endpoint = create_endpoint(&api, &receiver, json!({"event_types": ["plan.created"]})).await;
    create_plan(&api, "bad").await;
    create_plan(&api, "good").await;
    wait_for_count(&receiver, 2).await;
    let database = service.database.connect().await;
    // The process that holds the endpoint reads retries again after five seconds.
    let failed = "UPDATE webhook_retries SET failed_attempts = 8";
    wait_until(
        "an attempt has failed",
        Duration::from_secs(5),
        async || database.execute(failed, &[]).await.unwrap() == 1,
    )
    .await;
    let given_up = "SELECT count(*) FROM webhook_retries WHERE given_up_at IS NOT NULL";
    wait_until(
        "the event is given up",
        Duration::from_mins(1),
        async || {
            end_pauses(&database).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            service.count(given_up).await == 1
        },
    )
    .await;
    assert_eq!(
        receiver.count(),
        4,
        "three of ten attempts, and the other event"
    );
    receiver.respond(|_| Reply::Status(200, ""));
    let range = json!({"from": "2026-01-01T00:00:00Z", "only_failed": only_failed});
    api.create(&format!("{}/replays", path(&endpoint)), &range)
        .await;
    wait_for_count(&receiver, 4 + replayed).await;
    let mut replays = receiver.received().into_iter().skip(4);
    assert!(replays.any(|replay| replay.body()["data"]["data"]["slug"] == "bad"));
    wait_until("nothing is left", Duration::from_secs(5), async || {
        service.count("SELECT count(*) FROM webhook_retries").await == 0
    })
    .await;
}
