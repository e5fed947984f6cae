//! The API of a tenant's identity providers.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{
    api::ApiClient,
    identity_provider::FakeIssuer,
    process::run_ok,
    service::{InProcessService, Service},
    wait_until,
};

const MANAGER: &[&str] = &[
    "--scope",
    "identity_providers:read",
    "--scope",
    "identity_providers:write",
    "--scope",
    "auth",
];
const PATH: &str = "/identity-providers";

fn path(provider: &Value) -> String {
    format!("{PATH}/{}", provider["id"].as_str().unwrap())
}

#[tokio::test]
async fn provider_is_added_read_updated_and_removed() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(MANAGER);
    let body = json!({"issuer": "https://1.1.1.1", "audiences": ["product"]});
    let created = api.post(PATH, &body.to_string()).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let provider = created.json();
    assert_eq!(created.header("location"), path(&provider));
    assert_eq!(
        (
            &provider["verify"],
            &provider["public_addresses_only"],
            &provider["accept_any_audience"]
        ),
        (&json!("jwt"), &json!(true), &json!(false))
    );
    let read = api.get(&path(&provider)).await;
    assert_eq!(read.json(), provider);
    assert_eq!(api.get_json(PATH).await["data"], json!([provider]));
    api.post(PATH, &body.to_string())
        .await
        .assert_problem(409, "duplicate_provider");

    // What GET returns can be sent back.
    assert_eq!(api.put(&path(&provider), &read.text).await.json(), provider);
    let secret = json!({"verify": "introspection", "client_id": "app", "client_secret": "app-secret", "accept_azp": true});
    let changed = api.put(&path(&provider), &secret.to_string()).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    assert!(!changed.text.contains("app-secret"));
    let changed = changed.json();
    assert_eq!(
        (&changed["verify"], &changed["client_id"]),
        (&json!("introspection"), &json!("app"))
    );
    // The secret stays.
    let audiences = api
        .put(&path(&provider), r#"{"audiences": ["a", "b"]}"#)
        .await;
    assert_eq!(audiences.json()["audiences"], json!(["a", "b"]));
    let listed = service.run_json(&["provider", "list", "--json"]);
    assert_eq!(listed["audiences"], json!(["a", "b"]));
    let second =
        json!({"issuer": "https://1.0.0.1", "verify": "userinfo", "accept_any_audience": true});
    api.post(PATH, &second.to_string())
        .await
        .assert_problem(409, "duplicate_provider");

    api.delete(&path(&provider))
        .await
        .assert_problem(400, "invalid_parameter");
    let stale = api.with("if-match", read.header("etag"));
    stale
        .delete(&(path(&provider) + "?end_sessions=false"))
        .await
        .assert_problem(412, "precondition_failed");
    let removed = api.delete(&(path(&provider) + "?end_sessions=false")).await;
    assert_eq!(removed.status, 204);
    api.get(&path(&provider))
        .await
        .assert_problem(404, "identity_provider_not_found");
    let events = "SELECT string_agg(kind, ' ' ORDER BY seq), string_agg(data::text, ' '), bool_and(client_id IS NOT NULL)
        FROM events WHERE kind LIKE 'provider.%'";
    let connection = service.database.connect().await;
    let row = connection.query_one(events, &[]).await.unwrap();
    let expected = "provider.added provider.updated provider.updated provider.removed";
    assert_eq!(row.get::<_, &str>(0), expected);
    assert!(!row.get::<_, &str>(1).contains("secret"));
    assert!(row.get::<_, bool>(2));
}

#[tokio::test]
async fn invalid_settings_are_reported_by_field() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(MANAGER);
    let issuer = "https://1.1.1.1";
    for (body, pointer, code) in [
        (json!({"audiences": ["a"]}), "/issuer", "required"),
        (
            json!({"issuer": "ftp://a", "audiences": ["a"]}),
            "/issuer",
            "invalid_format",
        ),
        (
            json!({"issuer": format!("{issuer}?x"), "audiences": ["a"]}),
            "/issuer",
            "invalid_format",
        ),
        (json!({"issuer": issuer}), "/audiences", "required"),
        (
            json!({"issuer": issuer, "audiences": [" "]}),
            "/audiences/0",
            "blank",
        ),
        (
            json!({"issuer": issuer, "audiences": ["a"], "verify": "tokeninfo"}),
            "/endpoint",
            "required",
        ),
        (
            json!({"issuer": issuer, "audiences": ["a"], "client_id": "a"}),
            "/client_id",
            "invalid_format",
        ),
        (
            json!({"issuer": issuer, "verify": "userinfo"}),
            "/accept_any_audience",
            "invalid_format",
        ),
        (
            json!({"issuer": issuer, "audiences": ["a"], "accept_any_audience": true}),
            "/accept_any_audience",
            "invalid_format",
        ),
    ] {
        let refused = api.post(PATH, &body.to_string()).await;
        refused.assert_problem(422, code);
        assert_eq!(refused.json()["errors"][0]["pointer"], pointer, "{body}");
    }
    let missing = json!({"issuer": issuer, "audiences": ["a"], "verify": "introspection"});
    let missing = api.post(PATH, &missing.to_string()).await;
    missing.assert_problem(422, "required");
    assert_eq!(missing.json()["errors"].as_array().unwrap().len(), 2);
}

/// The service must not connect to internal addresses for an API client.
#[tokio::test]
async fn internal_addresses_are_refused() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(MANAGER);
    for url in [
        "http://127.0.0.1:9",
        "http://localhost",
        "http://169.254.169.254",
        "http://[::1]",
    ] {
        let body = json!({"issuer": url, "audiences": ["a"]});
        api.post(PATH, &body.to_string())
            .await
            .assert_problem(422, "url_not_allowed");
        let body = json!({"issuer": "https://1.1.1.1", "audiences": ["a"], "verify": "tokeninfo", "endpoint": url});
        let refused = api.post(PATH, &body.to_string()).await;
        refused.assert_problem(422, "url_not_allowed");
        assert_eq!(refused.json()["errors"][0]["pointer"], "/endpoint");
    }
    // An API client cannot point an operator's provider to another address.
    let add = [
        "provider",
        "add",
        "--issuer",
        "http://127.0.0.1:9",
        "--audience",
        "a",
    ];
    run_ok(&service.variables, &add);
    let provider = api.get_json(PATH).await["data"][0].clone();
    assert_eq!(provider["public_addresses_only"], json!(false));
    let endpoint = json!({"verify": "tokeninfo", "endpoint": "https://1.1.1.1"});
    api.put(&path(&provider), &endpoint.to_string())
        .await
        .assert_problem(422, "url_not_allowed");
    // Other settings can change.
    let audiences = api.put(&path(&provider), r#"{"audiences": ["b"]}"#).await;
    assert_eq!(audiences.status, 200, "{}", audiences.text);
}

/// A name that resolves to a public address when it is added, and to an internal one later, is refused by each request.
#[tokio::test]
async fn guarded_provider_does_not_reach_internal_addresses() {
    let provider = FakeIssuer::start().await;
    let service = InProcessService::start_in_process().await;
    let issuer = provider.issuer.clone();
    let add = [
        "provider",
        "add",
        "--issuer",
        &issuer,
        "--audience",
        "product",
    ];
    run_ok(&service.variables, &add);
    let api = service.api(MANAGER);
    let token = provider.token(&json!({"email": "ada@example.com"}));
    let signed_up = api.authenticate("sign-up", &token, "ada@example.com").await;
    assert_eq!(signed_up.status, 201, "{}", signed_up.text);
    let guard = "UPDATE identity_providers SET is_guarded = true";
    service
        .database
        .connect()
        .await
        .batch_execute(guard)
        .await
        .unwrap();
    wait_until("requests are guarded", Duration::from_secs(5), async || {
        let sign_in = api.authenticate("sign-in", &token, "ada@example.com").await;
        sign_in.status == 503
    })
    .await;
}

#[tokio::test]
async fn removal_ends_sessions() {
    let provider = FakeIssuer::start().await;
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_WEBHOOK_NETWORKS", "127.0.0.0/8".to_owned());
    })
    .await;
    let api: ApiClient = service.api(MANAGER);
    let body = json!({"issuer": provider.issuer, "audiences": ["product"]});
    let added = api.create(PATH, &body).await;
    let token = provider.token(&json!({"email": "ada@example.com"}));
    let signed_up = api.authenticate("sign-up", &token, "ada@example.com").await;
    assert_eq!(signed_up.status, 201, "{}", signed_up.text);
    let access = signed_up.json()["access_token"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(api.check(&access).await.status, 200);
    let removed = api.delete(&(path(&added) + "?end_sessions=true")).await;
    assert_eq!(removed.status, 204);
    wait_until("the session ends", Duration::from_secs(2), async || {
        api.check(&access).await.status == 401
    })
    .await;
    let sign_in = async || {
        api.authenticate("sign-in", &token, "ada@example.com")
            .await
            .status
    };
    wait_until("tokens are rejected", Duration::from_secs(5), async || {
        sign_in().await == 401
    })
    .await;
}
