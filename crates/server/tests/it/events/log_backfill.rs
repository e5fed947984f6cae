//! Events of earlier versions, which have neither `xact` nor `seq`.

use std::time::Duration;

use super::log_fixture::*;
use crate::harness::{
    cluster::Cluster,
    database::connect,
    process::{Process, run_ok, sandbox},
    wait_until,
};

const EVENTS: u32 = 50_000;

/// Kills the worker after the first batch. The next one continues, and later events follow the old ones.
#[tokio::test]
async fn killed_backfill_continues_in_the_order_of_time() {
    let cluster = Cluster::start();
    let variables = sandbox(&cluster.url());
    run_ok(&variables, &["migrate"]);
    let admin = connect(&cluster.url()).await;
    // In the order of time, not of insertion; some are in the future of a sandbox.
    let old = insert_events(EVENTS, 3)
        .replace(
            "now()",
            "now() + (hashint4(n) % 5000) * interval '1 minute'",
        )
        .replace("(tenant_id,", "(xact, seq, tenant_id,")
        .replace("SELECT lpad", "SELECT NULL, NULL, lpad");
    admin.batch_execute(&old).await.unwrap();
    // Recorded during the upgrade, by an instance of the earlier version on the new schema.
    admin.batch_execute(&insert_events(300, 3)).await.unwrap();
    let count = async |query: &str| -> i64 { admin.query_one(query, &[]).await.unwrap().get(0) };
    let entries = "SELECT count(*) FROM event_log";

    let mut kills = 0;
    for done in [1, 20_001, 40_001] {
        let mut worker = Process::spawn(&variables, &["work"]);
        wait_until("a batch is stored", Duration::from_mins(1), async || {
            count(entries).await >= done
        })
        .await;
        worker.kill();
        kills += 1;
    }
    let _worker = Process::spawn(&variables, &["work"]);
    wait_until_numbered(&admin, Duration::from_mins(1)).await;
    assert_eq!(
        assert_log_is_complete(&admin).await,
        i64::from(EVENTS) + 300 + 1
    );
    let unordered = "SELECT count(*) FROM (
            SELECT (events.at, events.id) < lag((events.at, events.id)) OVER entries AS is_unordered
            FROM event_log JOIN events ON events.id = event_id WHERE xact IS NULL
            WINDOW entries AS (PARTITION BY event_log.tenant_id ORDER BY position)) AS entry WHERE is_unordered";
    assert_eq!(count(unordered).await, 0);
    let new_before_old = "SELECT count(*) FROM (
            SELECT max(position) FILTER (WHERE xact IS NULL) > min(position) FILTER (WHERE xact IS NOT NULL) AS is_mixed
            FROM event_log JOIN events ON events.id = event_id GROUP BY event_log.tenant_id) AS tenant WHERE is_mixed";
    assert_eq!(count(new_before_old).await, 0);
    let future = "SELECT count(*) FROM event_log WHERE recorded_at > now()";
    assert_eq!(count(future).await, 0);
    println!(
        "{EVENTS} events of an earlier version, {kills} kills: each has one position, in the order of time"
    );
}
