//! `Idempotency-Key`: a repeated request is executed once.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    harness::{api::ApiClient, service::Service, wait_until},
    subscription_plans::minimal_plan,
};

const PLANS: &str = "/subscription-plans";

#[tokio::test]
async fn repeated_request_is_replayed() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]).with("idempotency-key", "key 1");
    let body = minimal_plan("pro").to_string();
    let first = api.post(PLANS, &body).await;
    assert_eq!(
        (first.status, first.header("idempotency-replayed")),
        (201, "")
    );
    // White space and the order of fields do not matter.
    let reordered = r#"{ "billing_cycle":"monthly", "price":19.99, "slug":"pro", "name":"Pro" }"#;
    for body in [body.as_str(), reordered] {
        let again = api.post(PLANS, body).await;
        assert_eq!(
            (again.status, again.header("idempotency-replayed")),
            (201, "true")
        );
        assert_eq!(again.text, first.text);
        for header in ["location", "etag", "content-type"] {
            assert_eq!(again.header(header), first.header(header));
        }
    }
    let other = api.post(PLANS, &minimal_plan("other").to_string()).await;
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

/// Keys are checked after authorization.
///
/// Malformed input: 67.
#[tokio::test]
async fn keys_are_per_client_and_store_only_successes() {
    let service = Service::start().await;
    let (one, two) = (service.api(&[]), service.api(&[]));
    let keyed = |api: &ApiClient| api.with("idempotency-key", "k");
    let plan = |slug: &str| minimal_plan(slug).to_string();
    assert_eq!(keyed(&one).post(PLANS, &plan("a")).await.status, 201);
    assert_eq!(keyed(&two).post(PLANS, &plan("b")).await.status, 201);
    let reader = service.api(&["--scope", "plans:read"]);
    assert_eq!(keyed(&reader).post(PLANS, &plan("a")).await.status, 403);

    // A rejected request does not use up its key.
    let fresh = one.with("idempotency-key", "fresh");
    assert_eq!(fresh.post(PLANS, "{}").await.status, 422);
    assert_eq!(fresh.post(PLANS, &plan("c")).await.status, 201);

    // An expired key can be reused, and a worker removes it.
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

/// The lock of the key is released before the response is sent, so the client can send another request
/// with the key at once.
#[tokio::test]
async fn rejected_request_releases_its_key() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let taken = minimal_plan("taken").to_string();
    assert_eq!(api.post(PLANS, &taken).await.status, 201);
    for round in 0..200 {
        let keyed = api.with("idempotency-key", &format!("key-{round}"));
        assert_eq!(keyed.post(PLANS, &taken).await.problem(), "slug_taken");
        let plan = minimal_plan(&format!("plan-{round}")).to_string();
        assert_eq!(keyed.post(PLANS, &plan).await.status, 201, "round {round}");
    }
}

/// Malformed input: 67.
#[tokio::test]
async fn invalid_key_is_rejected() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let long = "k".repeat(255);
    assert_eq!(
        api.with("idempotency-key", &long)
            .post(PLANS, &minimal_plan("a").to_string())
            .await
            .status,
        201
    );
    for key in ["", &"k".repeat(256), "é", "a\tb"] {
        let response = api
            .with("idempotency-key", key)
            .post(PLANS, &minimal_plan("b").to_string())
            .await;
        assert_eq!(
            (response.status, response.problem().as_str()),
            (400, "invalid_idempotency_key"),
            "{key}"
        );
    }
    let twice = api
        .with("idempotency-key", "a")
        .with("idempotency-key", "a");
    assert_eq!(
        twice
            .post(PLANS, &minimal_plan("b").to_string())
            .await
            .status,
        400
    );
}

/// Tests that saturate the machine, and so run without other tests.
mod saturation {
    use super::*;

    /// 50 rounds of 100 concurrent requests with one key. The server is killed in some rounds. Each round
    /// creates one plan and one event, and each response is that plan or a 409.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn concurrent_requests_with_one_key_run_once() {
        let mut service = Service::start_with(|variables| {
            // Enough connections that admission control rejects nothing.
            variables.insert("PERENNIAL_DATABASE_POOL", "60".to_owned());
        })
        .await;
        let (_, value) = service.create_client(&[]);
        let mut interrupted = 0;
        for round in 0..50_u32 {
            let key = format!("round-{round}");
            let api = service
                .anonymous()
                .with("client-id", &value)
                .with("idempotency-key", &key);
            let body = minimal_plan(&key).to_string();
            let requests: Vec<_> = (0..100)
                .map(|_| {
                    let (api, body) = (api.with("content-type", "application/json"), body.clone());
                    tokio::spawn(async move {
                        api.try_send(reqwest::Method::POST, PLANS, Some(body.into_bytes()))
                            .await
                    })
                })
                .collect();
            let killed = round % 5 == 4;
            if killed {
                tokio::time::sleep(Duration::from_millis(u64::from(round % 9) * 4)).await;
                service.server.process.kill();
            }
            let mut responses = BTreeSet::new();
            for request in requests {
                match request.await.unwrap() {
                    Ok(response) if response.status == 201 => {
                        responses.insert(response.text);
                    }
                    Ok(response) => {
                        assert_eq!(
                            (response.status, response.problem().as_str()),
                            (409, "idempotency_in_progress"),
                            "{}",
                            response.text
                        );
                        assert_eq!(response.header("retry-after"), "1");
                    }
                    Err(_) => {
                        assert!(killed, "a request was lost");
                        interrupted += 1;
                    }
                }
            }
            if killed {
                service.server.restart(&service.variables).await;
            }
            // A repeated request gets the result; the key of a killed request is released soon.
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
            responses.insert(last.text);
            assert_eq!(responses.len(), 1, "round {round}: equal responses");
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
        assert!(interrupted > 0, "no kill hit a request");
        println!("50 rounds of 100; {interrupted} requests were interrupted by a kill");
    }
}
