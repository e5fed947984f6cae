//! Workers that are killed, a database that restarts, and endpoints that fail at random.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use perennial::randomness::Randomness;
use serde_json::json;

use super::{allow_loopback, create_endpoint, end_pauses, first_arrivals_are_in_order};
use crate::harness::{
    api::ApiClient,
    client::create_client,
    cluster::Cluster,
    database::connect,
    env_number,
    process::{Process, Server, run_ok, sandbox},
    wait_until,
    webhook_receiver::{Reply, WebhookReceiver},
};

const PLANS: u64 = 40;

/// Creates and updates plans until `stop`. Requests may fail while the database restarts.
async fn write(api: ApiClient, stop: Arc<AtomicBool>) {
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        if number % 20 == 0 {
            let slug = format!("new{number}");
            let plan = json!({"name": slug, "slug": slug, "price": 1, "billing_cycle": "monthly"});
            api.post("/subscription-plans", &plan.to_string()).await;
        }
        let change = json!({"tier": number % 1_000}).to_string();
        let path = format!("/subscription-plans/p{}", number % PLANS);
        api.put(&path, &change).await;
        number += 1;
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// Five workers, one of which is killed each second. `SECONDS` sets the duration; `just prove webhook-kills` uses 300.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_workers_lose_no_event() {
    let seconds = env_number("SECONDS").unwrap_or(5_u64);
    let cluster = Cluster::start();
    let url = cluster.url();
    let mut variables = sandbox(&url);
    allow_loopback(&mut variables);
    variables.insert("PERENNIAL_WORKERS", "0".to_owned());
    variables.insert("PERENNIAL_DATABASE_LANES", "1".to_owned());
    run_ok(&variables, &["migrate"]);
    let server = Server::start(&variables).await;
    let (_, client) = create_client(&url, &[]);
    let api = ApiClient::new(&server.url).with("client-id", &client);
    for plan in 0..PLANS {
        super::create_plan(&api, &format!("p{plan}")).await;
    }
    let mut receivers = BTreeMap::new();
    for order in ["none", "subject", "strict"] {
        let receiver = WebhookReceiver::start().await;
        let accepted = Arc::new(Mutex::new(Vec::new()));
        let log = accepted.clone();
        receiver.respond(move |received| {
            if Randomness.bytes::<1>()[0] < 51 {
                return Reply::Status(500, "");
            }
            log.lock().unwrap().push(received.id.clone());
            Reply::Status(200, "")
        });
        // In strict order, all events wait for each failed one.
        let types: &[&str] = match order {
            "strict" => &["plan.created"],
            _ => &["plan.created", "plan.updated"],
        };
        create_endpoint(
            &api,
            &receiver,
            json!({"order": order, "event_types": types}),
        )
        .await;
        receivers.insert(order, (receiver, accepted));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn(write(api, stop.clone()));
    let spawn = || Process::spawn(&variables, &["work"]);
    let mut workers: Vec<Process> = (0..5).map(|_| spawn()).collect();
    let started = Instant::now();
    let (mut kills, mut restarts) = (0, 0);
    while started.elapsed() < Duration::from_secs(seconds) {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let elapsed = started.elapsed();
        if elapsed.as_secs() > kills {
            let worker = usize::try_from(kills).unwrap() % 5;
            workers[worker].kill();
            workers[worker] = spawn();
            kills += 1;
            end_pauses(&connect(&url).await).await;
        }
        if restarts < 2 && elapsed > Duration::from_secs(seconds) * (restarts + 1) / 3 {
            cluster.stop();
            tokio::time::sleep(Duration::from_millis(500)).await;
            cluster.resume();
            restarts += 1;
        }
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap();
    let database = connect(&url).await;
    for (order, (receiver, accepted)) in &receivers {
        let kinds = if *order == "strict" {
            "kind = 'plan.created'"
        } else {
            "kind IN ('plan.created', 'plan.updated')"
        };
        // Those of the plans that existed before the endpoint are not sent.
        let expected = format!(
            "SELECT 'evt_' || replace(id::text, '-', '') FROM events WHERE {kinds} AND at > (SELECT max(created_at) FROM webhook_endpoints)"
        );
        let rows = database.query(&expected, &[]).await.unwrap();
        let expected: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
        wait_until(
            &format!("{order}: all {} events are accepted", expected.len()),
            Duration::from_mins(3),
            async || {
                end_pauses(&database).await;
                tokio::time::sleep(Duration::from_millis(200)).await;
                let accepted: BTreeSet<String> = accepted.lock().unwrap().iter().cloned().collect();
                expected.is_subset(&accepted)
            },
        )
        .await;
        let accepted = accepted.lock().unwrap().clone();
        let received = receiver.received();
        let mut ids: BTreeMap<i64, BTreeSet<&str>> = BTreeMap::new();
        for received in &received {
            let ids = ids.entry(received.position()).or_default();
            ids.insert(&received.id);
            assert_eq!(ids.len(), 1, "repeats carry the same webhook-id");
        }
        let distinct = BTreeSet::from_iter(&accepted).len();
        println!(
            "{order}: {distinct} events, each accepted; {} requests repeat an accepted one, {} were rejected; {kills} \
             kills, {restarts} restarts of the database",
            accepted.len() - distinct,
            received.len().saturating_sub(accepted.len()),
        );
        assert!(first_arrivals_are_in_order(order, &received), "{order}");
        assert!(ids.len() >= expected.len() && !expected.is_empty());
    }
    assert_eq!(restarts, 2);
}
