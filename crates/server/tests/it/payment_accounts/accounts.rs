//! The API of payment accounts.

use serde_json::{Value, json};

use super::{ACCOUNTS, TestAccount};
use crate::harness::service::InProcessService;

#[tokio::test]
async fn account_is_created_read_updated_and_deleted() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]);
    let body = json!({"provider": "stripe", "mode": "test", "api_key": "rk_test_hush", "description": "Shop"});
    let keyed = api.with("idempotency-key", "k1");
    let created = keyed.post(ACCOUNTS, &body.to_string()).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let repeated = keyed.post(ACCOUNTS, &body.to_string()).await;
    assert_eq!(repeated.text, created.text);
    assert!(!created.text.contains("hush"), "{}", created.text);
    let account = created.json();
    let path = format!("{ACCOUNTS}/{}", account["id"].as_str().unwrap());
    assert_eq!(created.header("location"), path);
    assert_eq!(
        (&account["has_api_key"], &account["has_secret"]),
        (&json!(true), &json!(false))
    );
    for field in ["external_account_id", "last_heard_at", "last_reconciled_at"] {
        assert_eq!(account[field], Value::Null, "{field}");
    }
    let read = api.get(&path).await;
    assert_eq!(
        (read.json(), read.header("etag")),
        (account.clone(), created.header("etag"))
    );
    assert_eq!(api.get_json(ACCOUNTS).await["data"], json!([account]));

    // What GET returns can be sent back.
    assert_eq!(api.put(&path, &account.to_string()).await.json(), account);
    let change = json!({"description": null, "external_account_id": "acct_1", "api_key": "rk_test_new_hush"});
    let changed = api.put(&path, &change.to_string()).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    assert_eq!(changed.json()["external_account_id"], "acct_1");
    assert_eq!(changed.json()["description"], Value::Null);

    let secret = r#"{"secret": "whsec_hush"}"#;
    let rotated = api.post(&format!("{path}/rotate-secret"), secret).await;
    assert_eq!(
        rotated.json(),
        json!({"secret": null, "previous_secret_expires_at": null})
    );
    assert_eq!(api.get_json(&path).await["has_secret"], true);

    let stale = api.with("if-match", created.header("etag"));
    stale
        .delete(&path)
        .await
        .assert_problem(412, "precondition_failed");
    assert_eq!(api.delete(&path).await.status, 204);
    let not_found = "payment_account_not_found";
    api.get(&path).await.assert_problem(404, not_found);
    api.put(&path, "{}").await.assert_problem(404, not_found);
    api.delete(&path).await.assert_problem(404, not_found);
    let rotated = api.post(&format!("{path}/rotate-secret"), secret).await;
    rotated.assert_problem(404, not_found);
    assert_eq!(api.get_json(ACCOUNTS).await["data"], json!([]));
    // Deleting erases the credentials.
    let stored = "SELECT (SELECT count(*) FROM payment_account_secrets) + (SELECT count(*) FROM payment_accounts
        WHERE api_key IS NOT NULL)";
    assert_eq!(service.count(stored).await, 0);

    let database = service.database.connect().await;
    let events =
        "SELECT kind, data::text FROM events WHERE kind LIKE 'payment_account.%' ORDER BY at, seq";
    let events = database.query(events, &[]).await.unwrap();
    let kinds: Vec<&str> = events.iter().map(|row| row.get(0)).collect();
    let names = ["created", "updated", "secret_rotated", "deleted"];
    assert_eq!(kinds, names.map(|name| format!("payment_account.{name}")));
    for row in &events {
        let data: &str = row.get(1);
        assert!(!data.contains("hush"), "{data}");
    }
    assert!(!service.database.dump().contains("hush"));
}

#[tokio::test]
async fn invalid_fields_are_rejected_together() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]);
    for (body, expected) in [
        (json!({}), vec!["/provider required", "/mode required"]),
        (
            json!({"provider": "Stripe", "mode": "sandbox"}),
            vec!["/provider invalid_format", "/mode unknown_value"],
        ),
        (
            json!({"provider": "stripe", "mode": "test"}),
            vec!["/api_key required"],
        ),
        (
            json!({"provider": "stripe", "mode": "test", "api_key": "sk_live_1"}),
            vec!["/api_key invalid_format"],
        ),
        // A sandbox takes no real payments.
        (
            json!({"provider": "stripe", "mode": "live", "api_key": "sk_test_1"}),
            vec!["/mode unknown_value", "/api_key invalid_format"],
        ),
        (
            json!({"provider": "lemonsqueezy", "mode": "live"}),
            vec!["/mode unknown_value"],
        ),
        (
            json!({"provider": "lemonsqueezy", "mode": "test", "api_key": "", "secret": "x", "external_account_id": "a b"}),
            vec![
                "/external_account_id invalid_format",
                "/api_key blank",
                "/secret unknown_field",
            ],
        ),
    ] {
        let response = api.post(ACCOUNTS, &body.to_string()).await;
        assert_eq!(response.status, 422, "{body}: {}", response.text);
        let mut errors = response.field_errors();
        let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        errors.sort();
        expected.sort();
        assert_eq!(errors, expected, "{body}");
    }

    let account = TestAccount::stripe(&api, &service.anonymous()).await;
    let path = account.api_path();
    for (change, expected) in [
        (
            json!({"provider": "lemonsqueezy"}),
            "/provider immutable_field",
        ),
        (json!({"mode": "live"}), "/mode immutable_field"),
        (json!({"api_key": null}), "/api_key required"),
        (json!({"api_key": "sk_live_1"}), "/api_key invalid_format"),
    ] {
        let response = api.put(&path, &change.to_string()).await;
        assert_eq!(response.field_errors(), [expected], "{}", response.text);
    }
}

#[tokio::test]
async fn secret_is_issued_by_stripe_and_generated_for_lemon_squeezy() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]);
    let stripe = TestAccount::stripe(&api, &service.anonymous()).await;
    let lemon = TestAccount::lemon_squeezy(&api, &service.anonymous()).await;
    let rotate = async |account: &TestAccount, body: Value| {
        let path = format!("{}/rotate-secret", account.api_path());
        api.post(&path, &body.to_string()).await
    };
    for (account, body, expected) in [
        (&stripe, json!({}), "/secret required"),
        (&stripe, json!({"secret": "x"}), "/secret invalid_format"),
        (&stripe, json!({"secret": ""}), "/secret blank"),
        (&lemon, json!({"secret": ""}), "/secret blank"),
        (&lemon, json!({"secret": "12345"}), "/secret invalid_format"),
        (&lemon, json!({"other": 1}), "/other unknown_field"),
    ] {
        let response = rotate(account, body).await;
        assert_eq!(response.field_errors(), [expected], "{}", response.text);
    }
    let mut lemon = lemon;
    let generated = rotate(&lemon, json!({})).await.json();
    lemon.secret = generated["secret"].as_str().unwrap().to_owned();
    assert_eq!(lemon.secret.len(), 32);
    assert!(generated["previous_secret_expires_at"].is_string());
    let event = super::lemon_event("order_created", "orders", "1");
    lemon.accept(&event).await;
}
