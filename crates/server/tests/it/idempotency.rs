//! `Idempotency-Key`: done once, however often it is asked for.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    harness::{api::Api, process::Server, service::Service, wait_until},
    subscription_plans::minimal,
};

const PLANS: &str = "/subscription-plans";

#[tokio::test]
async fn the_same_request_gets_the_same_answer() {
    let service = Service::start().await;
    let caller = service.caller(&[]).with("idempotency-key", "key 1");
    let body = minimal("pro").to_string();
    let first = caller.post(PLANS, &body).await;
    assert_eq!(
        (first.status, first.header("idempotency-replayed")),
        (201, "")
    );
    // Other white space and another order of the fields are the same wish.
    let turned = r#"{ "billing_cycle":"monthly", "price":19.99, "slug":"pro", "name":"Pro" }"#;
    for body in [body.as_str(), turned] {
        let again = caller.post(PLANS, body).await;
        assert_eq!(
            (again.status, again.header("idempotency-replayed")),
            (201, "true")
        );
        assert_eq!(again.text, first.text);
        for header in ["location", "etag", "content-type"] {
            assert_eq!(again.header(header), first.header(header));
        }
    }
    let other = caller.post(PLANS, &minimal("other").to_string()).await;
    assert_eq!(
        (other.status, other.problem().as_str()),
        (422, "idempotency_key_reused")
    );
    assert_eq!(
        service
            .count("SELECT count(*) FROM subscription_plans")
            .await,
        1
    );
    assert_eq!(
        service
            .count("SELECT count(*) FROM events WHERE kind = 'plan.created'")
            .await,
        1
    );
}

/// The key is the client's own, looked at after authorization, and only what succeeded is kept.
///
/// Catalogue: 67.
#[tokio::test]
async fn whose_key_and_what_is_kept() {
    let service = Service::start().await;
    let (one, two) = (service.caller(&[]), service.caller(&[]));
    let keyed = |caller: &Api| caller.with("idempotency-key", "k");
    let plan = |slug: &str| minimal(slug).to_string();
    assert_eq!(keyed(&one).post(PLANS, &plan("a")).await.status, 201);
    assert_eq!(keyed(&two).post(PLANS, &plan("b")).await.status, 201);
    let reader = service.caller(&["--scope", "plans:read"]);
    assert_eq!(keyed(&reader).post(PLANS, &plan("a")).await.status, 403);

    // A refused request leaves its key free.
    let fresh = one.with("idempotency-key", "fresh");
    assert_eq!(fresh.post(PLANS, &plan("a")).await.problem(), "slug_taken");
    assert_eq!(fresh.post(PLANS, "{}").await.status, 422);
    assert_eq!(fresh.post(PLANS, &plan("c")).await.status, 201);

    // Expired, it is a new key; and housekeeping takes it away.
    let database = service.database.connect().await;
    database
        .batch_execute("UPDATE idempotency_keys SET expires_at = now()")
        .await
        .unwrap();
    assert_eq!(keyed(&one).post(PLANS, &plan("d")).await.status, 201);
    database
        .batch_execute("UPDATE idempotency_keys SET expires_at = now()")
        .await
        .unwrap();
    wait_until(
        "expired keys are removed",
        Duration::from_secs(5),
        async || service.count("SELECT count(*) FROM idempotency_keys").await == 0,
    )
    .await;
}

/// Catalogue: 67.
#[tokio::test]
async fn what_is_not_a_key() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    let long = "k".repeat(255);
    assert_eq!(
        caller
            .with("idempotency-key", &long)
            .post(PLANS, &minimal("a").to_string())
            .await
            .status,
        201
    );
    for key in ["", &"k".repeat(256), "é", "a\tb"] {
        let answer = caller
            .with("idempotency-key", key)
            .post(PLANS, &minimal("b").to_string())
            .await;
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (400, "invalid_idempotency_key"),
            "{key}"
        );
    }
    let twice = caller
        .with("idempotency-key", "a")
        .with("idempotency-key", "a");
    assert_eq!(
        twice.post(PLANS, &minimal("b").to_string()).await.status,
        400
    );
}

/// A hundred at once with one key, fifty rounds, the service killed in some: one plan, one event, equal
/// answers or 409.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_at_once_fifty_times_alone() {
    let mut service = Service::start_with(|variables| {
        // So many that nobody stands in line for long: this is about doing it once.
        variables.insert("PERENNIAL_DATABASE_POOL", "60".to_owned());
    })
    .await;
    let (_, value) = service.make_client(&[]);
    let mut cut_off = 0;
    for round in 0..50_u32 {
        let key = format!("round-{round}");
        let caller = service
            .anonymous()
            .with("client-id", &value)
            .with("idempotency-key", &key);
        let body = minimal(&key).to_string();
        let requests: Vec<_> = (0..100)
            .map(|_| {
                let (caller, body) = (
                    caller.with("content-type", "application/json"),
                    body.clone(),
                );
                tokio::spawn(async move {
                    caller
                        .try_send(reqwest::Method::POST, PLANS, Some(body.into_bytes()))
                        .await
                })
            })
            .collect();
        let killed = round % 5 == 4;
        if killed {
            tokio::time::sleep(Duration::from_millis(u64::from(round % 9) * 4)).await;
            service.server.process.kill();
        }
        let mut answers = BTreeSet::new();
        for request in requests {
            match request.await.unwrap() {
                Ok(answer) if answer.status == 201 => {
                    answers.insert(answer.text);
                }
                Ok(answer) => {
                    assert_eq!(
                        (answer.status, answer.problem().as_str()),
                        (409, "idempotency_in_progress"),
                        "{}",
                        answer.text
                    );
                    assert_eq!(answer.header("retry-after"), "1");
                }
                Err(_) => {
                    assert!(killed, "a request was lost");
                    cut_off += 1;
                }
            }
        }
        if killed {
            service.server = Server::start(&service.variables).await;
        }
        // Whatever happened, asking again tells; a key whose owner was killed is free within a moment.
        let again = service
            .anonymous()
            .with("client-id", &value)
            .with("idempotency-key", &key);
        let mut last = again.post(PLANS, &body).await;
        for _ in 0..100 {
            if last.status != 409 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            last = again.post(PLANS, &body).await;
        }
        assert_eq!(last.status, 201, "{}", last.text);
        answers.insert(last.text);
        assert_eq!(answers.len(), 1, "round {round}: equal answers");
    }
    let database = service.database.connect().await;
    let one_each =
        "SELECT count(*), count(DISTINCT subject_id) FROM events WHERE kind = 'plan.created'";
    let row = database.query_one(one_each, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (50, 50));
    assert_eq!(
        service
            .count("SELECT count(*) FROM subscription_plans")
            .await,
        50
    );
    assert!(cut_off > 0, "no kill hit a request");
    println!("50 rounds of 100; {cut_off} requests were cut off by a kill");
}
