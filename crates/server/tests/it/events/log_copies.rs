//! Copies of a database: restored from a dump, or a standby that was promoted without the last commits.
//!
//! A copy starts a new epoch, because readers may have positions that the copy assigns to other events.

use std::{process::Command, time::Duration};

use super::log_fixture::*;
use crate::harness::{
    cluster::Cluster,
    database::{Database, connect},
    process::{run_ok, sandbox},
    wait_until,
};

const LIMIT: Duration = Duration::from_secs(20);

/// Restores a dump of one database into another.
pub fn restore(from: &str, to: &str) {
    let dump = format!("set -o pipefail; pg_dump '{from}' | psql -q -v ON_ERROR_STOP=1 -d '{to}'");
    let output = Command::new("bash").args(["-c", &dump]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

/// Inserts events, and transactions without any, so that the ids of transactions differ between clusters.
async fn insert(url: &str, events: u32) {
    let client = connect(url).await;
    for _ in 0..5 {
        client
            .batch_execute("SELECT pg_current_xact_id()")
            .await
            .unwrap();
    }
    client
        .batch_execute(&insert_events(events, 2))
        .await
        .unwrap();
}

/// Checks the copy at `copy_url` of a database that had a sequencer: `unnumbered` of its events have no position.
async fn assert_copy_is_numbered(original: &LogReader, copy_url: &str) {
    // Recorded before the sequencer of the copy runs.
    insert(copy_url, 10).await;
    let copy = open(copy_url);
    let client = connect(copy_url).await;
    let sequencer = start_sequencer(&copy);
    wait_until_numbered(&client, LIMIT).await;
    assert_log_is_complete(&client).await;
    let epoch = head(&copy, tenant(0)).await.epoch;
    assert_ne!(Some(epoch), original.epoch, "a new epoch");
    // Later events, also those with ids of transactions that the original has used.
    for _ in 0..30 {
        insert(copy_url, 10).await;
    }
    wait_until_numbered(&client, LIMIT).await;
    assert_log_is_complete(&client).await;
    // Another start keeps the epoch.
    drop(sequencer);
    let again = open(copy_url);
    let _sequencer = start_sequencer(&again);
    insert(copy_url, 2).await;
    wait_until_numbered(&client, LIMIT).await;
    assert_eq!(head(&again, tenant(0)).await.epoch, epoch);
    assert_log_is_complete(&client).await;
}

/// Numbers events, stops the sequencer, and inserts events that have no position.
async fn prepare(url: &str) -> LogReader {
    let database = open(url);
    let sequencer = start_sequencer(&database);
    let client = connect(url).await;
    insert(url, 40).await;
    wait_until_numbered(&client, LIMIT).await;
    let mut reader = LogReader::new(tenant(0));
    reader.read(&database).await.unwrap();
    assert_eq!(reader.position, 20);
    drop(sequencer);
    // The sequencer has stopped when its session is idle.
    tokio::time::sleep(Duration::from_millis(300)).await;
    insert(url, 6).await;
    reader
}

#[tokio::test]
async fn database_restored_into_another_cluster_starts_an_epoch() {
    // Their transaction ids are lower than those of the shared server, or higher.
    let (young, other) = (Cluster::start(), Cluster::start());
    run_ok(&sandbox(&young.url()), &["migrate"]);
    let original = prepare(&young.url()).await;
    let busy = connect(&other.url()).await;
    for _ in 0..50 {
        busy.batch_execute("SELECT pg_current_xact_id()")
            .await
            .unwrap();
    }
    restore(&young.url(), &other.url());
    assert_copy_is_numbered(&original, &other.url()).await;

    // And back, from the higher ids to lower ones.
    let client = connect(&young.url()).await;
    client
        .batch_execute("CREATE DATABASE returned")
        .await
        .unwrap();
    let returned = url_of("returned", &young.url());
    let database = open(&other.url());
    let mut reader = LogReader::new(tenant(0));
    reader.read(&database).await.unwrap();
    insert(&other.url(), 4).await;
    restore(&other.url(), &returned);
    assert_copy_is_numbered(&reader, &returned).await;
}

#[tokio::test]
async fn database_restored_into_the_same_cluster_starts_an_epoch() {
    let (database, copy) = (Database::create().await, Database::empty().await);
    let original = prepare(&database.url).await;
    restore(&database.url, &copy.url);
    assert_copy_is_numbered(&original, &copy.url).await;
    // The original continues in its epoch.
    let here = open(&database.url);
    let _sequencer = start_sequencer(&here);
    let client = database.connect().await;
    wait_until_numbered(&client, LIMIT).await;
    assert_eq!(Some(head(&here, tenant(0)).await.epoch), original.epoch);
    assert_log_is_complete(&client).await;
}

/// A clone without positions has no history that a reader could know.
#[tokio::test]
async fn clone_of_an_unused_database_keeps_its_epoch() {
    let (database, other) = (Database::create().await, Database::create().await);
    let (first, second) = (open(&database.url), open(&other.url));
    let before = head(&second, tenant(0)).await.epoch;
    assert_eq!(head(&first, tenant(0)).await.epoch, before);
    let _sequencer = start_sequencer(&second);
    wait_until_numbered(&other.connect().await, LIMIT).await;
    assert_eq!(head(&second, tenant(0)).await.epoch, before);
}

/// A standby that has not received the last commits is promoted. Positions that readers have are assigned to other
/// events, in another epoch.
#[tokio::test]
async fn failover_with_lost_commits_starts_an_epoch() {
    let primary = Cluster::start();
    run_ok(&sandbox(&primary.url()), &["migrate"]);
    let mut reader = prepare(&primary.url()).await;
    let standby = primary.copy();
    // Numbered and read on the primary, then lost.
    let database = open(&primary.url());
    let sequencer = start_sequencer(&database);
    insert(&primary.url(), 20).await;
    wait_until_numbered(&connect(&primary.url()).await, LIMIT).await;
    reader.read(&database).await.unwrap();
    assert_eq!(reader.position, 33);
    drop(sequencer);
    primary.stop();

    standby.promote().await;
    let promoted = open(&standby.url());
    wait_until("the standby accepts writes", LIMIT, async || {
        let client = connect(&standby.url()).await;
        client.batch_execute("CREATE TABLE t ()").await.is_ok()
    })
    .await;
    assert_eq!(head(&promoted, tenant(0)).await.last_position, 20);
    assert_copy_is_numbered(&reader, &standby.url()).await;
}
