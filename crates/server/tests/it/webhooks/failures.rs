//! Endpoints that fail or stall.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{create_endpoint, create_plan, end_pauses, path, start, wait_for_count};
use crate::harness::{
    wait_until,
    webhook_receiver::{Reply, WebhookReceiver},
};

#[tokio::test]
async fn failed_event_is_sent_again_with_the_same_id() {
    let (service, api) = start().await;
    let receiver = WebhookReceiver::start().await;
    receiver.respond(|_| Reply::Status(500, ""));
    let endpoint = create_endpoint(&api, &receiver, json!({"event_types": ["plan.created"]})).await;
    create_plan(&api, "pro").await;
    wait_for_count(&receiver, 1).await;
    wait_until(
        "the endpoint is failing",
        Duration::from_secs(5),
        async || api.get_json(&path(&endpoint)).await["failing_since"] != Value::Null,
    )
    .await;
    receiver.respond(|_| Reply::Status(200, ""));
    wait_for_count(&receiver, 2).await;
    let requests = receiver.received();
    assert_eq!(requests[0].id, requests[1].id);
    let pause = requests[1].at - requests[0].at;
    assert!((5..8).contains(&pause.as_secs()), "{pause:?}");
    wait_until("the endpoint works", Duration::from_secs(5), async || {
        api.get_json(&path(&endpoint)).await["failing_since"] == Value::Null
    })
    .await;
    assert_eq!(
        service.count("SELECT count(*) FROM webhook_retries").await,
        0
    );
    let attempts = format!("{}/attempts", path(&endpoint));
    wait_until(
        "both attempts are logged",
        Duration::from_secs(5),
        async || {
            api.get_json(&attempts).await["data"]
                .as_array()
                .unwrap()
                .len()
                == 2
        },
    )
    .await;
    let attempts = api.get_json(&attempts).await["data"].clone();
    assert_eq!(
        (&attempts[0]["attempt"], &attempts[1]["attempt"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(attempts[1]["status_code"], 500);
}

#[tokio::test]
async fn failed_event_delays_what_its_order_says() {
    let (service, api) = start().await;
    let mut receivers = BTreeMap::new();
    for order in ["none", "subject", "strict"] {
        let receiver = WebhookReceiver::start().await;
        let is_fixed = Arc::new(AtomicBool::new(false));
        let fixed = is_fixed.clone();
        receiver.respond(move |request| {
            let fails = request.body()["data"]["data"]["slug"] == "bad";
            let fails = fails && !fixed.load(Ordering::Relaxed);
            Reply::Status(if fails { 500 } else { 200 }, "")
        });
        let fields = json!({"order": order, "event_types": ["plan.created", "plan.updated"]});
        create_endpoint(&api, &receiver, fields).await;
        receivers.insert(order, (receiver, is_fixed));
    }
    for slug in ["a", "bad", "b"] {
        create_plan(&api, slug).await;
    }
    for slug in ["bad", "a", "bad"] {
        let tier = receivers["none"].0.count() % 900 + 1;
        let change = json!({"tier": tier, "description": format!("{slug} {tier}")}).to_string();
        assert_eq!(
            api.put(&format!("/subscription-plans/{slug}"), &change)
                .await
                .status,
            200
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let good = |order: &str| {
        let requests = receivers[order].0.received();
        let good = requests
            .iter()
            .filter(|request| request.body()["data"]["data"]["slug"] != "bad");
        good.count()
    };
    wait_until(
        "events of other plans arrive",
        Duration::from_secs(10),
        async || good("none") == 3 && good("subject") == 3,
    )
    .await;
    assert_eq!(good("strict"), 1, "strict stops at the failed event");
    let bad = |order: &str| receivers[order].0.count() - good(order);
    assert_eq!(bad("subject"), 1, "later events of the plan wait");
    assert!(bad("none") >= 3);

    let database = service.database.connect().await;
    for (_, is_fixed) in receivers.values() {
        is_fixed.store(true, Ordering::Relaxed);
    }
    wait_until("all events arrive", Duration::from_secs(30), async || {
        end_pauses(&database).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        service.count("SELECT count(*) FROM webhook_retries").await == 0 && good("strict") == 3
    })
    .await;
    for order in ["subject", "strict"] {
        // The last attempt of each event succeeded, in this order.
        let requests = receivers[order].0.received();
        let mut last: BTreeMap<String, usize> = BTreeMap::new();
        for (index, request) in requests.iter().enumerate() {
            last.insert(request.id.clone(), index);
        }
        let mut succeeded: Vec<(usize, i64, String)> = last
            .values()
            .map(|index| {
                (
                    *index,
                    requests[*index].position(),
                    requests[*index].subject(),
                )
            })
            .collect();
        succeeded.sort();
        assert_eq!(succeeded.len(), 6, "{order}");
        for (one, (_, position, subject)) in succeeded.iter().enumerate() {
            for (_, later, other) in &succeeded[one..] {
                let must_be_in_order = order == "strict" || subject == other;
                assert!(
                    !must_be_in_order || later >= position,
                    "{order}: {succeeded:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn gone_endpoint_is_disabled_and_continues_when_enabled() {
    let (service, api) = start().await;
    let receiver = WebhookReceiver::start().await;
    receiver.respond(|_| Reply::Status(410, ""));
    let endpoint = create_endpoint(&api, &receiver, json!({"event_types": ["plan.created"]})).await;
    create_plan(&api, "one").await;
    wait_until(
        "the endpoint is disabled",
        Duration::from_secs(10),
        async || api.get_json(&path(&endpoint)).await["status"] == "disabled",
    )
    .await;
    assert_eq!(
        api.get_json(&path(&endpoint)).await["disabled_reason"],
        "gone"
    );
    let events = "SELECT count(*) FROM events WHERE kind = 'webhook_endpoint.disabled' AND client_id IS NULL";
    assert_eq!(service.count(events).await, 1);
    create_plan(&api, "two").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(receiver.count(), 1);

    receiver.respond(|_| Reply::Status(200, ""));
    api.post(&(path(&endpoint) + "/enable"), "{}").await;
    wait_until("both events arrive", Duration::from_secs(20), async || {
        let requests = receiver.received();
        let ids: BTreeSet<&str> = requests
            .iter()
            .skip(1)
            .map(|request| request.id.as_str())
            .collect();
        ids.len() == 2
    })
    .await;
}

#[tokio::test]
async fn requested_pause_is_respected() {
    let (_service, api) = start().await;
    let receiver = WebhookReceiver::start().await;
    let is_first = AtomicBool::new(true);
    receiver.respond(move |_| {
        if is_first.swap(false, Ordering::Relaxed) {
            Reply::Status(429, "retry-after: 7\r\n")
        } else {
            Reply::Status(200, "")
        }
    });
    create_endpoint(&api, &receiver, json!({"event_types": ["plan.created"]})).await;
    create_plan(&api, "one").await;
    wait_for_count(&receiver, 1).await;
    create_plan(&api, "two").await;
    wait_for_count(&receiver, 3).await;
    let requests = receiver.received();
    let pause = requests[1].at - requests[0].at;
    assert!(pause >= Duration::from_millis(6_900), "{pause:?}");
}

#[tokio::test]
async fn response_body_must_arrive_within_the_deadline() {
    let (_service, api) = start().await;
    let receiver = WebhookReceiver::start().await;
    receiver.respond(|_| Reply::Stalled);
    let endpoint = create_endpoint(&api, &receiver, json!({"event_types": ["plan.created"]})).await;
    create_plan(&api, "pro").await;
    wait_for_count(&receiver, 1).await;
    let started = Instant::now();
    wait_until("the attempt fails", Duration::from_secs(20), async || {
        api.get_json(&path(&endpoint)).await["failing_since"] != Value::Null
    })
    .await;
    assert!(
        (13..18).contains(&started.elapsed().as_secs()),
        "{:?}",
        started.elapsed()
    );
}

/// `just prove webhook-isolation` measures this with 192 broken endpoints.
#[tokio::test]
async fn broken_endpoints_do_not_delay_healthy_ones() {
    let (_service, api) = start().await;
    let mut broken = Vec::new();
    for number in 0..40 {
        let receiver = WebhookReceiver::start().await;
        receiver.respond(move |_| match number % 4 {
            0 => Reply::Stalled,
            1 => Reply::Late(Duration::from_secs(3), 200),
            2 => Reply::Reset,
            _ => Reply::Status(500, ""),
        });
        create_endpoint(&api, &receiver, json!({"event_types": ["plan.created"]})).await;
        broken.push(receiver);
    }
    let healthy = WebhookReceiver::start().await;
    create_endpoint(&api, &healthy, json!({"event_types": ["plan.created"]})).await;
    let mut created: Vec<Instant> = Vec::new();
    let until = Instant::now() + Duration::from_secs(6);
    while Instant::now() < until {
        create_plan(&api, &format!("p{}", created.len())).await;
        created.push(Instant::now());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    wait_for_count(&healthy, created.len()).await;
    let request = healthy.received();
    let mut delays: Vec<Duration> = { request.iter() }
        .map(|request| {
            let slug = request.body()["data"]["data"]["slug"]
                .as_str()
                .unwrap()
                .to_owned();
            let number: usize = slug[1..].parse().unwrap();
            request.at.saturating_duration_since(created[number])
        })
        .collect();
    delays.sort();
    let (median, last) = (delays[delays.len() / 2], delays[delays.len() - 1]);
    println!(
        "{} events beside 40 broken endpoints: p50 {median:?}, max {last:?}",
        delays.len()
    );
    assert!(median < Duration::from_secs(1), "{median:?}");
}

/// As after a downgrade, with an event type that this version does not know.
#[tokio::test]
async fn unreadable_endpoint_does_not_delay_others() {
    let (service, api) = start().await;
    let (unreadable, healthy) = (
        WebhookReceiver::start().await,
        WebhookReceiver::start().await,
    );
    let fields = json!({"event_types": ["plan.created"], "status": "disabled"});
    create_endpoint(&api, &unreadable, fields).await;
    create_endpoint(&api, &healthy, json!({"event_types": ["plan.created"]})).await;
    let change = "UPDATE webhook_endpoints SET event_types = '{plan.shrunk}', status = 'enabled'
        WHERE status = 'disabled'";
    let database = service.database.connect().await;
    assert_eq!(database.execute(change, &[]).await.unwrap(), 1);
    create_plan(&api, "pro").await;
    wait_for_count(&healthy, 1).await;
    assert_eq!(unreadable.count(), 0);
}
