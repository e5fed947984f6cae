//! Background tasks: batches, leases and housekeeping.

use std::time::Duration;

use perennial::{
    db::{CellDatabase, ConnectOptions, ConnectionLimits},
    work::Lease,
};
use tokio_postgres::Client;

use crate::harness::{
    cluster::Cluster,
    database::{Database, connect},
    process::{Process, Server, Variables, run_ok, sandbox},
    service::Service,
    wait_until,
};

/// Inserts clients with an expired value each, which housekeeping removes.
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

const EXPIRED_VALUES: &str = "SELECT count(*) FROM client_values WHERE expires_at IS NOT NULL";

#[tokio::test]
async fn workers_killed_mid_batch_process_every_item_once() {
    const KILLS: usize = 100;
    let cluster = Cluster::start();
    run_ok(&sandbox(&cluster.url()), &["migrate"]);
    let database = connect(&cluster.url()).await;
    // Each worker has its own role, which shows whose transaction is open.
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
        if count(&database, EXPIRED_VALUES).await < 5_000 {
            add_items(&database, 10_000).await;
            added += 10_000;
        }
        let worker = kill % 2;
        // The worker has changed rows but not committed.
        let middle = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE usename = 'worker_{worker}' AND backend_xid IS NOT NULL AND query ILIKE '%INSERT INTO events%'"
        );
        wait_until("a batch is running", Duration::from_secs(20), async || {
            count(&database, &middle).await > 0
        })
        .await;
        workers[worker].kill();
        workers[worker] = Process::spawn(&variables(worker), &["work"]);
    }
    wait_until(
        "all items are processed",
        Duration::from_mins(1),
        async || count(&database, EXPIRED_VALUES).await == 0,
    )
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
async fn serve_runs_tasks_unless_workers_are_disabled() {
    let service = Service::start().await;
    let database = service.database.connect().await;
    add_items(&database, 450).await;
    wait_until(
        "all items are processed",
        Duration::from_secs(10),
        async || count(&database, EXPIRED_VALUES).await == 0,
    )
    .await;
    assert_eq!(
        count(
            &database,
            "SELECT count(*) FROM events WHERE kind = 'client.value_expired'"
        )
        .await,
        450
    );
    // The metric follows the commit.
    let series = r#"perennial_task_items_total{task="client_values.delete_expired"}"#;
    wait_until(
        "all items are counted",
        Duration::from_secs(5),
        async || service.server.metric(series).await == Some(450.0),
    )
    .await;

    let off = Service::start_with(|variables| {
        variables.insert("PERENNIAL_WORKERS", "0".to_owned());
    })
    .await;
    let database = off.database.connect().await;
    add_items(&database, 1).await;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(count(&database, EXPIRED_VALUES).await, 1);
    // `perennial work` processes it instead.
    let mut worker = Process::spawn(&off.variables, &["work"]);
    wait_until(
        "all items are processed",
        Duration::from_secs(10),
        async || count(&database, EXPIRED_VALUES).await == 0,
    )
    .await;
    assert!(worker.stop().await);
}

#[tokio::test]
async fn only_expired_client_values_are_removed() {
    let service = Service::start().await;
    let (id, value) = service.create_client(&[]);
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

/// Sessions that ended a day ago or are older than 30 days, and keys that were rejected a month ago.
#[tokio::test]
async fn ended_sessions_and_old_keys_are_removed() {
    let service = Service::start().await;
    let server = service.api(&[]);
    let database = service.database.connect().await;
    let tokens = server.sign_up("ada@example.com").await;
    for change in [
        "ended_at = now() - interval '25 hours'",
        "created_at = now() - interval '31 days'",
        "ended_at = now()",
        "expires_at = now()",
    ] {
        let session = server.sign_in("ada@example.com").await;
        let id = session.session().trim_start_matches("ses_");
        let change = format!("UPDATE sessions SET {change} WHERE id = '{id}'");
        database.execute(&change, &[]).await.unwrap();
    }
    run_ok(&service.variables, &["keys", "rotate", "--refuse-old"]);
    run_ok(&service.variables, &["keys", "rotate", "--after", "0"]);
    database.execute("UPDATE signing_keys SET accepted_until = accepted_until - interval '31 days' WHERE accepted_until < now()", &[]).await.unwrap();
    wait_until(
        "the sessions and keys are removed",
        Duration::from_secs(20),
        async || {
            count(&database, "SELECT count(*) FROM sessions").await == 3
                && count(&database, "SELECT count(*) FROM signing_keys").await == 2
        },
    )
    .await;
    assert_eq!(server.refresh(tokens.refresh()).await.status, 200);
}

/// After SIGTERM, the current batch is finished and no other is started.
#[tokio::test]
async fn stopping_worker_finishes_its_batch() {
    let database = Database::create().await;
    let client = database.connect().await;
    add_items(&client, 1_000).await;
    // The lock prevents events, so that the first batch blocks.
    let mut locker = database.connect().await;
    let lock = locker.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE events IN SHARE ROW EXCLUSIVE MODE")
        .await
        .unwrap();
    let mut worker = Process::spawn(&sandbox(&database.url), &["work"]);
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND wait_event_type = 'Lock' AND backend_xid IS NOT NULL";
    wait_until("a batch is running", Duration::from_secs(10), async || {
        count(&client, waiting).await > 0
    })
    .await;
    let (stopped, ()) = tokio::join!(worker.stop(), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        lock.rollback().await.unwrap();
    });
    assert!(stopped, "{}", worker.log());
    assert_eq!(count(&client, EXPIRED_VALUES).await, 800, "one whole batch");
    let events = "SELECT count(*) FROM events WHERE kind = 'client.value_expired'";
    assert_eq!(count(&client, events).await, 200);
}

#[tokio::test]
async fn lease_has_one_holder_and_expires() {
    let database = Database::create().await;
    let address = ConnectOptions::parse(&database.url.clone().into()).unwrap();
    let cell = CellDatabase::start(
        "home",
        &address,
        ConnectionLimits {
            pool: 2,
            pipelined: 1,
        },
    )
    .unwrap();
    let term = Duration::from_millis(300);
    let first = Lease::acquire(&cell, "test", term).await.unwrap().unwrap();
    assert!(Lease::acquire(&cell, "test", term).await.unwrap().is_none());
    for _ in 0..3 {
        tokio::time::sleep(term / 2).await;
        assert!(
            first.renew(&cell, term).await.unwrap(),
            "the holder can renew it"
        );
        assert!(Lease::acquire(&cell, "test", term).await.unwrap().is_none());
    }
    // After the lease has expired, another holder takes it, and the first cannot renew or finish it.
    tokio::time::sleep(term * 2).await;
    let second = Lease::acquire(&cell, "test", term).await.unwrap().unwrap();
    assert!(!first.renew(&cell, term).await.unwrap());
    assert!(!first.complete(&cell, Duration::ZERO).await.unwrap());
    // A finished task is not due before its next run.
    assert!(
        second
            .complete(&cell, Duration::from_millis(400))
            .await
            .unwrap()
    );
    assert!(Lease::acquire(&cell, "test", term).await.unwrap().is_none());
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(Lease::acquire(&cell, "test", term).await.unwrap().is_some());
}

/// With two instances, neither repeats the task before it is due.
#[tokio::test]
async fn leased_task_runs_on_one_instance() {
    let service = Service::start().await;
    let second = Server::start(&service.variables).await;
    let database = service.database.connect().await;
    let next = "SELECT extract(epoch FROM next_run_at)::bigint FROM task_leases
        WHERE task = 'events.maintain_partitions' AND held_by IS NULL AND failures = 0 AND next_run_at > now() + interval '50 minutes'";
    wait_until("the task has run", Duration::from_secs(10), async || {
        database.query_opt(next, &[]).await.unwrap().is_some()
    })
    .await;
    let due = count(&database, next).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(
        count(&database, next).await,
        due,
        "the task was not repeated"
    );
    drop(second);
}

/// The pauses double up to ten minutes.
#[tokio::test]
async fn failed_task_is_retried_with_backoff() {
    let database = Database::create().await;
    let client = database.connect().await;
    let address = ConnectOptions::parse(&database.url.clone().into()).unwrap();
    let cell = CellDatabase::start(
        "home",
        &address,
        ConnectionLimits {
            pool: 2,
            pipelined: 1,
        },
    )
    .unwrap();
    let mut pauses = Vec::new();
    for failures in 1..=9 {
        let lease = Lease::acquire(&cell, "test", Duration::from_secs(5))
            .await
            .unwrap()
            .unwrap();
        assert!(lease.fail(&cell).await.unwrap());
        let row = client
            .query_one("SELECT failures, round(extract(epoch FROM next_run_at - now()))::bigint FROM task_leases", &[])
            .await
            .unwrap();
        assert_eq!(row.get::<_, i32>(0), failures);
        pauses.push(row.get::<_, i64>(1));
        client
            .batch_execute("UPDATE task_leases SET next_run_at = now()")
            .await
            .unwrap();
    }
    assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 600, 600]);
}
