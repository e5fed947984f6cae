//! Workers under stress: killed repeatedly, or with many transitions due in one second.
//!
//! `SECONDS_OF_KILLING` sets how long workers are killed (`just prove worker-kills` uses 300). `DUE` sets
//! how many transitions are due within one second (`just prove due-transitions` uses 100,000 and a release build, and
//! checks the speed).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_postgres::Client;

use crate::harness::{
    client::create_client,
    cluster::Cluster,
    database::connect,
    env_number,
    process::{Process, Server, Variables, run_ok, sandbox},
    raw_connection::send_at_rate,
    wait_until,
};

/// Prepares a managed tenant, a user and a plan, and a server without workers.
async fn start(cluster: &Cluster) -> (Variables, Server, Client) {
    let mut variables = sandbox(&cluster.url());
    variables.insert("PERENNIAL_WORKERS", "0".to_owned());
    let server = Server::start(&variables).await;
    run_ok(&variables, &["tenant", "set", "--lifecycle", "managed"]);
    let database = connect(&cluster.url()).await;
    database
        .batch_execute(
            "UPDATE tenants SET lifecycle_since = now() - interval '1 year';
             INSERT INTO users (tenant_id, id, email, email_key, created_at, updated_at)
             SELECT tenant_id, md5('user')::uuid, 'a@example.com', 'a@example.com', now(), now() FROM tenants;
             INSERT INTO subscription_plans (tenant_id, id, slug, name, price_minor, currency, billing_cycle,
                variants, node_quota, most_popular, tier, is_active, created_at, updated_at)
             SELECT tenant_id, md5('plan')::uuid, 'pro', 'Pro', 2000, 'USD', 'monthly', '{}', 0, false, 0, true, now(),
                now() FROM tenants;",
        )
        .await
        .unwrap();
    (variables, server, database)
}

/// Inserts subscriptions that are due one after the other `within` a time. Half of them have credit for one
/// period.
async fn insert_subscriptions(database: &Client, count: u32, within: Duration) {
    let sql = format!(
        "INSERT INTO subscriptions (tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle,
            billing_cycle, status, suspended, starts_at, renews_at, anchor, credit_minor, period_starts_at, period_ends_at,
            period_cycle, period_cost_minor, period_given_minor, period_waived_minor, managed_since, due_at,
            created_at, updated_at)
         SELECT tenant_id, md5('sub' || n)::uuid, md5('user')::uuid, md5('plan')::uuid, 2000, 'USD', 'monthly', 'monthly',
            'active', false, started, due, due, n % 2 * 2000, started, due, 'monthly', 2000, 0, 0, lifecycle_since,
            due, started, started
         FROM tenants, generate_series(1, {count}) AS n,
            LATERAL (SELECT now() + n * interval '1 second' * {seconds} / {count} AS due) AS times,
            LATERAL (SELECT due - interval '20 days' AS started) AS start;
         ANALYZE subscriptions",
        seconds = within.as_secs_f64()
    );
    database.batch_execute(&sql).await.unwrap();
}

async fn count(database: &Client, query: &str) -> i64 {
    database.query_one(query, &[]).await.unwrap().get(0)
}

const DUE: &str = "SELECT count(*) FROM subscriptions WHERE status = 'active' AND renews_at <= now() + interval '1 hour'";

/// Whether any transition is due; cheaper than counting them.
async fn anything_due(database: &Client) -> bool {
    let sql = "SELECT EXISTS (SELECT FROM subscriptions, tenants WHERE subscriptions.tenant_id = tenants.tenant_id
        AND status <> 'expired' AND deleted_at IS NULL AND external_id IS NULL
        AND due_at <= now() + interval '1 hour')";
    database.query_one(sql, &[]).await.unwrap().get(0)
}

/// Asserts that each subscription had one transition, with one event, and one ledger entry if it renewed.
async fn assert_one_transition_each(database: &Client, all: u32) {
    let all = i64::from(all);
    let renewed = "SELECT count(*) FROM subscriptions WHERE status = 'active' AND credit_minor = 0
        AND renews_at = anchor + interval '1 month' AND due_at = renews_at
        AND updated_at = anchor";
    let past_due = "SELECT count(*) FROM subscriptions WHERE status = 'past_due' AND credit_minor = 0 AND renews_at = anchor
        AND late_since = anchor AND updated_at = anchor";
    assert_eq!(count(database, renewed).await, all / 2);
    assert_eq!(count(database, past_due).await, all - all / 2);
    for kind in ["renewed", "past_due"] {
        let events = format!(
            "SELECT count(DISTINCT subject_id) FROM events WHERE kind = 'subscription.{kind}'"
        );
        let once = format!("SELECT count(*) FROM events WHERE kind = 'subscription.{kind}'");
        let expected = if kind == "renewed" {
            all / 2
        } else {
            all - all / 2
        };
        assert_eq!(count(database, &events).await, expected, "{kind}");
        assert_eq!(count(database, &once).await, expected, "{kind}");
    }
    let charged = "SELECT count(DISTINCT subscription_id) FROM ledger_entries WHERE type = 'period' AND amount_minor = -2000
        AND credit_after_minor = 0 AND period_starts_at = created_at";
    assert_eq!(count(database, charged).await, all / 2);
    let entries = "SELECT count(*) FROM ledger_entries";
    assert_eq!(count(database, entries).await, all / 2);
}

/// Kills one of five workers every second and restarts the database twice.
#[tokio::test]
async fn killed_workers_apply_each_transition_once() {
    let seconds = env_number("SECONDS_OF_KILLING").unwrap_or(12);
    let all = seconds * 300;
    let cluster = Cluster::start();
    let (variables, _server, database) = start(&cluster).await;
    insert_subscriptions(&database, all, Duration::from_secs(u64::from(seconds))).await;
    drop(database);
    let mut workers: Vec<Process> = (0..5)
        .map(|_| Process::spawn(&variables, &["work"]))
        .collect();
    for second in 0..seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let index = usize::try_from(second).unwrap() % workers.len();
        workers[index].kill();
        workers[index] = Process::spawn(&variables, &["work"]);
        if second == seconds / 3 || second == seconds * 2 / 3 {
            cluster.stop();
            cluster.resume();
        }
    }
    let database = connect(&cluster.url()).await;
    wait_until("nothing is due", Duration::from_mins(1), async || {
        count(&database, DUE).await == 0
    })
    .await;
    drop(workers);
    assert_one_transition_each(&database, all).await;
    println!(
        "{all} transitions, each applied once, with a worker killed every second for {seconds} s"
    );
}

/// One worker applies all transitions while reads continue.
#[tokio::test]
async fn transitions_due_at_once_do_not_slow_reads() {
    let timed = env_number::<u32>("DUE");
    let all = timed.unwrap_or(3_000);
    let (rate, time) = if timed.is_some() { (500, 15) } else { (50, 2) };
    let time = Duration::from_secs(time);
    let cluster = Cluster::start_for_measurement();
    let (variables, server, database) = start(&cluster).await;
    insert_subscriptions(&database, all, Duration::from_secs(1)).await;
    let (_, client) = create_client(&cluster.url(), &[]);
    let rows = database
        .query(
            "SELECT replace(id::text, '-', '') FROM subscriptions ORDER BY random() LIMIT 1000",
            &[],
        )
        .await
        .unwrap();
    let requests = rows.iter().map(|row| {
        let id: String = row.get(0);
        format!("GET /subscriptions/sub_{id} HTTP/1.1\r\nhost: x\r\nclient-id: {client}\r\n\r\n")
            .into_bytes()
    });
    let requests = Arc::new(requests.collect::<Vec<_>>());
    send_at_rate(&server.url, &requests, rate, time / 4).await;
    let (half, before) = send_at_rate(&server.url, &requests, rate, time).await;
    println!("idle: p50 {half:.2?}, p99 {before:.2?}");

    let started = Instant::now();
    let worker = Process::spawn(&variables, &["work"]);
    let applied = async {
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            if !anything_due(&database).await {
                return started.elapsed();
            }
        }
    };
    let (took, (half, during)) =
        tokio::join!(applied, send_at_rate(&server.url, &requests, rate, time));
    let speed = f64::from(all) / took.as_secs_f64();
    let ratio = during.as_secs_f64() / before.as_secs_f64();
    println!("{all} transitions in {took:.1?}: {speed:.0}/s");
    println!("meanwhile: p50 {half:.2?}, p99 {during:.2?}: {ratio:.2} times as long");
    drop(worker);
    assert_one_transition_each(&database, all).await;
    if timed.is_some() {
        assert!(speed >= 1_500.0, "{speed}/s");
        assert!(ratio < 3.0, "{ratio}");
    }
    drop(cluster);
}
