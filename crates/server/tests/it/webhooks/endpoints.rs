//! The API of webhook endpoints.

use serde_json::{Value, json};

use super::path;
use crate::harness::service::InProcessService;

#[tokio::test]
async fn endpoint_is_created_read_updated_and_deleted() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]);
    let body = json!({"url": "https://1.1.1.1/hook?a=1", "event_types": ["plan.*", "payment.created", "plan.*"], "order": "subject"});
    let created = api.post("/webhook-endpoints", &body.to_string()).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let mut endpoint = created.json();
    let secret = endpoint.as_object_mut().unwrap().remove("secret").unwrap();
    assert!(secret.as_str().unwrap().starts_with("whsec_"));
    assert_eq!(created.header("location"), path(&endpoint));
    let read = api.get(&path(&endpoint)).await;
    assert_eq!(read.json(), endpoint);
    assert_eq!(read.header("etag"), created.header("etag"));
    assert_eq!(
        endpoint["event_types"],
        json!(["payment.created", "plan.*"])
    );
    assert_eq!(endpoint["status"], "enabled");
    for field in [
        "description",
        "disabled_reason",
        "disabled_at",
        "failing_since",
    ] {
        assert_eq!(endpoint[field], Value::Null, "{field}");
    }

    let list = api.get_json("/webhook-endpoints").await;
    assert_eq!(list["data"], json!([endpoint]));

    // What GET returns can be sent back.
    let same = api.put(&path(&endpoint), &endpoint.to_string()).await;
    assert_eq!(same.json(), endpoint);
    let change = json!({"status": "disabled", "description": "Accounting", "event_types": []});
    let changed = api.put(&path(&endpoint), &change.to_string()).await.json();
    assert_eq!(changed["disabled_reason"], "request");
    assert_eq!(changed["event_types"], json!([]));
    let enabled = api.post(&(path(&endpoint) + "/enable"), "{}").await.json();
    assert_eq!(
        (&enabled["status"], &enabled["disabled_at"]),
        (&json!("enabled"), &Value::Null)
    );

    let stale = api
        .with("if-match", created.header("etag"))
        .delete(&path(&endpoint))
        .await;
    stale.assert_problem(412, "precondition_failed");
    assert_eq!(api.delete(&path(&endpoint)).await.status, 204);
    api.get(&path(&endpoint))
        .await
        .assert_problem(404, "webhook_endpoint_not_found");
    api.get("/webhook-endpoints/whe_1")
        .await
        .assert_problem(404, "webhook_endpoint_not_found");

    let database = service.database.connect().await;
    let kinds = "SELECT kind FROM events WHERE kind LIKE 'webhook_endpoint.%' ORDER BY at, id";
    let kinds: Vec<String> = database
        .query(kinds, &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(
        kinds,
        [
            "webhook_endpoint.created",
            "webhook_endpoint.disabled",
            "webhook_endpoint.enabled",
            "webhook_endpoint.deleted"
        ]
    );
}

#[tokio::test]
async fn secret_is_stored_encrypted_only() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]).with("idempotency-key", "one");
    let body = json!({"url": "https://1.1.1.1/token-in-path"}).to_string();
    let first = api.post("/webhook-endpoints", &body).await;
    let again = api.post("/webhook-endpoints", &body).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(first.json(), again.json());
    let secret = first.json()["secret"].as_str().unwrap().to_owned();
    let rotated = service
        .api(&[])
        .post(&(path(&first.json()) + "/rotate-secret"), "{}")
        .await;
    assert_eq!(rotated.status, 200, "{}", rotated.text);
    assert_eq!(rotated.header("cache-control"), "no-store");
    let rotated = rotated.json()["secret"].as_str().unwrap().to_owned();
    assert_ne!(secret, rotated);

    let database = service.database.connect().await;
    let tables = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
    for row in database.query(tables, &[]).await.unwrap() {
        let table: String = row.get(0);
        let dump = format!("SELECT count(*) FROM {table} AS row WHERE row::text LIKE ANY ($1)");
        let texts = [&secret, &rotated].map(|secret| format!("%{}%", &secret["whsec_".len()..]));
        let found: i64 = database
            .query_one(&dump, &[&texts.as_slice()])
            .await
            .unwrap()
            .get(0);
        assert_eq!(found, 0, "{table}");
        let hex = [&secret, &rotated].map(|secret| format!("%{}%", hex::encode(secret)));
        let found: i64 = database
            .query_one(&dump, &[&hex.as_slice()])
            .await
            .unwrap()
            .get(0);
        assert_eq!(found, 0, "{table}");
    }
    // A URL may contain a credential, so the event log does not have it.
    let events = "SELECT count(*) FROM events WHERE data::text LIKE '%token-in-path%'";
    assert_eq!(service.count(events).await, 0);
}

#[tokio::test]
async fn invalid_fields_are_reported_together() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]);
    let body = json!({"url": "mailto:a", "event_types": ["plan.created", "plan.creatd", "client.created"], "order": "None", "x": 1});
    let response = api.post("/webhook-endpoints", &body.to_string()).await;
    response.assert_problem(422, "validation_failed");
    assert_eq!(
        response.field_errors(),
        [
            "/url invalid_format",
            "/event_types/1 unknown_value",
            "/event_types/2 unknown_value",
            "/order invalid_format",
            "/x unknown_field"
        ]
    );
}

#[tokio::test]
async fn live_mode_requires_https() {
    let service = InProcessService::start_in_process_with(|variables| {
        variables.insert("PERENNIAL_MODE", "live".to_owned());
        variables.insert(
            "PERENNIAL_PUBLIC_URL",
            "https://perennial.example".to_owned(),
        );
    })
    .await;
    let api = service.api(&[]);
    let http = api
        .post("/webhook-endpoints", r#"{"url": "http://1.1.1.1/"}"#)
        .await;
    http.assert_problem(422, "url_not_allowed");
    api.create("/webhook-endpoints", &json!({"url": "https://1.1.1.1/"}))
        .await;
}
