//! Which notifications are authentic, over HTTP. The providers' folders have the whole table of headers.

use jiff::Timestamp;
use reqwest::Method;
use serde_json::json;

use super::{
    LEMON_SECRET, STRIPE_SECRET, TestAccount, hex_signature, stripe_signature, subscription_event,
};
use crate::harness::service::InProcessService;

#[tokio::test]
async fn stripe_signature_must_be_recent_and_of_the_accounts_secret() {
    let service = InProcessService::start_in_process_with_fixed_clock().await;
    let (api, anonymous) = (service.api(&[]), service.anonymous());
    let account = TestAccount::stripe(&api, &anonymous).await;
    let other = TestAccount::stripe(&api, &anonymous).await;
    other.rotate(&api, "whsec_of_another_account").await;
    let event = subscription_event("evt_1", "sub_1").to_string();
    let body = event.as_bytes();
    let now = service.server.app.clock.now().as_second();
    let sign = |seconds| stripe_signature(STRIPE_SECRET, seconds, body);
    let good = sign(now);
    let (time, signature) = good.split_once(',').unwrap();
    let mut bit_off = good.clone();
    let last = bit_off.pop().unwrap();
    bit_off.push(if last == '0' { '1' } else { '0' });
    let several = format!("{time},v1={},{signature}", "0".repeat(64));
    for (name, header, status) in [
        ("valid", good.clone(), 200),
        ("several signatures", several, 200),
        ("300 s old", sign(now - 300), 200),
        ("301 s old", sign(now - 301), 401),
        ("300 s ahead", sign(now + 300), 200),
        ("301 s ahead", sign(now + 301), 401),
        ("one bit off", bit_off, 401),
        (
            "another account's secret",
            stripe_signature("whsec_of_another_account", now, body),
            401,
        ),
        ("empty secret", stripe_signature("", now, body), 401),
        ("no signature", time.to_owned(), 401),
        ("garbage", "%%%".to_owned(), 401),
    ] {
        let response = account.send_with(&header, body).await;
        assert_eq!(response.status, status, "{name}: {}", response.text);
        if status == 401 {
            assert_eq!(response.problem(), "invalid_signature", "{name}");
        }
    }
    // The body must be the one that was signed, byte by byte.
    let changed = event.replace("sub_1", "sub_2");
    let response = account.send_with(&good, changed.as_bytes()).await;
    response.assert_problem(401, "invalid_signature");
    let spaced = event.replacen(':', ": ", 1);
    let response = account.send_with(&good, spaced.as_bytes()).await;
    response.assert_problem(401, "invalid_signature");

    let post = async |headers: &[&str]| {
        let mut client = anonymous.clone();
        for header in headers {
            client = client.with("stripe-signature", header);
        }
        client
            .send(Method::POST, &account.path(), Some(body.to_vec()))
            .await
    };
    for headers in [&[][..], &[good.as_str(), good.as_str()]] {
        post(headers).await.assert_problem(401, "invalid_signature");
    }
    // A client id does not replace the signature.
    let with_client = api.post(&account.path(), &event).await;
    with_client.assert_problem(401, "invalid_signature");
    let stored = service
        .count("SELECT count(*) FROM payment_notifications")
        .await;
    assert_eq!(stored, 1, "the same event each time");
}

#[tokio::test]
async fn lemon_squeezy_signature_must_be_of_the_accounts_secret() {
    let service = InProcessService::start_in_process().await;
    let (api, anonymous) = (service.api(&[]), service.anonymous());
    let account = TestAccount::lemon_squeezy(&api, &anonymous).await;
    let event = super::lemon_event("order_created", "orders", "1").to_string();
    let body = event.as_bytes();
    let good = hex_signature(LEMON_SECRET, body);
    let mut bit_off = good.clone();
    let last = bit_off.pop().unwrap();
    bit_off.push(if last == '0' { '1' } else { '0' });
    for (name, header, status) in [
        ("valid", good.clone(), 200),
        ("upper case", good.to_uppercase(), 200),
        ("one bit off", bit_off, 401),
        ("too short", good[..62].to_owned(), 401),
        ("another secret", hex_signature("another-secret", body), 401),
        ("empty secret", hex_signature("", body), 401),
        ("garbage", "%%%".to_owned(), 401),
        ("two", format!("{good},{good}"), 401),
    ] {
        let response = account.send_with(&header, body).await;
        assert_eq!(response.status, status, "{name}: {}", response.text);
    }
    // The header of another provider does not count.
    let stripe = stripe_signature(LEMON_SECRET, Timestamp::now().as_second(), body);
    let response = anonymous
        .with("stripe-signature", &stripe)
        .send(Method::POST, &account.path(), Some(body.to_vec()))
        .await;
    response.assert_problem(401, "invalid_signature");
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
