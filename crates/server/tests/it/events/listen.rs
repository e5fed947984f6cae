//! `perennial listen`: forwards events to a local receiver and loses none.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use perennial::webhooks::signature::{WebhookSecret, signature_headers};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::feed::{create_plan, read_events};
use crate::harness::{
    cutting_proxy::CuttingProxy,
    env_number,
    process::{Process, Variables, run_err, run_ok},
    reserve_port,
    service::Service,
    unique_name, wait_until,
};
use crate::webhooks::allow_loopback;

/// An accepted request: its headers and its body.
#[derive(Debug, Clone, PartialEq)]
struct Delivery {
    headers: BTreeMap<String, String>,
    body: String,
}

impl Delivery {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A receiver of webhooks that rejects some of the requests.
#[derive(Clone, Default)]
struct Receiver {
    accepted: Arc<Mutex<Vec<Delivery>>>,
    requests: Arc<AtomicU64>,
    /// Every n-th request is answered with 500; 0 accepts all.
    failure_interval: Arc<AtomicU64>,
}

impl Receiver {
    /// Starts the receiver and returns its URL.
    async fn start(&self) -> String {
        let port = reserve_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let router = Router::new()
            .route("/hook", post(receive))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://127.0.0.1:{port}/hook")
    }

    fn accepted(&self) -> Vec<Delivery> {
        self.accepted.lock().unwrap().clone()
    }
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let number = receiver.requests.fetch_add(1, Ordering::Relaxed) + 1;
    let interval = receiver.failure_interval.load(Ordering::Relaxed);
    if interval > 0 && number.is_multiple_of(interval) {
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    let headers = headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    receiver.accepted.lock().unwrap().push(Delivery {
        headers: headers.collect(),
        body: String::from_utf8(body.to_vec()).unwrap(),
    });
    StatusCode::NO_CONTENT
}

/// The settings of `perennial listen`: neither a database nor a master key.
fn listen_variables(url: &str, client_id: &str) -> Variables {
    Variables::from([("URL", url.to_owned()), ("CLIENT_ID", client_id.to_owned())])
}

fn state_file() -> PathBuf {
    std::env::temp_dir().join(unique_name("perennial-listen-") + ".json")
}

fn saved_cursor(path: &PathBuf) -> Option<String> {
    let state: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).unwrap();
    state["cursor"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn events_arrive_as_signed_webhooks() {
    let service = Service::start().await;
    let (_, client_id) = service.create_client(&[]);
    let api = service.anonymous().with("client-id", &client_id);
    create_plan(&api, "before").await;
    // Otherwise it can receive its position after the stream is open.
    wait_until(
        "the event is in the log",
        Duration::from_secs(10),
        async || {
            let events = api.get_json("/events?types=plan.*").await;
            events["data"].as_array().unwrap().len() == 1
        },
    )
    .await;
    let receiver = Receiver::default();
    receiver.failure_interval.store(2, Ordering::Relaxed);
    let hook = receiver.start().await;
    let variables = listen_variables(&service.server.url, &client_id);
    let path = state_file();
    let state = path.to_str().unwrap();
    let arguments = [
        "listen",
        "--forward-to",
        &hook,
        "--state",
        state,
        "--types",
        "plan.*",
    ];
    let secret = run_ok(&variables, &[&arguments[..], &["--print-secret"]].concat());
    let mut listen = Process::spawn(&variables, &arguments);
    wait_until("the stream is open", Duration::from_secs(10), async || {
        saved_cursor(&path).is_some()
    })
    .await;
    assert!(listen.log().replace('\n', " ").contains(secret.trim()));
    let user = json!({"email": "ada@example.com"});
    api.create("/users", &user).await;
    let plans = [
        create_plan(&api, "pro").await,
        create_plan(&api, "team").await,
    ];
    wait_until("both plans arrive", Duration::from_secs(10), async || {
        receiver.accepted().len() >= 2
    })
    .await;
    let secret = WebhookSecret::parse(secret.trim()).unwrap();
    let events = api.get_json("/events?types=plan.*").await;
    for (number, delivery) in receiver.accepted().iter().enumerate() {
        let body = delivery.json();
        let event = &events["data"][number + 1];
        assert_eq!(event["subject_id"], plans[number]["id"]);
        assert_eq!(&body["data"], event);
        assert_eq!(body["type"], "plan.created");
        assert_eq!(body["timestamp"], event["occurred_at"]);
        assert_eq!(
            delivery.headers["webhook-id"],
            event["id"].as_str().unwrap()
        );
        assert_eq!(delivery.headers["content-type"], "application/json");
        let timestamp = delivery.headers["webhook-timestamp"].parse().unwrap();
        let now = jiff::Timestamp::now().as_second();
        assert!((now - 60..=now).contains(&timestamp));
        let expected = signature_headers(
            std::slice::from_ref(&secret),
            &delivery.headers["webhook-id"],
            timestamp,
            delivery.body.as_bytes(),
        );
        for (name, value) in expected {
            assert_eq!(delivery.headers[name], value);
        }
    }
    // One process per state file.
    let error = run_err(&variables, &arguments);
    assert!(error.contains("another `perennial listen`"), "{error}");
    listen.kill();

    // Resumes after a pause, unless `--reset` starts with new events.
    let slugs = || -> Vec<String> {
        let accepted = receiver.accepted();
        let slugs = accepted
            .iter()
            .map(|delivery| delivery.json()["data"]["data"]["slug"].clone());
        slugs
            .map(|slug| slug.as_str().unwrap().to_owned())
            .collect()
    };
    create_plan(&api, "in-between").await;
    listen = Process::spawn(&variables, &arguments);
    wait_until(
        "the next plan arrives",
        Duration::from_secs(10),
        async || slugs().len() >= 3,
    )
    .await;
    listen.kill();
    let cursor = saved_cursor(&path);
    create_plan(&api, "skipped").await;
    read_events(&api, 6).await;
    let _listen = Process::spawn(&variables, &[&arguments[..], &["--reset"]].concat());
    wait_until(
        "a new cursor is saved",
        Duration::from_secs(10),
        async || saved_cursor(&path).is_some_and(|saved| Some(saved) != cursor),
    )
    .await;
    create_plan(&api, "last").await;
    wait_until(
        "the last plan arrives",
        Duration::from_secs(10),
        async || slugs().iter().any(|slug| slug == "last"),
    )
    .await;
    assert!(
        !slugs().iter().any(|slug| slug == "skipped"),
        "{:?}",
        slugs()
    );
}

/// A webhook endpoint and `perennial listen` send the same request for an event, apart from its secret and its time.
#[tokio::test]
async fn forwarded_request_equals_a_delivery() {
    let service = Service::start_with(allow_loopback).await;
    let (_, client_id) = service.create_client(&[]);
    let api = service.anonymous().with("client-id", &client_id);
    let (delivered, forwarded) = (Receiver::default(), Receiver::default());
    let url = delivered.start().await;
    let endpoint = json!({"url": url, "event_types": ["plan.*"]});
    api.create("/webhook-endpoints", &endpoint).await;
    let (hook, path) = (forwarded.start().await, state_file());
    let arguments = [
        "listen",
        "--forward-to",
        &hook,
        "--types",
        "plan.*",
        "--state",
        path.to_str().unwrap(),
    ];
    let variables = listen_variables(&service.server.url, &client_id);
    let _listen = Process::spawn(&variables, &arguments);
    wait_until("the stream is open", Duration::from_secs(10), async || {
        saved_cursor(&path).is_some()
    })
    .await;
    // Text and amounts that could be written in another way.
    let plan =
        json!({"name": "Pro “é한/\\", "slug": "pro", "price": "10.50", "billing_cycle": "monthly"});
    api.create("/subscription-plans", &plan).await;
    let change = json!({"price": "12.00"}).to_string();
    assert_eq!(
        api.put("/subscription-plans/pro", &change).await.status,
        200
    );
    wait_until("all arrive", Duration::from_secs(20), async || {
        delivered.accepted().len() == 2 && forwarded.accepted().len() == 2
    })
    .await;
    let requests = |receiver: &Receiver| {
        let requests = receiver.accepted().into_iter().map(|mut request| {
            for name in ["host", "webhook-timestamp", "webhook-signature"] {
                assert!(request.headers.remove(name).is_some(), "{name}");
            }
            (request.headers["webhook-id"].clone(), request)
        });
        requests.collect::<BTreeMap<_, _>>()
    };
    assert_eq!(requests(&delivered), requests(&forwarded));
}

#[tokio::test]
async fn rejected_client_or_cursor_ends_the_command() {
    let service = Service::start().await;
    let (_, client_id) = service.create_client(&[]);
    let hook = Receiver::default().start().await;
    let path = state_file();
    let arguments = [
        "listen",
        "--forward-to",
        &hook,
        "--state",
        path.to_str().unwrap(),
    ];
    let url = &service.server.url;
    let error = run_err(&listen_variables(url, "prn_sk_unknown"), &arguments);
    assert!(error.contains("401 invalid_client"), "{error}");
    std::fs::write(&path, r#"{"cursor": "abc"}"#).unwrap();
    let error = run_err(&listen_variables(url, &client_id), &arguments);
    assert!(error.contains("400 invalid_cursor"), "{error}");
    let mut without = listen_variables(url, &client_id);
    without.remove("CLIENT_ID");
    let error = run_err(&without, &arguments);
    assert!(error.contains("CLIENT_ID is not set"), "{error}");
}

/// Killed and cut off again and again while events are recorded: the receiver gets every event, and its first delivery of
/// each is in order. `LISTEN_INTERRUPTIONS` sets how often; `just prove listen-kills` uses 200.
#[tokio::test]
async fn interrupted_listener_loses_no_event() {
    let interruptions: u64 = env_number("LISTEN_INTERRUPTIONS").unwrap_or(20);
    let service = Service::start().await;
    let (_, client_id) = service.create_client(&[]);
    let api = service.anonymous().with("client-id", &client_id);
    let receiver = Receiver::default();
    receiver.failure_interval.store(13, Ordering::Relaxed);
    let hook = receiver.start().await;
    let proxy = CuttingProxy::start(&service.server.url).await;
    let variables = listen_variables(&proxy.url, &client_id);
    let path = state_file();
    let arguments = [
        "listen",
        "--forward-to",
        &hook,
        "--state",
        path.to_str().unwrap(),
    ];
    let start = || Process::spawn(&variables, &arguments);
    let mut listen = start();
    wait_until("the stream is open", Duration::from_secs(10), async || {
        saved_cursor(&path).is_some()
    })
    .await;

    let stop = tokio_util::sync::CancellationToken::new();
    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let (api, stop) = (api.clone(), stop.clone());
            tokio::spawn(async move {
                let mut number = 0_u64;
                while !stop.is_cancelled() {
                    create_plan(&api, &format!("plan-{writer}-{number}")).await;
                    number += 1;
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                number
            })
        })
        .collect();
    for interruption in 0..interruptions {
        tokio::time::sleep(Duration::from_millis(50 + interruption * 37 % 250)).await;
        if interruption % 2 == 0 {
            listen.kill();
            listen = start();
        } else {
            proxy.cut();
        }
    }
    stop.cancel();
    let mut created = 0;
    for writer in writers {
        created += writer.await.unwrap();
    }
    let first_deliveries = || {
        let (mut positions, mut seen) = (Vec::new(), BTreeSet::new());
        for delivery in receiver.accepted() {
            let position = delivery.json()["data"]["position"].as_i64().unwrap();
            if seen.insert(position) {
                positions.push(position);
            }
        }
        positions
    };
    let expected = usize::try_from(created).unwrap();
    // A faster build records more events than it forwards meanwhile.
    let patience = Duration::from_secs(60 + 2 * interruptions);
    wait_until("all events arrive", patience, async || {
        receiver.accepted().len() >= expected && first_deliveries().len() >= expected
    })
    .await;
    let positions = first_deliveries();
    let repeated = receiver.accepted().len() - positions.len();
    eprintln!("{interruptions} interruptions, {created} events, {repeated} repeated, 0 lost");
    assert_eq!(positions.len(), expected);
    assert!(positions.is_sorted());
}
