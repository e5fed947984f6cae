//! Transactions whose statements go out together: in their order, all of them or none.

use std::{future::poll_fn, task::Poll};

use jiff::Timestamp;
use perennial::db::Sql;

use crate::harness::{held::Held, service::Service};

static MAKE: Sql = Sql::new("CREATE TABLE said (number integer PRIMARY KEY, word text)");
static SAY: Sql = Sql::new("INSERT INTO said (number, word) VALUES ($1, $2)");
static LAST: Sql = Sql::new("SELECT word FROM said ORDER BY number DESC LIMIT 1");
static COUNT: Sql = Sql::new("SELECT count(*) FROM said");
static OF_CONNECTION: Sql =
    Sql::new("SELECT pg_backend_pid(), pg_current_xact_id_if_assigned()::text");

async fn held() -> (Service, Held) {
    let service = Service::start().await;
    let (client, _) = service.make_client(&[]);
    let held = Held::start(&service.variables, &client, Timestamp::now()).await;
    (service, held)
}

async fn count(held: &Held) -> i64 {
    let connection = held.app.db.home().unwrap().connection().await.unwrap();
    connection.query(&COUNT, &[]).await.unwrap()[0].get(0)
}

#[tokio::test]
async fn what_waits_goes_first_and_in_its_order() {
    let (_service, held) = held().await;
    let mut connection = held.app.db.home().unwrap().connection().await.unwrap();
    let tx = connection.begin();
    tx.execute(&MAKE, &[]).await.unwrap();
    tx.commit().await.unwrap();

    let tx = connection.begin();
    for number in 0..100 {
        let word = format!("word {number}");
        tx.write(&SAY, &[&number, &Some(word)]).await.unwrap();
    }
    assert_eq!(
        tx.query(&LAST, &[]).await.unwrap()[0].get::<_, &str>(0),
        "word 99"
    );
    tx.write(&SAY, &[&100, &None::<String>]).await.unwrap();
    assert_eq!(count(&held).await, 0, "nobody else sees it yet");
    tx.commit().await.unwrap();
    assert_eq!(count(&held).await, 101);

    // Two questions at once, the second one after the first.
    let tx = connection.begin();
    tx.write(&SAY, &[&101, &"last"]).await.unwrap();
    let (last, counted) = tx.query_both([(&LAST, &[]), (&COUNT, &[])]).await.unwrap();
    assert_eq!((last[0].get(0), counted[0].get(0)), ("last", 102_i64));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_fails_is_told_and_nothing_of_the_rest_is_there() {
    let (_service, held) = held().await;
    let mut connection = held.app.db.home().unwrap().connection().await.unwrap();
    let tx = connection.begin();
    tx.execute(&MAKE, &[]).await.unwrap();
    tx.write(&SAY, &[&1, &"one"]).await.unwrap();
    tx.commit().await.unwrap();

    // At the commit, with all that stands before and behind it; and what is told is the cause, not what followed from it.
    for _ in 0..200 {
        let tx = connection.begin();
        for number in [2, 1, 3, 4, 5] {
            tx.write(&SAY, &[&number, &"again"]).await.unwrap();
        }
        let error = tx.commit().await.unwrap_err();
        assert_eq!(error.constraint(), Some("said_pkey"));
    }
    assert_eq!(count(&held).await, 1);

    // At the next question; what is said after that is not heard, and nobody is told that it was.
    let tx = connection.begin();
    tx.write(&SAY, &[&1, &"again"]).await.unwrap();
    let error = tx.query(&COUNT, &[]).await.unwrap_err();
    assert_eq!(error.constraint(), Some("said_pkey"));
    tx.write(&SAY, &[&2, &"two"]).await.unwrap();
    assert!(tx.commit().await.is_err());
    assert_eq!(count(&held).await, 1);

    let tx = connection.begin();
    assert!(tx.execute(&SAY, &[&1, &"again"]).await.is_err());
    assert!(
        tx.commit().await.is_err(),
        "there is nothing left to commit"
    );
    let tx = connection.begin();
    assert!(tx.write(&SAY, &[&1]).await.is_err(), "too few values");
    drop(tx);

    // The connection is as good as before.
    let tx = connection.begin();
    tx.write(&SAY, &[&2, &"two"]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(count(&held).await, 2);
}

#[tokio::test]
async fn dropped_it_has_not_been() {
    let (_service, held) = held().await;
    let mut connection = held.app.db.home().unwrap().connection().await.unwrap();
    let tx = connection.begin();
    tx.execute(&MAKE, &[]).await.unwrap();
    tx.commit().await.unwrap();

    // Before anything was sent, after, and in the middle of a question.
    let tx = connection.begin();
    tx.write(&SAY, &[&1, &"one"]).await.unwrap();
    drop(tx);
    let tx = connection.begin();
    assert_eq!(tx.execute(&SAY, &[&1, &"one"]).await.unwrap(), 1);
    drop(tx);
    let tx = connection.begin();
    tx.write(&SAY, &[&1, &"one"]).await.unwrap();
    // Known to the connection, so that the question itself is sent when it is polled.
    tx.query(&COUNT, &[]).await.unwrap();
    let mut asked = Box::pin(tx.query(&COUNT, &[]));
    let pending = poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx).is_pending())).await;
    assert!(pending, "an answer takes longer than nothing");
    drop(asked);
    drop(tx);
    // Nothing at all is a transaction too.
    connection.begin().commit().await.unwrap();
    assert_eq!(count(&held).await, 0);
    let row = &connection.query(&OF_CONNECTION, &[]).await.unwrap()[0];
    assert_eq!(
        row.get::<_, Option<&str>>(1),
        None,
        "no transaction is open"
    );
}

static PLANNED: Sql =
    Sql::new("SELECT current_setting('plan_cache_mode'), $1::integer / $2::integer");

/// A list with filters is planned knowing them, everything else once; and the connection is as it was, whatever came of it.
#[tokio::test]
async fn planned_anew_only_where_it_is_wanted() {
    let (_service, held) = held().await;
    let mut connection = held.app.db.home().unwrap().connection().await.unwrap();
    for by in [2, 0, 2] {
        let anew = connection.query_planned_anew(&PLANNED, &[&6, &by]).await;
        if by == 0 {
            anew.unwrap_err();
        } else {
            let row = &anew.unwrap()[0];
            assert_eq!((row.get(0), row.get(1)), ("force_custom_plan", 3));
        }
        let as_ever = connection.query(&PLANNED, &[&6, &2]).await.unwrap();
        assert_eq!(as_ever[0].get::<_, &str>(0), "force_generic_plan");
        let of_connection = connection.query(&OF_CONNECTION, &[]).await.unwrap();
        assert_eq!(
            of_connection[0].get::<_, Option<&str>>(1),
            None,
            "no transaction is left open"
        );
    }
}
