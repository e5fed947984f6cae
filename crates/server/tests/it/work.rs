//! Background work: every item once, whoever is killed.

use std::time::Duration;

use perennial::{
    db::{Address, Engine, Size},
    work::Lease,
};
use tokio_postgres::Client;

use crate::harness::{
    cluster::Cluster,
    database::{Database, connect},
    process::{Process, Variables, run_ok, sandbox},
    service::Service,
    wait_until,
};

/// Adds clients, each with one value that has expired: work for the housekeeper.
async fn add_items(database: &Client, count: i32) {
    let sql = "WITH added AS (
            INSERT INTO clients (tenant_id, id, kind, name, scopes, allow_addresses, allowed_origins, created_at)
            SELECT tenant_id, gen_random_uuid(), 'secret', 'test', '{}', '{}', '{}', now()
            FROM tenants, generate_series(1, $1) RETURNING tenant_id, id)
        INSERT INTO client_values (tenant_id, client_id, value_hash, created_at, expires_at)
        SELECT tenant_id, id, sha256(id::text::bytea), now(), now() FROM added";
    database.execute(sql, &[&count]).await.unwrap();
}

async fn count(database: &Client, query: &str) -> i64 {
    database.query_one(query, &[]).await.unwrap().get(0)
}

const LEFT: &str = "SELECT count(*) FROM client_values WHERE expires_at IS NOT NULL";

#[tokio::test]
async fn killed_in_the_middle_of_a_batch_a_hundred_times() {
    const KILLS: usize = 100;
    let cluster = Cluster::start();
    run_ok(&sandbox(&cluster.url()), &["migrate"]);
    let database = connect(&cluster.url()).await;
    // Each worker has a role of its own, so that one can see whose transaction is open.
    database
        .batch_execute("CREATE ROLE worker_0 SUPERUSER LOGIN; CREATE ROLE worker_1 SUPERUSER LOGIN")
        .await
        .unwrap();
    let variables = |worker: usize| -> Variables {
        sandbox(
            &cluster
                .url()
                .replace("postgres@", &format!("worker_{worker}@")),
        )
    };
    let mut workers: Vec<Process> = (0..2)
        .map(|worker| Process::spawn(&variables(worker), &["work"]))
        .collect();
    let mut added = 0;
    for kill in 0..KILLS {
        if count(&database, LEFT).await < 5_000 {
            add_items(&database, 10_000).await;
            added += 10_000;
        }
        let worker = kill % 2;
        // It has changed rows and not committed.
        let middle = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE usename = 'worker_{worker}' AND backend_xid IS NOT NULL AND query ILIKE '%INSERT INTO events%'"
        );
        wait_until(
            "a batch is under way",
            Duration::from_secs(20),
            async || count(&database, &middle).await > 0,
        )
        .await;
        workers[worker].kill();
        workers[worker] = Process::spawn(&variables(worker), &["work"]);
    }
    wait_until("all is done", Duration::from_mins(1), async || {
        count(&database, LEFT).await == 0
    })
    .await;
    let events = "SELECT count(*) FROM events WHERE kind = 'client.value_expired'";
    let different =
        "SELECT count(DISTINCT subject_id) FROM events WHERE kind = 'client.value_expired'";
    assert_eq!(
        count(&database, events).await,
        added,
        "one event for each item"
    );
    assert_eq!(count(&database, different).await, added, "no item twice");
    println!("{added} items, {KILLS} kills in the middle of a batch, two workers: every item once");
}

#[tokio::test]
async fn inside_serve_unless_switched_off() {
    let service = Service::start().await;
    let database = service.database.connect().await;
    add_items(&database, 450).await;
    wait_until("all is done", Duration::from_secs(10), async || {
        count(&database, LEFT).await == 0
    })
    .await;
    assert_eq!(
        count(
            &database,
            "SELECT count(*) FROM events WHERE kind = 'client.value_expired'"
        )
        .await,
        450
    );
    let (_, metrics) = service.server.admin("/metrics").await.unwrap();
    assert!(
        metrics.contains(r#"perennial_task_items_total{task="client_values.remove_expired"} 450"#),
        "{metrics}"
    );

    let off = Service::start_with(|variables| {
        variables.insert("PERENNIAL_WORKERS", "0".to_owned());
    })
    .await;
    let database = off.database.connect().await;
    add_items(&database, 1).await;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(count(&database, LEFT).await, 1);
    // Then `work` does it beside it.
    let mut worker = Process::spawn(&off.variables, &["work"]);
    wait_until("all is done", Duration::from_secs(10), async || {
        count(&database, LEFT).await == 0
    })
    .await;
    assert!(worker.stop().await);
}

#[tokio::test]
async fn only_the_expired_are_removed() {
    let service = Service::start().await;
    let (id, value) = service.make_client(&[]);
    let database = service.database.connect().await;
    run_ok(
        &service.variables,
        &["client", "rotate", &id, "--keep-old", "1h"],
    );
    add_items(&database, 3).await;
    wait_until(
        "the expired are removed",
        Duration::from_secs(10),
        async || {
            count(
                &database,
                "SELECT count(*) FROM client_values WHERE expires_at <= now()",
            )
            .await
                == 0
        },
    )
    .await;
    assert_eq!(
        service
            .anonymous()
            .with("client-id", &value)
            .get("/subscription-plans/x")
            .await
            .status,
        404
    );
}

/// SIGTERM in the middle of work: the batch in hand is finished, the next is not begun.
#[tokio::test]
async fn a_stop_finishes_the_batch_in_hand() {
    let database = Database::create().await;
    let client = database.connect().await;
    add_items(&client, 20_000).await;
    let mut worker = Process::spawn(&sandbox(&database.url), &["work"]);
    wait_until("work has begun", Duration::from_secs(10), async || {
        count(&client, LEFT).await < 20_000
    })
    .await;
    assert!(worker.stop().await, "{}", worker.log());
    let left = count(&client, LEFT).await;
    assert!(left > 0, "it stopped before it was done");
    assert_eq!((20_000 - left) % 200, 0, "whole batches");
    assert_eq!(
        count(
            &client,
            "SELECT count(*) FROM events WHERE kind = 'client.value_expired'"
        )
        .await,
        20_000 - left
    );
}

#[tokio::test]
async fn a_lease_has_one_holder_and_runs_out() {
    let database = Database::create().await;
    let address = Address::parse(&database.url.clone().into()).unwrap();
    let engine = Engine::start(&address, Size { pool: 2, lanes: 1 }).unwrap();
    let term = Duration::from_millis(300);
    let first = Lease::take(&engine, "test", term).await.unwrap().unwrap();
    assert!(Lease::take(&engine, "test", term).await.unwrap().is_none());
    for _ in 0..3 {
        tokio::time::sleep(term / 2).await;
        assert!(
            first.renew(&engine, term).await.unwrap(),
            "renewed, it goes on"
        );
        assert!(Lease::take(&engine, "test", term).await.unwrap().is_none());
    }
    // The holder dies: the lease runs out, and another takes it. The dead one's word counts no more.
    tokio::time::sleep(term * 2).await;
    let second = Lease::take(&engine, "test", term).await.unwrap().unwrap();
    assert!(!first.renew(&engine, term).await.unwrap());
    assert!(!first.finish(&engine, Duration::ZERO, true).await.unwrap());
    // Done: not due again before its time.
    assert!(
        second
            .finish(&engine, Duration::from_millis(400), true)
            .await
            .unwrap()
    );
    assert!(Lease::take(&engine, "test", term).await.unwrap().is_none());
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(Lease::take(&engine, "test", term).await.unwrap().is_some());
}

#[tokio::test]
async fn the_months_task_runs_once_for_all_instances() {
    let service = Service::start().await;
    let second = crate::harness::process::Server::start(&service.variables).await;
    let database = service.database.connect().await;
    let done = "SELECT count(*) FROM task_leases WHERE task = 'events.months' AND held_by IS NULL AND failures = 0 AND next_run_at > now() + interval '50 minutes'";
    wait_until("the task is done", Duration::from_secs(10), async || {
        count(&database, done).await == 1
    })
    .await;
    drop(second);
}
