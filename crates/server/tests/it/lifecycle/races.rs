//! Requests that race the worker for the same subscription: the result does not depend on the order.
//!
//! Two instances serve requests and run workers. Each round uses one subscription that is due now.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::manage;
use crate::{
    harness::{
        api::{ApiClient, ApiResponse},
        process::Server,
        wait_until,
    },
    subscriptions::{SubscriptionFixture, record_path},
};

const ROUNDS: usize = 50;

struct Race {
    fixture: SubscriptionFixture<Server>,
    clients: [ApiClient; 2],
    _other: Server,
}

impl Race {
    async fn start() -> Self {
        let fixture = SubscriptionFixture::start_server().await;
        manage(&fixture.service.variables);
        let other = Server::start(&fixture.service.variables).await;
        let (_, client) = fixture.service.create_client(&[]);
        let urls = [&fixture.service.server.url, &other.url];
        let clients = urls.map(|url| ApiClient::new(url).with("client-id", &client));
        // The cache of tenants has a TTL of 1 s.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        Self {
            fixture,
            clients,
            _other: other,
        }
    }

    /// Creates a subscription and returns when it is about to be due.
    async fn due(&self, round: usize) -> Value {
        let delay = Duration::from_millis(200 + u64::try_from(round).unwrap() * 37 % 1_100);
        let due = jiff::Timestamp::now() + jiff::SignedDuration::try_from(delay).unwrap();
        let starts_at = due - jiff::SignedDuration::from_hours(24 * 20);
        let subscription = self
            .fixture
            .subscribe(json!({"starts_at": starts_at.to_string(), "renews_at": due.to_string()}))
            .await;
        // Every other time 60 ms early, so that the request precedes the worker.
        let early = jiff::SignedDuration::from_millis(if round.is_multiple_of(2) { 60 } else { 0 });
        let left = due.duration_since(jiff::Timestamp::now()) - early;
        tokio::time::sleep(left.try_into().unwrap_or_default()).await;
        subscription
    }

    async fn send_concurrently<F>(
        &self,
        count: usize,
        send: impl Fn(ApiClient, usize) -> F,
    ) -> Vec<ApiResponse>
    where
        F: Future<Output = ApiResponse> + Send + 'static,
    {
        let mut requests = JoinSet::new();
        for number in 0..count {
            requests.spawn(send(self.clients[number % 2].clone(), number));
        }
        requests.join_all().await
    }

    /// Waits until the worker has applied all due transitions and returns the subscription.
    async fn settled(&self, subscription: &Value) -> Value {
        let due = "SELECT count(*) FROM subscriptions WHERE deleted_at IS NULL AND status = 'active' AND renews_at <= now()";
        tokio::time::sleep(Duration::from_millis(80)).await;
        wait_until("nothing is due", Duration::from_secs(10), async || {
            self.fixture.service.count(due).await == 0
        })
        .await;
        self.fixture
            .api
            .get(&record_path(subscription))
            .await
            .json()
    }
}

fn payment(subscription: &Value) -> String {
    json!({"subscription_id": subscription["id"], "amount": 19.99, "currency": "USD", "status": "completed"})
        .to_string()
}

async fn post_payment(api: ApiClient, body: String) -> ApiResponse {
    api.post("/subscription-payments", &body).await
}

#[tokio::test]
async fn payment_racing_the_worker_reactivates() {
    let race = Race::start().await;
    let mut orders = [0, 0];
    for round in 0..ROUNDS {
        let subscription = race.due(round).await;
        let body = payment(&subscription);
        let responses = race
            .send_concurrently(1, |api, _| post_payment(api, body.clone()))
            .await;
        assert_eq!(responses[0].status, 201, "{}", responses[0].text);
        let after = race.settled(&subscription).await;
        let due = subscription["renews_at"].as_str().unwrap().parse().unwrap();
        let next = perennial_domain::BillingCycle::Monthly.nth_renewal(due, 1);
        assert_eq!(
            (&after["status"], &after["renews_at"]),
            (&json!("active"), &json!(next.unwrap().to_string())),
            "round {round}"
        );
        let events = race.fixture.events(&subscription).await;
        let later: Vec<&str> = events.iter().skip(1).map(String::as_str).collect();
        match later[..] {
            ["subscription.past_due", "subscription.updated"] => orders[0] += 1,
            ["subscription.renewed"] => orders[1] += 1,
            ref other => panic!("round {round}: {other:?}"),
        }
    }
    println!(
        "past due before the payment: {}, paid before the due date: {}",
        orders[0], orders[1]
    );
    assert!(orders[0] > 0 && orders[1] > 0, "{orders:?}");
}

/// One payment pays the open period, the other the next.
#[tokio::test]
async fn concurrent_payments_cover_two_periods() {
    let race = Race::start().await;
    for round in 0..ROUNDS {
        let subscription = race.due(round).await;
        let body = payment(&subscription);
        let responses = race
            .send_concurrently(2, |api, _| post_payment(api, body.clone()))
            .await;
        assert!(responses.iter().all(|response| response.status == 201));
        let after = race.settled(&subscription).await;
        assert_eq!(after["status"], "active", "round {round}");
        let id = subscription["id"]
            .as_str()
            .unwrap()
            .rsplit('_')
            .next()
            .unwrap();
        let client = race.fixture.service.database.connect().await;
        let rows = client
            .query(
                &format!(
                    "SELECT period::text FROM subscription_payments WHERE subscription_id = '{id}' ORDER BY created_at"
                ),
                &[],
            )
            .await
            .unwrap();
        let periods: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(periods.len(), 2);
        assert!(periods[0] < periods[1], "round {round}: {periods:?}");
        let ahead = format!("SELECT prepaid::bigint FROM subscriptions WHERE id = '{id}'");
        assert_eq!(race.fixture.service.count(&ahead).await, 1, "round {round}");
    }
}

#[tokio::test]
async fn update_racing_the_worker_keeps_both_changes() {
    let race = Race::start().await;
    for round in 0..ROUNDS {
        let subscription = race.due(round).await;
        let path = record_path(&subscription);
        let responses = race
            .send_concurrently(1, |api, _| {
                let path = path.clone();
                async move { api.put(&path, r#"{"is_active": false}"#).await }
            })
            .await;
        assert_eq!(responses[0].status, 200, "{}", responses[0].text);
        let after = race.settled(&subscription).await;
        assert_eq!(
            (&after["status"], &after["is_active"]),
            (&json!("past_due"), &json!(false)),
            "round {round}"
        );
        let mut events = race.fixture.events(&subscription).await;
        events.sort();
        assert_eq!(
            events,
            [
                "subscription.created",
                "subscription.past_due",
                "subscription.updated"
            ],
            "round {round}"
        );
    }
}

#[tokio::test]
async fn deletion_racing_the_worker_wins() {
    let race = Race::start().await;
    for round in 0..ROUNDS {
        let subscription = race.due(round).await;
        let path = record_path(&subscription);
        let responses = race
            .send_concurrently(1, |api, _| {
                let path = path.clone();
                async move { api.delete(&path).await }
            })
            .await;
        assert_eq!(responses[0].status, 204, "{}", responses[0].text);
        race.settled(&subscription).await;
        let events = race.fixture.events(&subscription).await;
        let last = events.last().map(String::as_str);
        assert_eq!(
            last,
            Some("subscription.deleted"),
            "round {round}: {events:?}"
        );
        assert!(events.len() <= 3, "round {round}: {events:?}");
    }
}
