//! Deliveries to endpoints that work.

use std::{collections::BTreeMap, time::Duration};

use serde_json::json;

use super::{allow_loopback, create_endpoint, create_plan, path, start, wait_for_count};
use crate::{
    events::feed::read_events,
    harness::{
        process::Process,
        service::Service,
        wait_until,
        webhook_receiver::{ReceivedWebhook, Reply, WebhookReceiver},
    },
};

#[tokio::test]
async fn event_is_delivered_signed_and_complete() {
    let (service, api) = start().await;
    let receiver = WebhookReceiver::start().await;
    create_plan(&api, "before").await;
    wait_until(
        "the event has a position",
        Duration::from_secs(10),
        async || {
            service
                .count("SELECT count(*) FROM event_log WHERE kind = 'plan.created'")
                .await
                == 1
        },
    )
    .await;
    let endpoint = create_endpoint(&api, &receiver, json!({"event_types": ["plan.created"]})).await;
    let plan = create_plan(&api, "pro").await;
    wait_for_count(&receiver, 1).await;
    let request = &receiver.received()[0];
    assert!(request.is_signed_with(endpoint["secret"].as_str().unwrap()));
    assert!(!request.is_signed_with("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
    assert_eq!(request.content_type, "application/json");
    let body = request.body();
    assert_eq!(body["type"], "plan.created");
    assert_eq!(body["timestamp"], plan["created_at"]);
    assert_eq!(body["data"]["id"], request.id);
    assert_eq!(body["data"]["subject_id"], plan["id"]);
    assert_eq!(body["data"]["data"], plan);
    assert_eq!(body["data"]["actor"]["type"], "client");
    let sent_at: i64 = request.timestamp.parse().unwrap();
    assert!((jiff::Timestamp::now().as_second() - sent_at).abs() < 10);

    let attempts = format!("{}/attempts", path(&endpoint));
    wait_until(
        "the attempt is logged",
        Duration::from_secs(5),
        async || {
            !api.get_json(&attempts).await["data"]
                .as_array()
                .unwrap()
                .is_empty()
        },
    )
    .await;
    let attempt = &api.get_json(&attempts).await["data"][0];
    assert_eq!(attempt["event_id"], request.id);
    assert_eq!(
        (&attempt["attempt"], &attempt["status_code"]),
        (&json!(1), &json!(204))
    );
    assert_eq!(attempt["is_success"], true);
    // Neither earlier events nor other types.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(receiver.count(), 1);
}

#[tokio::test]
async fn events_reach_every_endpoint_once_in_each_order() {
    let (service, api) = start().await;
    let mut receivers = BTreeMap::new();
    for order in ["none", "subject", "strict"] {
        let receiver = WebhookReceiver::start().await;
        let fields = json!({"order": order, "event_types": ["plan.created", "plan.updated"]});
        create_endpoint(&api, &receiver, fields).await;
        receivers.insert(order, receiver);
    }
    for plan in 0..10 {
        create_plan(&api, &format!("p{plan}")).await;
    }
    for tier in 1..10 {
        for plan in 0..10 {
            let change = json!({"tier": tier}).to_string();
            let path = format!("/subscription-plans/p{plan}");
            assert_eq!(api.put(&path, &change).await.status, 200);
        }
    }
    for (order, receiver) in &receivers {
        wait_for_count(receiver, 100).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let requests = receiver.received();
        assert_eq!(requests.len(), 100, "{order}");
        let positions: Vec<i64> = requests.iter().map(ReceivedWebhook::position).collect();
        let mut sorted = positions.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 100, "{order}: each event once");
        if *order == "strict" {
            assert!(positions.is_sorted(), "{positions:?}");
            assert_eq!(receiver.max_in_flight(), 1);
        }
        if *order == "subject" {
            let mut last: BTreeMap<String, i64> = BTreeMap::new();
            for request in &requests {
                let last = last.entry(request.subject()).or_insert(0);
                assert!(request.position() > *last);
                *last = request.position();
            }
        }
    }
    wait_until("cursors are saved", Duration::from_secs(10), async || {
        let behind = "SELECT count(*) FROM webhook_endpoints JOIN event_log_tenants USING (tenant_id) WHERE position < last_position";
        service.count(behind).await == 0
    })
    .await;
    assert_eq!(
        service.count("SELECT count(*) FROM webhook_retries").await,
        0
    );
}

#[tokio::test]
async fn requests_in_flight_double_with_each_success() {
    let (_service, api) = start().await;
    let receiver = WebhookReceiver::start().await;
    receiver.respond(|_| Reply::Late(Duration::from_millis(50), 200));
    create_endpoint(&api, &receiver, json!({"event_types": ["plan.created"]})).await;
    for plan in 0..60 {
        create_plan(&api, &format!("p{plan}")).await;
    }
    wait_for_count(&receiver, 60).await;
    assert!(
        (2..=8).contains(&receiver.max_in_flight()),
        "{}",
        receiver.max_in_flight()
    );
}

#[tokio::test]
async fn rotated_secrets_both_sign() {
    let (_service, api) = start().await;
    let receiver = WebhookReceiver::start().await;
    let endpoint = create_endpoint(&api, &receiver, json!({"event_types": ["plan.created"]})).await;
    create_plan(&api, "before").await;
    wait_for_count(&receiver, 1).await;
    let rotated = api
        .post(&(path(&endpoint) + "/rotate-secret"), "{}")
        .await
        .json();
    // A process that holds the endpoint notices the change with the next renewal of its lease.
    tokio::time::sleep(Duration::from_secs(6)).await;
    create_plan(&api, "after").await;
    wait_for_count(&receiver, 2).await;
    let request = &receiver.received()[1];
    assert_eq!(request.signatures.len(), 2);
    assert!(request.is_signed_with(endpoint["secret"].as_str().unwrap()));
    assert!(request.is_signed_with(rotated["secret"].as_str().unwrap()));
}

#[tokio::test]
async fn test_message_is_sent_by_the_rules_of_deliveries() {
    let (service, api) = start().await;
    let receiver = WebhookReceiver::start().await;
    let endpoint = create_endpoint(&api, &receiver, json!({"status": "disabled"})).await;
    let test = format!("{}/test", path(&endpoint));
    let attempt = api.post(&test, "{}").await;
    assert_eq!(attempt.status, 200, "{}", attempt.text);
    assert_eq!(attempt.json()["is_success"], true);
    let request = &receiver.received()[0];
    assert!(request.is_signed_with(endpoint["secret"].as_str().unwrap()));
    assert_eq!(request.body()["type"], "webhook_endpoint.test");
    assert_eq!(attempt.json()["event_id"], request.id);

    receiver.respond(|_| Reply::Status(302, "location: http://127.0.0.1:1/\r\n"));
    let attempt = api.post(&test, "{}").await.json();
    assert_eq!(
        (&attempt["is_success"], &attempt["status_code"]),
        (&json!(false), &json!(302))
    );

    // The address that is connected to counts, not the one that was allowed when the endpoint was saved.
    let database = service.database.connect().await;
    let change = "UPDATE webhook_endpoints SET url = replace(url, '127.0.0.1', '[::1]')";
    database.batch_execute(change).await.unwrap();
    let attempt = api.post(&test, "{}").await.json();
    assert_eq!(attempt["is_success"], false);
    assert!(
        attempt["error"]
            .as_str()
            .unwrap()
            .contains("not a public address"),
        "{attempt}"
    );
    let name = "UPDATE webhook_endpoints SET url = 'http://ip6-localhost:9/'";
    database.batch_execute(name).await.unwrap();
    let attempt = api.post(&test, "{}").await.json();
    assert_eq!(attempt["is_success"], false, "{attempt}");
}

#[tokio::test]
async fn replay_sends_a_range_again() {
    let (service, api) = start().await;
    let receiver = WebhookReceiver::start().await;
    for plan in 0..150 {
        create_plan(&api, &format!("p{plan}")).await;
    }
    wait_until(
        "all events have positions",
        Duration::from_secs(10),
        async || {
            service
                .count("SELECT count(*) FROM event_log WHERE kind = 'plan.created'")
                .await
                == 150
        },
    )
    .await;
    let endpoint = create_endpoint(&api, &receiver, json!({})).await;
    wait_for_count(&receiver, 1).await;
    let replays = format!("{}/replays", path(&endpoint));
    let range = json!({"from": "2026-01-01T00:00:00Z", "event_types": ["plan.created"]});
    let replay = api.create(&replays, &range).await;
    assert_eq!(replay["after_position"], 0);
    wait_for_count(&receiver, 151).await;
    let future = json!({"from": "2099-01-01T00:00:00Z"});
    let empty = api.create(&replays, &future).await;
    assert_eq!(empty["after_position"], empty["last_position"]);
    wait_until(
        "replays are finished",
        Duration::from_secs(15),
        async || {
            service
                .count("SELECT count(*) FROM webhook_replays WHERE finished_at IS NULL")
                .await
                == 0
        },
    )
    .await;
    let mut ids: Vec<String> = receiver
        .received()
        .into_iter()
        .map(|request| request.id)
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), receiver.count()), (151, 151));
}

#[tokio::test]
async fn replay_of_an_event_sends_only_that_event() {
    let (service, api) = start().await;
    let receiver = WebhookReceiver::start().await;
    for plan in ["a", "b", "c"] {
        create_plan(&api, plan).await;
    }
    let (events, _) = read_events(&api, 3).await;
    let [id, recorded_at] = ["id", "recorded_at"].map(|field| events[1][field].as_str().unwrap());
    // An endpoint that does not receive the type gets the event too.
    let types = json!({"event_types": ["user.*"]});
    let endpoint = create_endpoint(&api, &receiver, types).await;
    let replays = format!("{}/replays", path(&endpoint));
    let replay = api.create(&replays, &json!({"event_id": id})).await;
    assert_eq!(replay["last_position"], events[1]["position"]);
    assert_eq!(replay["event_types"], json!(["plan.created"]));
    wait_for_count(&receiver, 1).await;
    let endpoint = endpoint["id"].as_str().unwrap();
    let command = [
        "webhook-endpoint",
        "replay",
        endpoint,
        "--event",
        id,
        "--json",
    ];
    let replay = service.run_json(&command);
    assert_eq!(replay["last_position"], events[1]["position"]);
    wait_for_count(&receiver, 2).await;
    let notifications = receiver.received();
    assert!(notifications.iter().all(|request| request.id == id));

    // A range excludes the event, as its types do.
    let excluded = json!({"event_id": id, "to": recorded_at});
    let replay = api.create(&replays, &excluded).await;
    assert_eq!(replay["after_position"], replay["last_position"]);
    for (body, code) in [
        (
            json!({"event_id": "evt_0192f0c1a2b37c4d8e5f60718293a4b5"}),
            "unknown_reference",
        ),
        (json!({"event_id": "pay_1"}), "invalid_id"),
        (json!({}), "required"),
    ] {
        let response = api.post(&replays, &body.to_string()).await;
        assert_eq!(
            (response.status, &response.json()["errors"][0]["code"]),
            (422, &json!(code))
        );
    }
}

#[tokio::test]
async fn clean_stop_repeats_nothing() {
    let service = Service::start_with(|variables| {
        allow_loopback(variables);
        variables.insert("PERENNIAL_WORKERS", "0".to_owned());
    })
    .await;
    let api = service.api(&[]);
    let receiver = WebhookReceiver::start().await;
    create_endpoint(&api, &receiver, json!({"event_types": ["plan.created"]})).await;
    let mut worker = Process::spawn(&service.variables, &["work"]);
    for plan in 0..100 {
        create_plan(&api, &format!("p{plan}")).await;
        if plan % 20 == 10 {
            assert!(worker.stop().await);
            worker = Process::spawn(&service.variables, &["work"]);
        }
    }
    wait_for_count(&receiver, 100).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(receiver.count(), 100);
}
