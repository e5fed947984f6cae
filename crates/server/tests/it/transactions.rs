//! Transactions with deferred statements: executed in order, and all or none.

use std::{future::poll_fn, task::Poll};

use perennial::db::Sql;

use crate::harness::service::{InProcessService, Service};

static CREATE: Sql = Sql::new("CREATE TABLE words (number integer PRIMARY KEY, word text)");
static INSERT: Sql = Sql::new("INSERT INTO words (number, word) VALUES ($1, $2)");
static LAST: Sql = Sql::new("SELECT word FROM words ORDER BY number DESC LIMIT 1");
static COUNT: Sql = Sql::new("SELECT count(*) FROM words");
static OPEN_TRANSACTION: Sql =
    Sql::new("SELECT pg_backend_pid(), pg_current_xact_id_if_assigned()::text");

async fn count(service: &InProcessService) -> i64 {
    let connection = service
        .server
        .app
        .db
        .home()
        .unwrap()
        .connection()
        .await
        .unwrap();
    connection.query(&COUNT, &[]).await.unwrap()[0].get(0)
}

#[tokio::test]
async fn deferred_statements_run_first_and_in_order() {
    let service = Service::start_in_process().await;
    let mut connection = service
        .server
        .app
        .db
        .home()
        .unwrap()
        .connection()
        .await
        .unwrap();
    let tx = connection.begin();
    tx.execute(&CREATE, &[]).await.unwrap();
    tx.commit().await.unwrap();

    let tx = connection.begin();
    for number in 0..100 {
        let word = format!("word {number}");
        tx.enqueue(&INSERT, &[&number, &Some(word)]).await.unwrap();
    }
    assert_eq!(
        tx.query(&LAST, &[]).await.unwrap()[0].get::<_, &str>(0),
        "word 99"
    );
    tx.enqueue(&INSERT, &[&100, &None::<String>]).await.unwrap();
    assert_eq!(count(&service).await, 0, "not visible before the commit");
    tx.commit().await.unwrap();
    assert_eq!(count(&service).await, 101);

    // Two pipelined queries run in order.
    let tx = connection.begin();
    tx.enqueue(&INSERT, &[&101, &"last"]).await.unwrap();
    let (last, counted) = tx
        .query_pipelined([(&LAST, &[]), (&COUNT, &[])])
        .await
        .unwrap();
    assert_eq!((last[0].get(0), counted[0].get(0)), ("last", 102_i64));
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_statement_is_reported_and_rolls_back_the_transaction() {
    let service = Service::start_in_process().await;
    let mut connection = service
        .server
        .app
        .db
        .home()
        .unwrap()
        .connection()
        .await
        .unwrap();
    let tx = connection.begin();
    tx.execute(&CREATE, &[]).await.unwrap();
    tx.enqueue(&INSERT, &[&1, &"one"]).await.unwrap();
    tx.commit().await.unwrap();

    // At the commit. The error is that of the failed statement, not of the ones after it.
    for _ in 0..200 {
        let tx = connection.begin();
        for number in [2, 1, 3, 4, 5] {
            tx.enqueue(&INSERT, &[&number, &"duplicate"]).await.unwrap();
        }
        let error = tx.commit().await.unwrap_err();
        assert_eq!(error.constraint(), Some("words_pkey"));
    }
    assert_eq!(count(&service).await, 1);

    // At the next query. Later statements are not executed, and the commit fails.
    let tx = connection.begin();
    tx.enqueue(&INSERT, &[&1, &"duplicate"]).await.unwrap();
    let error = tx.query(&COUNT, &[]).await.unwrap_err();
    assert_eq!(error.constraint(), Some("words_pkey"));
    tx.enqueue(&INSERT, &[&2, &"two"]).await.unwrap();
    assert!(tx.commit().await.is_err());
    assert_eq!(count(&service).await, 1);

    let tx = connection.begin();
    assert!(tx.execute(&INSERT, &[&1, &"duplicate"]).await.is_err());
    assert!(tx.commit().await.is_err(), "the transaction has failed");
    let tx = connection.begin();
    assert!(tx.enqueue(&INSERT, &[&1]).await.is_err(), "too few values");
    drop(tx);

    // The connection can still be used.
    let tx = connection.begin();
    tx.enqueue(&INSERT, &[&2, &"two"]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(count(&service).await, 2);
}

#[tokio::test]
async fn dropped_transaction_is_rolled_back() {
    let service = Service::start_in_process().await;
    let mut connection = service
        .server
        .app
        .db
        .home()
        .unwrap()
        .connection()
        .await
        .unwrap();
    let tx = connection.begin();
    tx.execute(&CREATE, &[]).await.unwrap();
    tx.commit().await.unwrap();

    // Dropped before anything was sent, after a statement, and during a query.
    let tx = connection.begin();
    tx.enqueue(&INSERT, &[&1, &"one"]).await.unwrap();
    drop(tx);
    let tx = connection.begin();
    assert_eq!(tx.execute(&INSERT, &[&1, &"one"]).await.unwrap(), 1);
    drop(tx);
    let tx = connection.begin();
    tx.enqueue(&INSERT, &[&1, &"one"]).await.unwrap();
    // Prepares the statement, so that the next call sends the query when it is polled first.
    tx.query(&COUNT, &[]).await.unwrap();
    let mut query = Box::pin(tx.query(&COUNT, &[]));
    let pending = poll_fn(|cx| Poll::Ready(query.as_mut().poll(cx).is_pending())).await;
    assert!(pending, "a response takes longer than one poll");
    drop(query);
    drop(tx);
    // An empty transaction can be committed.
    connection.begin().commit().await.unwrap();
    assert_eq!(count(&service).await, 0);
    let row = &connection.query(&OPEN_TRANSACTION, &[]).await.unwrap()[0];
    assert_eq!(
        row.get::<_, Option<&str>>(1),
        None,
        "no transaction is open"
    );
}

static LOCK: Sql = Sql::new("SELECT pg_try_advisory_xact_lock(1)");
static SLEEP: Sql = Sql::new("SELECT pg_sleep($1)");

/// PostgreSQL runs ROLLBACK after the statement that is still running, and releases the lock then.
#[tokio::test]
async fn rollback_waits_until_locks_are_released() {
    let service = Service::start_in_process().await;
    let database = service.server.app.db.home().unwrap();
    let mut connection = database.connection().await.unwrap();
    let tx = connection.begin();
    tx.query(&LOCK, &[]).await.unwrap();
    // Prepares the statement, so that the next call sends the query when it is polled first.
    tx.query(&SLEEP, &[&0.0]).await.unwrap();
    let mut sleep = Box::pin(tx.query(&SLEEP, &[&0.3]));
    let pending = poll_fn(|cx| Poll::Ready(sleep.as_mut().poll(cx).is_pending())).await;
    assert!(pending, "a response takes longer than one poll");
    drop(sleep);
    tx.rollback().await;

    let other = database.connection().await.unwrap();
    let locked = other.query(&LOCK, &[]).await.unwrap();
    assert!(locked[0].get::<_, bool>(0));
}

static PLANNED: Sql = Sql::new(
    "SELECT current_setting('plan_cache_mode'), $1::integer / $2::integer, current_setting('jit')",
);

/// The setting is reset after each query, even if it fails.
#[tokio::test]
async fn custom_plan_applies_to_one_query_only() {
    let service = Service::start_in_process().await;
    let mut connection = service
        .server
        .app
        .db
        .home()
        .unwrap()
        .connection()
        .await
        .unwrap();
    for by in [2, 0, 2] {
        let custom = connection.query_custom_plan(&PLANNED, &[&6, &by]).await;
        if by == 0 {
            custom.unwrap_err();
        } else {
            let row = &custom.unwrap()[0];
            assert_eq!((row.get(0), row.get(1)), ("force_custom_plan", 3));
        }
        let generic = connection.query(&PLANNED, &[&6, &2]).await.unwrap();
        assert_eq!(generic[0].get::<_, &str>(0), "force_generic_plan");
        assert_eq!(generic[0].get::<_, &str>(2), "off");
        let open = connection.query(&OPEN_TRANSACTION, &[]).await.unwrap();
        assert_eq!(
            open[0].get::<_, Option<&str>>(1),
            None,
            "no transaction is left open"
        );
    }
}
