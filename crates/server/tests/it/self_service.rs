//! Self-service: users cancel their own subscriptions with a publishable client, and undo that.

mod attacks;

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    harness::{
        api::{ApiClient, ApiResponse},
        auth::SessionTokens,
        merged,
        process::{run_err, run_ok},
        service::{InProcessService, Service},
    },
    lifecycle::fixture::START,
    subscriptions::record_path,
};

/// A tenant with plans, a server, and a signed-in user of a web page.
struct SelfService {
    service: InProcessService,
    /// A secret client.
    server: ApiClient,
    /// A publishable client with the user's access token.
    user: ApiClient,
    session: SessionTokens,
}

impl SelfService {
    /// Starts at [`START`] with these arguments of `perennial tenant set`.
    async fn start(settings: &[&str]) -> Self {
        let service = Service::start_in_process_at(START.parse().unwrap()).await;
        run_ok(&service.variables, &[&["tenant", "set"], settings].concat());
        let database = service.database.connect().await;
        let since = "UPDATE tenants SET lifecycle_since = '2020-01-01T00:00:00Z'";
        database.execute(since, &[]).await.unwrap();
        let server = service.api(&[]);
        for (slug, cycle, trial_days) in [
            ("pro", "monthly", 0),
            ("other", "monthly", 0),
            ("trial", "monthly", 14),
            ("lifetime", "lifetime", 0),
        ] {
            let plan = json!({"name": slug, "slug": slug, "price": 10, "billing_cycle": cycle, "trial_days": trial_days});
            server.create("/subscription-plans", &plan).await;
        }
        let page = service.api(&["--kind", "publishable"]);
        let session = page.sign_up("ada@example.com").await;
        Self {
            user: page.with_bearer(session.access()),
            service,
            server,
            session,
        }
    }

    /// Creates a subscription of the user with these further fields.
    async fn subscribe(&self, fields: &Value) -> Value {
        let body = json!({"user_id": self.session.user(), "subscription_plan_slug": "pro"});
        let body = merged(body, fields);
        self.server.create("/subscriptions", &body).await
    }

    /// Sends an update as the user.
    async fn put(&self, record: &Value, body: &Value) -> ApiResponse {
        self.user.put(&record_path(record), &body.to_string()).await
    }

    /// Sends an update as the user, which must succeed, and returns the record.
    async fn put_ok(&self, record: &Value, body: &Value) -> Value {
        let response = self.put(record, body).await;
        assert_eq!(response.status, 200, "{body}: {}", response.text);
        response.json()
    }
}

#[tokio::test]
async fn user_cancels_and_undoes() {
    let page = SelfService::start(&["--self-service", "on"]).await;
    let record = page.subscribe(&json!({})).await;
    let canceled = page.put_ok(&record, &json!({"status": "canceled"})).await;
    assert_eq!(canceled["status"], "cancelled");
    assert_eq!(canceled["ends_at"], record["renews_at"]);
    assert_eq!(canceled["is_active"], true);
    // A status that it has already changes nothing.
    let again = page.put_ok(&record, &json!({"status": "cancelled"})).await;
    assert_eq!(again, canceled);
    // Fields equal to what GET shows change nothing.
    let mut undo = canceled.clone();
    undo["status"] = json!("active");
    let undone = page.put_ok(&record, &undo).await;
    assert_eq!(
        (&undone["status"], &undone["ends_at"]),
        (&json!("active"), &Value::Null)
    );
    assert_eq!(undone["renews_at"], record["renews_at"]);

    // The events name the user and the publishable client.
    let id = record["id"].as_str().unwrap().replace("sub_", "");
    let user = page.session.user().replace("usr_", "");
    let events = format!(
        "SELECT count(*) FROM events JOIN clients ON clients.id = events.client_id
         WHERE subject_id = '{id}' AND events.kind = 'subscription.updated' AND user_id = '{user}'
            AND clients.kind = 'publishable'"
    );
    assert_eq!(page.service.count(&events).await, 2);
}

#[tokio::test]
async fn if_match_detects_a_change_in_between() {
    let page = SelfService::start(&["--self-service", "on"]).await;
    let record = page.subscribe(&json!({})).await;
    let path = record_path(&record);
    let tag = page.user.get(&path).await.header("etag").to_owned();
    page.server.put(&path, r#"{"metadata": {"a": "1"}}"#).await;
    let cancel = r#"{"status": "cancelled"}"#;
    let outdated = page.user.with("if-match", &tag).put(&path, cancel).await;
    outdated.assert_problem(412, "precondition_failed");
    let tag = page.user.get(&path).await.header("etag").to_owned();
    let changed = page
        .user
        .with("if-match", &tag)
        .with("idempotency-key", "cancel-1")
        .put(&path, cancel)
        .await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    assert_ne!(changed.header("etag"), tag);
    // A key is for requests that create records; here it has no effect.
    let undone = page
        .user
        .with("idempotency-key", "cancel-1")
        .put(&path, r#"{"status": "active"}"#)
        .await;
    assert_eq!(undone.json()["status"], "active", "{}", undone.text);
}

#[tokio::test]
async fn another_users_subscription_is_not_found() {
    let page = SelfService::start(&["--self-service", "on"]).await;
    let other = page.server.sign_up("eve@example.com").await;
    let fields = json!({"user_id": other.user(), "subscription_plan_slug": "pro"});
    let theirs = page.server.create("/subscriptions", &fields).await;
    let path = record_path(&theirs);
    let cancel = r#"{"status": "cancelled"}"#;
    // Even with a condition, which would tell whether the record exists.
    for user in [page.user.clone(), page.user.with("if-match", "\"guess\"")] {
        let response = user.put(&path, cancel).await;
        response.assert_problem(404, "subscription_not_found");
    }
    let unknown = "/subscriptions/sub_01920000000070008000000000000001";
    let response = page.user.put(unknown, cancel).await;
    response.assert_problem(404, "subscription_not_found");
    assert_eq!(page.server.get_json(&path).await, theirs);
}

#[tokio::test]
async fn tenant_turns_it_on_and_off_within_a_second() {
    let page = SelfService::start(&["--name", "shop"]).await;
    let record = page.subscribe(&json!({})).await;
    let cancel = json!({"status": "cancelled"});
    let refused = page.put(&record, &cancel).await;
    refused.assert_problem(403, "self_service_disabled");
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(
        detail.contains("perennial tenant set --self-service on"),
        "{detail}"
    );
    // The same without a subscription, so that nothing is revealed.
    let unknown = json!({"id": "sub_01920000000070008000000000000001"});
    page.put(&unknown, &cancel)
        .await
        .assert_problem(403, "self_service_disabled");

    let set = |value: &str| {
        let arguments = ["tenant", "set", "--self-service", value];
        run_ok(&page.service.variables, &arguments);
        page.service.run_json(&["tenant", "list", "--json"])["self_service"].clone()
    };
    assert_eq!(set("on"), true);
    // The TTL of the cache of clients and their tenants.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(page.put_ok(&record, &cancel).await["status"], "cancelled");
    assert_eq!(set("off"), false);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    page.put(&record, &json!({"status": "active"}))
        .await
        .assert_problem(403, "self_service_disabled");
    let table = run_ok(&page.service.variables, &["tenant", "list"]);
    assert!(
        table.contains("SELF-SERVICE") && table.contains("off"),
        "{table}"
    );
    let events =
        "SELECT count(*) FROM events WHERE kind = 'tenant.updated' AND data ? 'self_service'";
    assert_eq!(page.service.count(events).await, 2);
    let error = run_err(
        &page.service.variables,
        &["tenant", "set", "--self-service", "maybe"],
    );
    assert!(error.contains("on, off"), "{error}");
}

/// A server acts for itself, so that a mistake in its code cannot act for the wrong user.
#[tokio::test]
async fn secret_client_cannot_send_a_users_token() {
    let page = SelfService::start(&["--self-service", "on"]).await;
    let record = page.subscribe(&json!({})).await;
    let cancel = r#"{"status": "cancelled"}"#;
    let server = page.server.with_bearer(page.session.access());
    let refused = server.put(&record_path(&record), cancel).await;
    refused.assert_problem(403, "not_for_users");
    // A publishable client needs the token, and the scope to read subscriptions.
    let without_scope = page
        .service
        .api(&["--kind", "publishable", "--scope", "auth"])
        .with_bearer(page.session.access());
    let without_token = page.service.api(&["--kind", "publishable"]);
    for client in [without_scope, without_token] {
        let refused = client.put(&record_path(&record), cancel).await;
        refused.assert_problem(403, "insufficient_scope");
    }
}
