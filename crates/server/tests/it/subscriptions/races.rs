//! Concurrent requests to two instances: one succeeds first, and the others see its result.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{SubscriptionFixture, create_plan, record_path};
use crate::{
    harness::{
        api::{ApiClient, ApiResponse},
        process::Server,
    },
    subscription_plans::minimal_plan,
};

const ROUNDS: usize = 50;

/// Starts two instances, each with an API client.
async fn two_instances(connections: &str) -> (SubscriptionFixture<Server>, [ApiClient; 2], Server) {
    let fixture = SubscriptionFixture::start_server_with_pool(connections).await;
    let other = Server::start(&fixture.service.variables).await;
    let (_, client) = fixture.service.create_client(&[]);
    let urls = [&fixture.service.server.url, &other.url];
    let clients = urls.map(|url| ApiClient::new(url).with("client-id", &client));
    (fixture, clients, other)
}

/// Sends `count` concurrent requests, alternating between the instances.
async fn send_concurrently<F>(
    clients: &[ApiClient; 2],
    count: usize,
    send: impl Fn(ApiClient, usize) -> F,
) -> Vec<ApiResponse>
where
    F: Future<Output = ApiResponse> + Send + 'static,
{
    let barrier = Arc::new(tokio::sync::Barrier::new(count));
    let tasks: Vec<_> = (0..count)
        .map(|number| {
            let barrier = barrier.clone();
            let sending = send(clients[number % 2].clone(), number);
            tokio::spawn(async move {
                barrier.wait().await;
                sending.await
            })
        })
        .collect();
    let mut responses = Vec::new();
    for task in tasks {
        responses.push(task.await.unwrap());
    }
    responses
}

fn count(responses: &[ApiResponse], status: u16) -> usize {
    responses
        .iter()
        .filter(|response| response.status == status)
        .count()
}

#[tokio::test]
async fn concurrent_updates_with_one_etag_succeed_once() {
    let (fixture, clients, _other) = two_instances("4").await;
    let record = fixture.subscribe(json!({})).await;
    for round in 0..ROUNDS {
        let before = fixture.api.get(&record_path(&record)).await;
        let (path, tag) = (record_path(&record), before.header("etag").to_owned());
        let responses = send_concurrently(&clients, 2, |api, number| {
            let api = api.with("if-match", &tag);
            let (path, body) = (
                path.clone(),
                json!({"external_subscription_id": format!("ext_{round}_{number}")}),
            );
            async move { api.put(&path, &body.to_string()).await }
        })
        .await;
        assert_eq!(
            (count(&responses, 200), count(&responses, 412)),
            (1, 1),
            "round {round}"
        );
        let winner = responses
            .iter()
            .find(|response| response.status == 200)
            .unwrap();
        assert_eq!(fixture.api.get(&path).await.text, winner.text);
    }
    let events = fixture.events(&record).await;
    assert_eq!(events.len(), ROUNDS + 1, "one event for each update");
}

#[tokio::test]
async fn concurrent_completions_apply_once() {
    let (fixture, clients, _other) = two_instances("4").await;
    for round in 0..ROUNDS {
        let record = fixture.subscribe(json!({"status": "past_due"})).await;
        let payment = fixture.pay(&record, json!({})).await;
        let path = record_path(&payment);
        let responses = send_concurrently(&clients, 2, |api, _| {
            let path = path.clone();
            async move { api.put(&path, r#"{"status": "completed"}"#).await }
        })
        .await;
        assert_eq!(count(&responses, 200), 2, "round {round}");
        assert_eq!(
            fixture.events(&payment).await,
            ["payment.created", "payment.updated"]
        );
        assert_eq!(
            fixture.events(&record).await,
            ["subscription.created", "subscription.updated"]
        );
        assert_eq!(
            fixture.api.get(&record_path(&record)).await.json()["status"],
            "active"
        );
    }
}

#[tokio::test]
async fn plan_deletion_racing_a_subscription_leaves_no_orphan() {
    let (fixture, clients, _other) = two_instances("4").await;
    let mut outcomes = [0, 0];
    for round in 0..ROUNDS {
        let slug = format!("p{round}");
        let plan = create_plan(&fixture.api, &minimal_plan(&slug)).await;
        let body = json!({"user_id": fixture.user, "subscription_plan_id": plan}).to_string();
        let responses = send_concurrently(&clients, 2, |api, number| {
            let (slug, body) = (slug.clone(), body.clone());
            async move {
                match number {
                    0 => api.delete(&format!("/subscription-plans/{slug}")).await,
                    _ => api.post("/subscriptions", &body).await,
                }
            }
        })
        .await;
        let [deleted, subscribed] = [&responses[0], &responses[1]].map(|response| response.status);
        match (deleted, subscribed) {
            (204, 422) => outcomes[0] += 1,
            (409, 201) => outcomes[1] += 1,
            other => panic!("round {round}: {other:?}"),
        }
    }
    println!(
        "deleted first: {}, subscribed first: {}",
        outcomes[0], outcomes[1]
    );
    let orphans = "SELECT count(*) FROM subscriptions s JOIN subscription_plans p
        ON p.tenant_id = s.tenant_id AND p.id = s.plan_id WHERE p.deleted_at IS NOT NULL";
    assert_eq!(fixture.service.count(orphans).await, 0);
}

/// In any order, the account is deleted, grants no access, and the payment is recorded.
#[tokio::test]
async fn account_deletion_racing_a_payment_leaves_no_access() {
    let (fixture, clients, _other) = two_instances("4").await;
    for round in 0..ROUNDS {
        let tokens = fixture
            .api
            .sign_up(&format!("user{round}@example.com"))
            .await;
        let record = fixture
            .subscribe(json!({"user_id": tokens.user(), "status": "past_due"}))
            .await;
        let payment = json!({"subscription_id": record["id"], "amount": 19.99, "currency": "USD", "status": "completed"});
        let subscription = json!({"user_id": tokens.user(), "subscription_plan_id": fixture.plan});
        let responses = send_concurrently(&clients, 3, |api, number| {
            let as_user = api.with_bearer(tokens.access());
            let account = format!("/authentication/delete-my-account/{}", tokens.user());
            let (payment, subscription) = (payment.to_string(), subscription.to_string());
            async move {
                match number {
                    0 => as_user.delete(&account).await,
                    1 => api.post("/subscription-payments", &payment).await,
                    _ => api.post("/subscriptions", &subscription).await,
                }
            }
        })
        .await;
        let statuses: Vec<u16> = responses.iter().map(|response| response.status).collect();
        assert!(
            statuses == [204, 201, 201] || statuses == [204, 201, 422],
            "round {round}: {statuses:?}"
        );
        let after: Value = fixture.api.get(&record_path(&record)).await.json();
        assert_eq!(
            (&after["status"], &after["is_active"]),
            (&json!("expired"), &json!(false)),
            "round {round}"
        );
        let path = format!("/subscriptions?user_id={}&is_active=true", tokens.user());
        assert_eq!(
            fixture.api.get(&path).await.json()["data"],
            json!([]),
            "round {round}"
        );
        let events = fixture.events(&record).await;
        let last = events.last().unwrap();
        assert_eq!(last, "subscription.ended", "round {round}: {events:?}");
        assert_eq!(
            fixture
                .api
                .get(&record_path(&responses[1].json()))
                .await
                .json()["status"],
            "completed"
        );
    }
}

/// Tests that saturate the machine, and so run without other tests.
mod saturation {
    use super::*;

    #[tokio::test]
    async fn concurrent_creates_with_one_external_id_succeed_once() {
        // Enough connections for all, so that no request is rejected by admission control.
        let (fixture, clients, _other) = two_instances("40").await;
        for _ in 0..5 {
            send_concurrently(&clients, 80, |api, _| async move {
                api.get("/subscription-plans").await
            })
            .await;
        }
        for round in 0..ROUNDS {
            let body = fixture
                .fields(&json!({"external_subscription_id": format!("ext_{round}")}))
                .to_string();
            let responses = send_concurrently(&clients, 100, |api, _| {
                let body = body.clone();
                async move { api.post("/subscriptions", &body).await }
            })
            .await;
            let first = responses
                .iter()
                .find(|response| response.status == 201)
                .unwrap()
                .json();
            // A machine that is short of CPU rejects some.
            let rejected = count(&responses, 503);
            let counts = (count(&responses, 201), count(&responses, 409) + rejected);
            assert_eq!(counts, (1, 99), "round {round}");
            assert!(rejected < 50, "round {round}: {rejected} rejected");
            for response in responses.iter().filter(|response| response.status == 409) {
                assert_eq!(response.problem(), "duplicate_external_id");
                assert_eq!(response.json()["existing_id"], first["id"]);
            }
        }
        let rounds = i64::try_from(ROUNDS).unwrap();
        assert_eq!(
            fixture
                .service
                .count("SELECT count(*) FROM subscriptions")
                .await,
            rounds
        );
        let created = "SELECT count(*) FROM events WHERE kind = 'subscription.created'";
        assert_eq!(fixture.service.count(created).await, rounds);
    }
}
