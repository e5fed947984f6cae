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

/// Sessions that ended a day ago or are too old to live go, and so do keys that were refused a month ago; others stay.
#[tokio::test]
async fn dead_sessions_and_keys_are_removed() {
    let service = Service::start().await;
    let server = service.caller(&[]);
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
        "what is dead is gone",
        Duration::from_secs(20),
        async || {
            count(&database, "SELECT count(*) FROM sessions").await == 3
                && count(&database, "SELECT count(*) FROM signing_keys").await == 2
        },
    )
    .await;
    assert_eq!(server.refresh(tokens.refresh()).await.status, 200);
}

/// SIGTERM in the middle of work: the batch in hand is finished, the next is not begun.
#[tokio::test]
async fn a_stop_finishes_the_batch_in_hand() {
    let database = Database::create().await;
    let client = database.connect().await;
    add_items(&client, 1_000).await;
    // Events cannot be written, so the first batch stands still in its middle.
    let mut locker = database.connect().await;
    let lock = locker.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE events IN SHARE ROW EXCLUSIVE MODE")
        .await
        .unwrap();
    let mut worker = Process::spawn(&sandbox(&database.url), &["work"]);
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND wait_event_type = 'Lock' AND backend_xid IS NOT NULL";
    wait_until(
        "a batch is under way",
        Duration::from_secs(10),
        async || count(&client, waiting).await > 0,
    )
    .await;
    let (stopped, ()) = tokio::join!(worker.stop(), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        lock.rollback().await.unwrap();
    });
    assert!(stopped, "{}", worker.log());
    assert_eq!(count(&client, LEFT).await, 800, "one batch, whole");
    let events = "SELECT count(*) FROM events WHERE kind = 'client.value_expired'";
    assert_eq!(count(&client, events).await, 200);
}

#[tokio::test]
async fn a_lease_has_one_holder_and_runs_out() {
    let database = Database::create().await;
    let address = Address::parse(&database.url.clone().into()).unwrap();
    let engine = Engine::start("home", &address, Size { pool: 2, lanes: 1 }).unwrap();
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
    assert!(!first.finish(&engine, Duration::ZERO).await.unwrap());
    // Done: not due again before its time.
    assert!(
        second
            .finish(&engine, Duration::from_millis(400))
            .await
            .unwrap()
    );
    assert!(Lease::take(&engine, "test", term).await.unwrap().is_none());
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(Lease::take(&engine, "test", term).await.unwrap().is_some());
}

/// Two instances: the task is done by one of them, and by neither again before it is due.
#[tokio::test]
async fn a_leased_task_is_done_once_for_all_instances() {
    let service = Service::start().await;
    let second = crate::harness::process::Server::start(&service.variables).await;
    let database = service.database.connect().await;
    let next = "SELECT extract(epoch FROM next_run_at)::bigint FROM task_leases
        WHERE task = 'events.months' AND held_by IS NULL AND failures = 0 AND next_run_at > now() + interval '50 minutes'";
    wait_until("the task is done", Duration::from_secs(10), async || {
        database.query_opt(next, &[]).await.unwrap().is_some()
    })
    .await;
    let due = count(&database, next).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(count(&database, next).await, due, "nobody did it again");
    drop(second);
}

/// A task that fails is tried again after longer and longer pauses, and says so in the table.
#[tokio::test]
async fn a_failed_task_waits_longer_each_time() {
    let database = Database::create().await;
    let client = database.connect().await;
    let address = Address::parse(&database.url.clone().into()).unwrap();
    let engine = Engine::start("home", &address, Size { pool: 2, lanes: 1 }).unwrap();
    let mut pauses = Vec::new();
    for failures in 1..=9 {
        let lease = Lease::take(&engine, "test", Duration::from_secs(5))
            .await
            .unwrap()
            .unwrap();
        assert!(lease.fail(&engine).await.unwrap());
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
