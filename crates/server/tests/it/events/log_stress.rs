//! Writers, readers and killed sequencers on one event log: no event is missed, repeated or out of order.
//!
//! `EVENT_LOG_SECONDS` sets how long it runs; `just prove sequencer-kills` uses 180.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

use super::log_fixture::*;
use crate::harness::{
    cluster::Cluster,
    database::connect,
    env_number,
    process::{Process, run_ok, sandbox},
};

const WRITERS: u32 = 24;
const TENANTS: u32 = 3;
/// The number of records that writers change.
const SUBJECTS: u32 = 12;

/// Connects while the server may be restarting.
async fn try_connect(url: &str) -> Option<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.ok()?;
    tokio::spawn(connection);
    Some(client)
}

/// A pseudorandom number below `limit`.
fn random(state: &mut u64, limit: u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % limit
}

/// One change of a record with its event: the record's row is locked, counted up, and the event has the number.
async fn change(
    client: &Client,
    state: &mut u64,
    clock_ahead: u32,
) -> Result<Option<Uuid>, tokio_postgres::Error> {
    let subject = random(state, u64::from(SUBJECTS));
    client.batch_execute("BEGIN").await?;
    // A transaction id that is assigned long before the event is recorded.
    if random(state, 4) == 0 {
        client.batch_execute("SELECT pg_current_xact_id()").await?;
        tokio::time::sleep(Duration::from_millis(random(state, 30))).await;
    }
    let lock = format!("UPDATE subjects SET n = n + 1 WHERE id = {subject}");
    client.batch_execute(&lock).await?;
    // The time of a late transition, or that of a sandbox whose clock is ahead.
    let at = match random(state, 3) {
        0 => format!("now() - interval '1 minute' * {}", random(state, 100_000)),
        1 => format!("now() + interval '1 hour' * {clock_ahead}"),
        _ => "now()".to_owned(),
    };
    let insert = format!(
        "INSERT INTO events (tenant_id, at, id, kind, subject_id, data)
         SELECT lpad(to_hex(id % {TENANTS} + 1), 32, '0')::uuid, {at}, gen_random_uuid(), 'plan.updated',
            md5(id::text)::uuid, jsonb_build_object('n', n) FROM subjects WHERE id = {subject} RETURNING id"
    );
    let id = client.query_one(&insert, &[]).await?.get(0);
    match random(state, 40) {
        // Open for long.
        0 => tokio::time::sleep(Duration::from_millis(400 + random(state, 800))).await,
        1..10 => tokio::time::sleep(Duration::from_millis(random(state, 20))).await,
        _ => {}
    }
    if random(state, 10) == 0 {
        client.batch_execute("ROLLBACK").await?;
        return Ok(None);
    }
    client.batch_execute("COMMIT").await?;
    Ok(Some(id))
}

/// Changes records until `stop`. Returns the acknowledged events.
fn spawn_writer(
    url: &str,
    number: u32,
    stop: Arc<AtomicBool>,
    clock_ahead: Arc<AtomicU32>,
) -> JoinHandle<Vec<Uuid>> {
    let url = url.to_owned();
    tokio::spawn(async move {
        let mut state = u64::from(number) + 1;
        let mut acknowledged = Vec::new();
        let mut connection: Option<Client> = None;
        while !stop.load(Ordering::Relaxed) {
            let Some(client) = &connection else {
                connection = try_connect(&url).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            match change(client, &mut state, clock_ahead.load(Ordering::Relaxed)).await {
                Ok(id) => acknowledged.extend(id),
                // Restarted, or a partition was attached for the time of the event.
                Err(_) => connection = None,
            }
            tokio::time::sleep(Duration::from_millis(10 + random(&mut state, 20))).await;
        }
        acknowledged
    })
}

/// Keeps transactions open in another database of the cluster until `stop`. Returns their number.
fn spawn_other_database(url: String, stop: Arc<AtomicBool>) -> JoinHandle<u32> {
    tokio::spawn(async move {
        let mut opened = 0;
        while !stop.load(Ordering::Relaxed) {
            let client = try_connect(&url).await;
            if let Some(client) = &client {
                let open = "BEGIN; CREATE TABLE t (); SELECT pg_current_xact_id()";
                opened += u32::from(client.batch_execute(open).await.is_ok());
            }
            tokio::time::sleep(Duration::from_millis(1_500)).await;
        }
        opened
    })
}

/// The events that a reader has found, in order of their positions.
struct ReadLog {
    reader: LogReader,
    /// The last number by record.
    numbers: BTreeMap<Uuid, i64>,
    out_of_order: u32,
}

impl ReadLog {
    async fn read(&mut self, database: &perennial::db::CellDatabase) {
        // Fails while the server restarts, and continues at the same position.
        let Ok(events) = self.reader.read(database).await else {
            return;
        };
        for event in events {
            let data: serde_json::Value = serde_json::from_str(event.data.get()).unwrap();
            let number = data["n"].as_i64().unwrap();
            let before = self.numbers.insert(event.subject, number);
            self.out_of_order += u32::from(before.is_some_and(|before| before >= number));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_miss_no_event_while_sequencers_are_killed() {
    let seconds: u32 = env_number("EVENT_LOG_SECONDS").unwrap_or(8);
    let cluster = Cluster::start();
    let url = cluster.url();
    let variables = sandbox(&url);
    run_ok(&variables, &["migrate"]);
    let admin = connect(&url).await;
    let prepare = format!(
        "CREATE TABLE subjects AS SELECT id, 0 AS n FROM generate_series(0, {SUBJECTS} - 1) AS id;
         ALTER TABLE subjects ADD PRIMARY KEY (id)"
    );
    admin.batch_execute(&prepare).await.unwrap();
    admin.batch_execute("CREATE DATABASE other").await.unwrap();
    drop(admin);

    let stop = Arc::new(AtomicBool::new(false));
    let clock_ahead = Arc::new(AtomicU32::new(0));
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| spawn_writer(&url, number, stop.clone(), clock_ahead.clone()))
        .collect();
    let other = spawn_other_database(url_of("other", &url), stop.clone());
    let database = open(&url);
    let mut logs: Vec<ReadLog> = (0..TENANTS)
        .map(|number| ReadLog {
            reader: LogReader::new(tenant(number)),
            numbers: BTreeMap::new(),
            out_of_order: 0,
        })
        .collect();

    let mut workers = [(); 2].map(|()| Process::spawn(&variables, &["work"]));
    let started = Instant::now();
    let (mut kills, mut restarts) = (0, 0);
    while started.elapsed() < Duration::from_secs(seconds.into()) {
        for log in &mut logs {
            log.read(&database).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        let elapsed = started.elapsed();
        clock_ahead.store(elapsed.as_secs() as u32 * 24, Ordering::Relaxed);
        if elapsed.as_secs() > kills {
            let killed = &mut workers[kills as usize % 2];
            killed.kill();
            *killed = Process::spawn(&variables, &["work"]);
            kills += 1;
        }
        if restarts < 2 && elapsed > Duration::from_secs(seconds.into()) * (restarts + 1) / 3 {
            cluster.stop();
            cluster.resume();
            restarts += 1;
        }
    }
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = BTreeSet::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    let opened = other.await.unwrap();

    let admin = connect(&url).await;
    wait_until_numbered(&admin, Duration::from_secs(30)).await;
    for log in &mut logs {
        log.read(&database).await;
    }
    let committed = admin
        .query("SELECT id FROM events WHERE kind = 'plan.updated'", &[])
        .await;
    let committed: BTreeSet<Uuid> = committed.unwrap().iter().map(|row| row.get(0)).collect();
    let read: BTreeSet<Uuid> = { logs.iter() }
        .flat_map(|log| log.reader.read.keys().copied())
        .collect();
    let out_of_order: u32 = logs.iter().map(|log| log.out_of_order).sum();
    println!(
        "{} events in {seconds} s, {WRITERS} writers, {kills} killed sequencers, {restarts} restarts of the database: \
         {} missed, {out_of_order} out of order",
        committed.len(),
        committed.difference(&read).count(),
    );
    assert_eq!(read, committed, "missed events");
    assert!(acknowledged.is_subset(&read), "missed acknowledged events");
    assert_eq!(out_of_order, 0);
    assert_log_is_complete(&admin).await;
    assert!(committed.len() > 20 * seconds as usize && restarts == 2 && opened > 0);
}
