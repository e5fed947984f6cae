//! `/subscriptions`

mod create;
mod expiry;
mod list;
mod races;
mod references;
mod update;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    harness::{
        api::{ApiClient, ApiResponse},
        in_process::InProcessServer,
        merged,
        process::Server,
        service::Service,
        unique_name,
    },
    subscription_plans::minimal_plan,
};

pub const SUBSCRIPTIONS: &str = "/subscriptions";

/// The command that creates a subscription of the fixture's user to its plan.
pub const CREATE_SUBSCRIPTION: [&str; 6] = [
    "subscription",
    "create",
    "--user",
    "ada@example.com",
    "--plan",
    "pro",
];

/// A service with a user, a monthly plan for 19.99 and a secret client. In process by default.
pub struct SubscriptionFixture<S = Arc<InProcessServer>> {
    pub service: Service<S>,
    pub api: ApiClient,
    pub user: String,
    pub plan: String,
}

impl SubscriptionFixture {
    /// Starts the API in process.
    pub async fn start() -> Self {
        Self::on(Service::start_in_process().await).await
    }

    /// Starts the API in process with a fixed billing clock.
    pub async fn start_at(now: Timestamp) -> Self {
        Self::on(Service::start_in_process_at(now).await).await
    }
}

impl SubscriptionFixture<Server> {
    /// Starts a server process.
    pub async fn start_server() -> Self {
        Self::on(Service::start().await).await
    }

    /// Starts a server process with this number of pooled connections.
    pub async fn start_server_with_pool(connections: &str) -> Self {
        let service = Service::start_with(|variables| {
            variables.insert("PERENNIAL_DATABASE_POOL", connections.to_owned());
        });
        Self::on(service.await).await
    }
}

impl<S> SubscriptionFixture<S> {
    async fn on(service: Service<S>) -> Self {
        let api = service.api(&[]);
        let user = create_user(&api, "ada@example.com").await;
        let plan = create_plan(&api, &minimal_plan("pro")).await;
        Self {
            service,
            api,
            user,
            plan,
        }
    }

    /// Returns the required fields of a subscription and these.
    pub fn fields(&self, extra: &Value) -> Value {
        let fields = json!({"user_id": self.user, "subscription_plan_id": self.plan});
        merged(fields, extra)
    }

    pub async fn subscribe(&self, extra: Value) -> Value {
        let fields = self.fields(&extra);
        self.api.create(SUBSCRIPTIONS, &fields).await
    }

    /// Creates a payment of 19.99 USD with these further fields.
    pub async fn pay(&self, subscription: &Value, extra: Value) -> Value {
        let fields =
            json!({"subscription_id": subscription["id"], "amount": 19.99, "currency": "USD"});
        let fields = merged(fields, &extra);
        self.api.create("/subscription-payments", &fields).await
    }

    /// Sends an update of a subscription or payment.
    pub async fn put(&self, record: &Value, body: Value) -> ApiResponse {
        let path = record_path(record);
        self.api.put(&path, &body.to_string()).await
    }

    /// Returns the kinds of a record's events, oldest first.
    pub async fn events(&self, record: &Value) -> Vec<String> {
        let id = record["id"].as_str().unwrap().rsplit('_').next().unwrap();
        let sql = format!("SELECT kind FROM events WHERE subject_id = '{id}' ORDER BY at, id");
        let rows = self
            .service
            .database
            .connect()
            .await
            .query(&sql, &[])
            .await
            .unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

/// Creates a user and returns its id.
pub async fn create_user(api: &ApiClient, email: &str) -> String {
    let user = api.create("/users", &json!({"email": email})).await;
    user["id"].as_str().unwrap().to_owned()
}

/// Creates a plan and returns its id.
pub async fn create_plan(api: &ApiClient, fields: &Value) -> String {
    let plan = api.create("/subscription-plans", fields).await;
    plan["id"].as_str().unwrap().to_owned()
}

impl ApiClient {
    /// Creates a user and returns its id.
    pub async fn new_user(&self) -> String {
        let email = format!("{}@example.com", unique_name("user"));
        create_user(self, &email).await
    }

    /// Returns a plan's id.
    pub async fn plan_id(&self, slug: &str) -> Value {
        let path = format!("/subscription-plans/{slug}");
        self.get_json(&path).await["id"].clone()
    }

    /// Subscribes a new user to a plan with these further fields.
    pub async fn subscribe(&self, slug: &str, extra: Value) -> Value {
        let user = self.new_user().await;
        self.subscribe_user(&user, slug, extra).await
    }

    pub async fn subscribe_user(&self, user: &str, slug: &str, extra: Value) -> Value {
        let fields = json!({"user_id": user, "subscription_plan_slug": slug});
        self.create(SUBSCRIPTIONS, &merged(fields, &extra)).await
    }

    /// Sends an update that must succeed and returns the subscription or payment.
    pub async fn update(&self, record: &Value, body: Value) -> Value {
        let response = self.put(&record_path(record), &body.to_string()).await;
        assert_eq!(response.status, 200, "{body}: {}", response.text);
        response.json()
    }
}

/// Returns the path of a subscription or payment.
pub fn record_path(record: &Value) -> String {
    let id = record["id"].as_str().unwrap();
    match id.split('_').next().unwrap() {
        "sub" => format!("/subscriptions/{id}"),
        "pay" => format!("/subscription-payments/{id}"),
        other => panic!("{other}"),
    }
}
