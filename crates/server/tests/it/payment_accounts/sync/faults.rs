//! An API that limits, fails, hangs, returns garbage or refuses, and one that is newer than this service.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::{super::subscription_event, StripeShop};
use crate::harness::{payment_stand_in::TEST_KEY, wait_until};

/// Cancels a subscription while its requests fail, and returns the notification after this many attempts.
async fn cancel_during(shop: &StripeShop, id: &str, fault: Value, attempts: i64) -> Value {
    shop.stand_in.add_fault(fault).await;
    let cancel = [("cancel_at_period_end", "true")];
    let object = format!("subscriptions/{id}");
    shop.stand_in.stripe(&object, &cancel).await;
    shop.stand_in.settle().await;
    let mut failing = Value::Null;
    wait_until("an attempt fails", Duration::from_secs(30), async || {
        failing = shop.notification(id).await;
        failing["attempts"].as_i64() >= Some(attempts)
    })
    .await;
    failing
}

#[tokio::test]
async fn temporary_fault_is_retried_until_the_object_is_applied() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    for (fault, reason) in [
        (
            json!({"kind": "status", "status": 429, "retry_after": 1}),
            "status 429",
        ),
        (json!({"kind": "status", "status": 429}), "status 429"),
        (json!({"kind": "status", "status": 500}), "status 500"),
        (json!({"kind": "status", "status": 503}), "status 503"),
        // As by a proxy, or a replica that does not know the object yet.
        (json!({"kind": "status", "status": 302}), "status 302"),
        (json!({"kind": "status", "status": 404}), "no such object"),
        (json!({"kind": "garbage"}), "not a JSON document"),
        (json!({"kind": "reset"}), "connection failed"),
    ] {
        let id = shop.subscribe(&customer, &price, &[]).await;
        shop.settle().await;
        assert_eq!(shop.status(&id).await, "active");
        let mut fault = fault;
        fault["path"] = json!(format!("/v1/subscriptions/{id}"));
        fault["method"] = json!("GET");
        let failing = cancel_during(&shop, &id, fault.clone(), 2).await;
        assert_eq!(failing["state"], "new", "{fault}: {failing}");
        let actual = failing["reason"].as_str().unwrap();
        assert!(actual.contains(reason), "{fault}: {actual}");
        assert!(failing["next_attempt_at"].is_string(), "{failing}");
        shop.stand_in.clear_faults().await;
        shop.settle().await;
        assert_eq!(shop.status(&id).await, "cancelled", "{fault}");
        let done = shop.notification(&id).await;
        assert_eq!(
            (&done["state"], &done["reason"]),
            (&json!("done"), &Value::Null)
        );
    }
}

#[tokio::test]
async fn request_without_response_is_repeated() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    shop.settle().await;
    let path = format!("/v1/subscriptions/{id}");
    let fault = json!({"kind": "timeout", "path": path, "method": "GET", "count": 1});
    cancel_during(&shop, &id, fault, 1).await;
    shop.settle().await;
    assert_eq!(shop.status(&id).await, "cancelled");
}

#[tokio::test]
async fn refused_api_key_is_retried_with_the_next_key() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    let change = |key: &str| json!({ "api_key": key }).to_string();
    let path = shop.account.api_path();
    assert_eq!(
        shop.api.put(&path, &change("sk_test_revoked")).await.status,
        200
    );
    let revoke = json!({"key": "sk_test_revoked", "revoked": true});
    shop.stand_in.post("/keys", revoke).await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    shop.stand_in.settle().await;
    wait_until("an attempt fails", Duration::from_secs(20), async || {
        let notification = shop.notification(&id).await;
        let reason = notification["reason"].as_str().unwrap_or_default();
        reason.contains("refuses the API key")
    })
    .await;
    assert_eq!(shop.api.put(&path, &change(TEST_KEY)).await.status, 200);
    shop.settle().await;
    assert_eq!(shop.status(&id).await, "active");
}

#[tokio::test]
async fn unknown_word_or_missing_field_fails_and_names_it() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    shop.settle().await;
    let overrides = format!("/objects/{id}/overrides");
    let event = "customer.subscription.updated";
    for (fields, reason) in [
        (json!({"status": "hibernating"}), "subscription status: "),
        (
            json!({"items": null}),
            "subscription items.data: is missing",
        ),
        (
            json!({"start_date": "soon"}),
            "subscription start_date: must be",
        ),
    ] {
        let body = json!({"fields": fields, "event": event});
        shop.stand_in.post(&overrides, body).await;
        shop.settle().await;
        let failed = shop.notification(&id).await;
        assert_eq!(failed["state"], "failed", "{failed}");
        let actual = failed["reason"].as_str().unwrap();
        assert!(actual.starts_with(reason), "{actual}");
        assert_eq!(shop.status(&id).await, "active", "the record stays");
    }
    // A replay reads the object again.
    shop.stand_in
        .post(&overrides, json!({"fields": null}))
        .await;
    let failed = shop.notification(&id).await;
    let replay = format!(
        "/payment-notifications/{}/replay",
        failed["id"].as_str().unwrap()
    );
    assert_eq!(shop.api.post(&replay, "").await.status, 200);
    shop.settle().await;
    let failed = "SELECT count(*) FROM payment_notifications WHERE state <> 'done'";
    assert_eq!(shop.count(failed).await, 0, "the object was applied since");
}

#[tokio::test]
async fn newer_api_version_of_the_account_does_not_matter() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    let settings = json!({"api_version": "2031-01-01.future"});
    shop.stand_in.post("/settings", settings).await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    shop.settle().await;
    assert_eq!(shop.status(&id).await, "active");
    let recent = shop
        .stand_in
        .control(Method::GET, "/requests/recent", Value::Null)
        .await;
    let fetches = recent.as_array().unwrap().iter();
    let versions: Vec<&Value> = fetches
        .filter(|request| request["method"] == "GET")
        .map(|request| &request["version"])
        .collect();
    assert!(!versions.is_empty());
    for version in versions {
        assert_eq!(version, "2026-10-28.endive");
    }
}

#[tokio::test]
async fn unknown_object_fails_with_its_reason() {
    let shop = StripeShop::start().await;
    shop.account
        .accept(&subscription_event("evt_1", "sub_unknown"))
        .await;
    shop.settle().await;
    let failed = shop.notification("sub_unknown").await;
    assert_eq!(failed["state"], "failed");
    let reason = failed["reason"].as_str().unwrap();
    assert!(reason.contains("no such object"), "{reason}");
    assert_eq!(shop.count("SELECT count(*) FROM subscriptions").await, 0);
}
