//! Retention: entries are removed in the order of positions, then the partitions with their events are dropped.

use std::time::Duration;

use perennial::events::{log, partitions::maintain_partitions};

use super::log_fixture::*;
use crate::harness::{database::Database, wait_until};

const LIMIT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn retention_removes_entries_before_their_events() {
    let test_database = Database::create().await;
    let admin = test_database.connect().await;
    let database = open(&test_database.url);
    let _sequencer = start_sequencer(&database);
    let at = |text: &str| insert_events(9, 3).replace("now()", &format!("timestamptz '{text}'"));
    admin.batch_execute(&at("2020-01-15Z")).await.unwrap();
    wait_until_numbered(&admin, LIMIT).await;
    // As if they had been recorded then.
    let past = "UPDATE event_log SET recorded_at = at WHERE at < '2021-01-01Z';
        UPDATE event_log_months SET last_recorded_on = month + 14 WHERE month < '2021-01-01';
        SELECT create_partitions('events')";
    admin.batch_execute(past).await.unwrap();
    // Recorded now, with a time in the past: of a month that is too old, and of one that has old entries too.
    admin.batch_execute(&at("2020-02-15Z")).await.unwrap();
    admin.batch_execute(&at("2020-03-15Z")).await.unwrap();
    wait_until_numbered(&admin, LIMIT).await;

    maintain_partitions(&database, 2).await.unwrap();
    let exists = async |month: &str| -> bool {
        let sql = format!("SELECT to_regclass('events_{month}') IS NOT NULL");
        admin.query_one(&sql, &[]).await.unwrap().get(0)
    };
    assert!(!exists("2020_01").await, "all its entries are removed");
    assert!(exists("2020_02").await, "its events were recorded now");
    for number in 0..3 {
        let extent = head(&database, tenant(number)).await;
        assert_eq!((extent.removed_to, extent.last_position), (3, 9));
        // A reader that has read nothing starts with the oldest event that is left.
        let mut connection = database.connection().await.unwrap();
        let all = log::EventFilter::default();
        let page = log::read_after(&mut connection, tenant(number), 0, &all, 100).await;
        let page = page.unwrap();
        assert_eq!(page.events.first().map(|event| event.position), Some(4));
        assert_eq!(
            (page.events.len(), page.read_to, page.removed_to),
            (6, 9, 3)
        );
    }
    assert_log_is_complete(&admin).await;
    // Positions continue after the removed ones.
    admin.batch_execute(&insert_events(3, 3)).await.unwrap();
    wait_until("the log grows", LIMIT, async || {
        head(&database, tenant(0)).await.last_position == 10
    })
    .await;
}

/// Without a sequencer, an old month with an event that has no position stays.
#[tokio::test]
async fn month_with_unnumbered_event_is_kept() {
    let test_database = Database::create().await;
    let admin = test_database.connect().await;
    set_numbered(&admin).await;
    let old = insert_events(1, 1).replace("now()", "timestamptz '2020-01-15Z'");
    admin.batch_execute(&old).await.unwrap();
    let database = open(&test_database.url);
    maintain_partitions(&database, 1).await.unwrap();
    let months = "SELECT count(*) FROM events WHERE at < '2021-01-01Z' AND tableoid = 'events_2020_01'::regclass";
    let count: i64 = admin.query_one(months, &[]).await.unwrap().get(0);
    assert_eq!(count, 1);
}
