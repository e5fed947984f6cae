//! The roll-up takes each revenue state once: from events, in pages, with open transactions, and in copies of a database.

use jiff::{Timestamp, ToSpan};
use perennial::{db::CellDatabase, events::partitions::maintain_partitions};
use tokio_postgres::Client;

use crate::{
    events::{log_copies::restore, log_fixture::*},
    harness::{
        cluster::Cluster,
        database::{Database, connect},
        process::{run_ok, sandbox},
    },
};

/// An INSERT of events with states of different users, `later` after now.
fn insert_states(count: u32, later: &str) -> String {
    format!(
        "INSERT INTO events (tenant_id, at, id, kind, subject_id, data, revenue_state)
         SELECT lpad('1', 32, '0')::uuid, now() + interval '{later}', gen_random_uuid(), 'subscription.updated', gen_random_uuid(),
            '{{}}', md5(random()::text) || ' ' || md5('plan') || ' monthly USD active recurring false false 12000'
         FROM generate_series(1, {count})"
    )
}

/// Rolls up once, with pages of two events, and returns how many states and events were read.
async fn roll_up_page(database: &CellDatabase, now: Timestamp) -> usize {
    let mut connection = database.connection().await.unwrap();
    let tx = connection.begin();
    let count = perennial::reports::roll_up(&tx, now, 2).await.unwrap();
    tx.commit().await.unwrap();
    count
}

async fn roll_up(database: &CellDatabase) {
    while roll_up_page(database, Timestamp::now()).await > 0 {}
}

async fn count(client: &Client, sql: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {sql}");
    client.query_one(&sql, &[]).await.unwrap().get(0)
}

/// Asserts how many states the sums contain, and that they contain each one that took effect.
async fn assert_all_taken(client: &Client, expected: i64) {
    let due = "all_pending_revenue_changes WHERE at <= now()";
    assert_eq!(count(client, due).await, 0, "states that are not taken");
    let taken = "revenue_changes JOIN events USING (tenant_id, seq)
        WHERE subscription_id = subject_id AND revenue_changes.at = events.at";
    assert_eq!(count(client, taken).await, expected);
    assert_eq!(count(client, "revenue_changes").await, expected);
}

#[tokio::test]
async fn states_in_events_are_taken_once_in_pages_beside_open_transactions() {
    let shared = Database::create().await;
    let database = open(&shared.url);
    let client = shared.connect().await;
    let (mut early, mut late) = (shared.connect().await, shared.connect().await);
    let early = early.transaction().await.unwrap();
    early.execute(&insert_states(3, "0"), &[]).await.unwrap();
    let late = late.transaction().await.unwrap();
    late.execute("SELECT pg_current_xact_id()", &[])
        .await
        .unwrap();
    for _ in 0..7 {
        client.execute(&insert_states(1, "0"), &[]).await.unwrap();
        client.execute(&insert_events(1, 1), &[]).await.unwrap();
    }
    // More than a page in one transaction.
    client.execute(&insert_states(5, "0"), &[]).await.unwrap();
    let pending = "all_pending_revenue_changes";
    assert_eq!(count(&client, pending).await, 12);
    assert_eq!(roll_up_page(&database, Timestamp::now()).await, 2);
    assert!((10..12).contains(&count(&client, pending).await));
    roll_up(&database).await;
    assert_all_taken(&client, 12).await;

    // Ends between two pages.
    client.execute(&insert_states(1, "0"), &[]).await.unwrap();
    client.execute(&insert_states(1, "0"), &[]).await.unwrap();
    client.execute(&insert_states(1, "0"), &[]).await.unwrap();
    assert_eq!(roll_up_page(&database, Timestamp::now()).await, 2);
    early.commit().await.unwrap();
    late.execute(&insert_states(4, "0"), &[]).await.unwrap();
    roll_up(&database).await;
    assert_all_taken(&client, 18).await;
    late.commit().await.unwrap();
    assert_eq!(count(&client, pending).await, 4);
    roll_up(&database).await;
    assert_all_taken(&client, 22).await;
}

#[tokio::test]
async fn state_that_has_not_taken_effect_waits() {
    let shared = Database::create().await;
    let database = open(&shared.url);
    let client = shared.connect().await;
    let insert = insert_states(1, "1 hour");
    client.execute(&insert, &[]).await.unwrap();
    roll_up(&database).await;
    assert_all_taken(&client, 0).await;
    assert_eq!(count(&client, "pending_revenue_changes").await, 1);
    let later = Timestamp::now() + 2.hours();
    assert_eq!(roll_up_page(&database, later).await, 1);
    assert_eq!(roll_up_page(&database, later).await, 0);
    assert_all_taken(&client, 1).await;
    assert_eq!(count(&client, "all_pending_revenue_changes").await, 0);
}

#[tokio::test]
async fn old_events_are_kept_until_their_states_are_taken() {
    let shared = Database::create().await;
    let database = open(&shared.url);
    let client = shared.connect().await;
    let insert = insert_states(3, "-20 months");
    client.execute(&insert, &[]).await.unwrap();
    set_numbered(&client).await;
    let old = "events WHERE at < now() - interval '1 year'";
    maintain_partitions(&database, 1).await.unwrap();
    assert_eq!(count(&client, old).await, 3);
    roll_up(&database).await;
    assert_all_taken(&client, 3).await;
    maintain_partitions(&database, 1).await.unwrap();
    assert_eq!(count(&client, old).await, 0);
    assert_eq!(count(&client, "revenue_changes").await, 3);
}

/// A tenant that was moved from another cell has states with numbers that other tenants have too.
#[tokio::test]
async fn equal_numbers_of_two_tenants_are_different_states() {
    let shared = Database::create().await;
    let database = open(&shared.url);
    let client = shared.connect().await;
    client.execute(&insert_states(1, "0"), &[]).await.unwrap();
    roll_up(&database).await;
    let columns = "user_id, at, subscription_id, plan_id, billing_cycle, currency, status, basis, suspended, imported, arr_minor";
    let repeat = format!(
        "INSERT INTO pending_revenue_changes (tenant_id, {columns}) SELECT tenant_id, {columns} FROM revenue_changes"
    );
    client.execute(&repeat, &[]).await.unwrap();
    let moved = format!(
        "INSERT INTO pending_revenue_changes (tenant_id, seq, {columns}) SELECT gen_random_uuid(), seq, {columns} FROM revenue_changes"
    );
    client.execute(&moved, &[]).await.unwrap();
    assert_eq!(roll_up_page(&database, Timestamp::now()).await, 2);
    let sums = "SELECT sum(arr_minor)::bigint FROM revenue_movements
        WHERE span = 'day' AND plan_id = '00000000-0000-0000-0000-000000000000' AND billing_cycle = '' GROUP BY tenant_id";
    let sums = client.query(sums, &[]).await.unwrap();
    let sums: Vec<i64> = sums.iter().map(|row| row.get(0)).collect();
    assert_eq!(sums, [12_000, 12_000]);
}

/// Copies a database with two states that the roll-up has not read, and checks that the copy takes each state once.
async fn assert_copy_takes_each_once(original: &str, copy: &str) {
    let taken = {
        let client = connect(original).await;
        client.execute(&insert_states(2, "0"), &[]).await.unwrap();
        count(&client, "revenue_changes").await
    };
    restore(original, copy);
    let database = open(copy);
    let client = connect(copy).await;
    client.execute(&insert_states(1, "0"), &[]).await.unwrap();
    roll_up(&database).await;
    assert_all_taken(&client, taken + 3).await;
    // Also with ids of transactions that the original has used.
    for _ in 0..40 {
        client.execute(&insert_states(1, "0"), &[]).await.unwrap();
        roll_up(&database).await;
    }
    assert_all_taken(&client, taken + 43).await;
}

#[tokio::test]
async fn copy_in_another_cluster_takes_each_state_once() {
    // Their transaction ids are lower than those of the shared server, or higher.
    let (young, other) = (Cluster::start(), Cluster::start());
    run_ok(&sandbox(&young.url()), &["migrate"]);
    let (database, client) = (open(&young.url()), connect(&young.url()).await);
    client.execute(&insert_states(5, "0"), &[]).await.unwrap();
    roll_up(&database).await;
    assert_all_taken(&client, 5).await;
    let busy = connect(&other.url()).await;
    for _ in 0..50 {
        busy.batch_execute("SELECT pg_current_xact_id()")
            .await
            .unwrap();
    }
    assert_copy_takes_each_once(&young.url(), &other.url()).await;
    // And back, from the higher ids to lower ones.
    client
        .batch_execute("CREATE DATABASE returned")
        .await
        .unwrap();
    let returned = url_of("returned", &young.url());
    assert_copy_takes_each_once(&other.url(), &returned).await;
}
