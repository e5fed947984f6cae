//! What is no signature of an account. The providers' folders have the table of headers, `sdk_signatures` those of the
//! providers' tools.

use jiff::Timestamp;
use reqwest::Method;
use serde_json::json;

use super::{LEMON_SECRET, TestAccount, hex_signature, stripe_signature, subscription_event};
use crate::harness::service::InProcessService;

#[tokio::test]
async fn client_id_does_not_replace_a_signature() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]);
    let account = TestAccount::stripe(&api, &service.anonymous()).await;
    let event = subscription_event("evt_1", "sub_1").to_string();
    let response = api.post(&account.path(), &event).await;
    response.assert_problem(401, "invalid_signature");
}

#[tokio::test]
async fn header_of_another_provider_does_not_count() {
    let service = InProcessService::start_in_process().await;
    let anonymous = service.anonymous();
    let account = TestAccount::lemon_squeezy(&service.api(&[]), &anonymous).await;
    let event = super::lemon_event("order_created", "orders", "1").to_string();
    let body = event.as_bytes();
    for signature in [
        stripe_signature(LEMON_SECRET, Timestamp::now().as_second(), body),
        hex_signature(LEMON_SECRET, body),
    ] {
        let signed = anonymous.with("stripe-signature", &signature);
        let response = signed
            .send(Method::POST, &account.path(), Some(body.to_vec()))
            .await;
        response.assert_problem(401, "invalid_signature");
    }
}

#[tokio::test]
async fn account_without_a_secret_accepts_nothing() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]);
    let fields = json!({"provider": "lemonsqueezy", "mode": "test"});
    let created = api.create("/payment-accounts", &fields).await;
    let path = format!("/payment-notifications/{}", created["id"].as_str().unwrap());
    let signed = service
        .anonymous()
        .with("x-signature", &hex_signature("", b"{}"));
    let response = signed.send(Method::POST, &path, Some(b"{}".to_vec())).await;
    response.assert_problem(401, "invalid_signature");
}
