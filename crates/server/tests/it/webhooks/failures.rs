//! Endpoints that fail, stall or are down, and workers that are killed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{allow_loopback, create_endpoint, create_plan, path, start, wait_for_count};
use crate::harness::{
    env_number,
    process::Process,
    service::Service,
    wait_until,
    webhook_receiver::{Reply, WebhookReceiver},
};

/// Makes all retries due, as if their pauses had passed.
const PASS_TIME: &str =
    "UPDATE webhook_retries SET next_attempt_at = now() WHERE next_attempt_at IS NOT NULL;
    UPDATE webhook_endpoints SET due_at = now()";

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
    let received = receiver.received();
    assert_eq!(received[0].id, received[1].id);
    let pause = received[1].at - received[0].at;
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
        receiver.respond(move |received| {
            let fails = received.body()["data"]["data"]["slug"] == "bad";
            match fails && !fixed.load(Ordering::Relaxed) {
                true => Reply::Status(500, ""),
                false => Reply::Status(200, ""),
            }
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
        let received = receivers[order].0.received();
        let good = received
            .iter()
            .filter(|received| received.body()["data"]["data"]["slug"] != "bad");
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
        database.batch_execute(PASS_TIME).await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        service.count("SELECT count(*) FROM webhook_retries").await == 0 && good("strict") == 3
    })
    .await;
    for order in ["subject", "strict"] {
        // The last attempt of each event succeeded, in this order.
        let received = receivers[order].0.received();
        let mut last: BTreeMap<String, usize> = BTreeMap::new();
        for (index, received) in received.iter().enumerate() {
            last.insert(received.id.clone(), index);
        }
        let mut succeeded: Vec<(usize, i64, String)> = last
            .values()
            .map(|index| {
                (
                    *index,
                    received[*index].position(),
                    received[*index].subject(),
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
        let received = receiver.received();
        let ids: BTreeSet<&str> = received
            .iter()
            .skip(1)
            .map(|received| received.id.as_str())
            .collect();
        ids.len() == 2
    })
    .await;
}

#[tokio::test]
async fn endpoint_that_is_down_for_a_week_is_disabled_after_five_days() {
    let (service, api) = start().await;
    let receiver = WebhookReceiver::start().await;
    receiver.respond(|_| Reply::Status(503, ""));
    let endpoint = create_endpoint(&api, &receiver, json!({"event_types": ["plan.created"]})).await;
    for plan in 0..5 {
        create_plan(&api, &format!("p{plan}")).await;
    }
    wait_for_count(&receiver, 5).await;
    let database = service.database.connect().await;
    let hours = "UPDATE webhook_endpoints SET failing_since = failing_since - interval '12 hours'";
    let mut simulated = 0;
    while api.get_json(&path(&endpoint)).await["status"] == "enabled" {
        assert!(simulated < 7 * 24, "not disabled within a week");
        simulated += 12;
        let before = receiver.count();
        database.batch_execute(hours).await.unwrap();
        database.batch_execute(PASS_TIME).await.unwrap();
        // The endpoint may be paused for some seconds.
        wait_until("a retry is sent", Duration::from_mins(1), async || {
            database.batch_execute(PASS_TIME).await.unwrap();
            receiver.count() > before
                || api.get_json(&path(&endpoint)).await["status"] == "disabled"
        })
        .await;
    }
    assert!((108..=132).contains(&simulated), "{simulated} hours");
    let disabled = api.get_json(&path(&endpoint)).await;
    assert_eq!(disabled["disabled_reason"], "failures");
    for plan in 5..10 {
        create_plan(&api, &format!("p{plan}")).await;
    }
    receiver.respond(|_| Reply::Status(200, ""));
    let sent_while_down = receiver.count();
    api.post(&(path(&endpoint) + "/enable"), "{}").await;
    wait_until("all events arrive", Duration::from_mins(1), async || {
        database.batch_execute(PASS_TIME).await.unwrap();
        let received = receiver.received();
        let ids: BTreeSet<&str> = received
            .iter()
            .skip(sent_while_down)
            .map(|received| received.id.as_str())
            .collect();
        ids.len() == 10
    })
    .await;
}

#[tokio::test]
async fn given_up_event_can_be_replayed() {
    let (service, api) = start().await;
    let receiver = WebhookReceiver::start().await;
    receiver.respond(
        |received| match received.body()["data"]["data"]["slug"] == "bad" {
            true => Reply::Status(400, ""),
            false => Reply::Status(200, ""),
        },
    );
    let endpoint = create_endpoint(&api, &receiver, json!({"event_types": ["plan.created"]})).await;
    create_plan(&api, "bad").await;
    create_plan(&api, "good").await;
    let database = service.database.connect().await;
    let given_up = "SELECT count(*) FROM webhook_retries WHERE given_up_at IS NOT NULL";
    wait_until(
        "the event is given up",
        Duration::from_mins(1),
        async || {
            database.batch_execute(PASS_TIME).await.unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
            service.count(given_up).await == 1
        },
    )
    .await;
    assert_eq!(receiver.count(), 11, "ten attempts, and the other event");
    receiver.respond(|_| Reply::Status(200, ""));
    let range = json!({"from": "2026-01-01T00:00:00Z", "only_failed": true});
    api.create(&format!("{}/replays", path(&endpoint)), &range)
        .await;
    wait_for_count(&receiver, 12).await;
    assert_eq!(
        receiver.received()[11].body()["data"]["data"]["slug"],
        "bad"
    );
    wait_until("nothing is left", Duration::from_secs(5), async || {
        service.count("SELECT count(*) FROM webhook_retries").await == 0
    })
    .await;
}

#[tokio::test]
async fn requested_pause_is_respected() {
    let (_service, api) = start().await;
    let receiver = WebhookReceiver::start().await;
    let is_first = AtomicBool::new(true);
    receiver.respond(move |_| match is_first.swap(false, Ordering::Relaxed) {
        true => Reply::Status(429, "retry-after: 7\r\n"),
        false => Reply::Status(200, ""),
    });
    create_endpoint(&api, &receiver, json!({"event_types": ["plan.created"]})).await;
    create_plan(&api, "one").await;
    wait_for_count(&receiver, 1).await;
    create_plan(&api, "two").await;
    wait_for_count(&receiver, 3).await;
    let received = receiver.received();
    let pause = received[1].at - received[0].at;
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

/// `SECONDS` sets the duration; `just webhook-isolation` uses 60.
#[tokio::test]
async fn broken_endpoints_do_not_delay_healthy_ones() {
    let seconds = env_number("SECONDS").unwrap_or(6_u64);
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
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        create_plan(&api, &format!("p{}", created.len())).await;
        created.push(Instant::now());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    wait_for_count(&healthy, created.len()).await;
    let received = healthy.received();
    let mut delays: Vec<Duration> = { received.iter() }
        .map(|received| {
            let slug = received.body()["data"]["data"]["slug"]
                .as_str()
                .unwrap()
                .to_owned();
            let number: usize = slug[1..].parse().unwrap();
            received.at.saturating_duration_since(created[number])
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

/// Five workers, one killed each second. `SECONDS` sets the duration; `just webhook-kills` uses 120.
#[tokio::test]
async fn killed_workers_lose_no_event() {
    let seconds = env_number("SECONDS").unwrap_or(8_u64);
    let service = Service::start_with(|variables| {
        allow_loopback(variables);
        variables.insert("PERENNIAL_WORKERS", "0".to_owned());
        variables.insert("PERENNIAL_DATABASE_LANES", "1".to_owned());
    })
    .await;
    let api = service.api(&[]);
    let mut receivers = BTreeMap::new();
    for order in ["none", "subject", "strict"] {
        let receiver = WebhookReceiver::start().await;
        create_endpoint(
            &api,
            &receiver,
            json!({"order": order, "event_types": ["plan.created"]}),
        )
        .await;
        receivers.insert(order, receiver);
    }
    let spawn = || Process::spawn(&service.variables, &["work"]);
    let mut workers: Vec<Process> = (0..5).map(|_| spawn()).collect();
    let started = Instant::now();
    let (mut created, mut kills) = (0, 0);
    while started.elapsed() < Duration::from_secs(seconds) {
        create_plan(&api, &format!("p{created}")).await;
        created += 1;
        if started.elapsed().as_secs() > kills {
            let worker = usize::try_from(kills).unwrap() % 5;
            workers[worker].kill();
            workers[worker] = spawn();
            kills += 1;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for (order, receiver) in &receivers {
        wait_until(
            &format!("{order}: all events"),
            Duration::from_mins(1),
            async || {
                let received = receiver.received();
                let ids: BTreeSet<&str> = received
                    .iter()
                    .map(|received| received.id.as_str())
                    .collect();
                ids.len() == created
            },
        )
        .await;
        let repeated = receiver.count() - created;
        println!("{order}: {created} events, {kills} kills, {repeated} repeated");
    }
}
