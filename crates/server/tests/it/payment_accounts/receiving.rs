//! What is stored when a notification is received.

use std::collections::BTreeSet;

use serde_json::json;
use tokio::task::JoinSet;

use super::{TestAccount, lemon_event, stripe_event, subscription_event};
use crate::harness::service::InProcessService;

const MEGABYTE: usize = 1024 * 1024;

#[tokio::test]
async fn notification_is_stored_sealed_and_marks_its_object_as_dirty() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]);
    let account = TestAccount::stripe(&api, &service.anonymous()).await;
    let mut event = subscription_event("evt_1", "sub_1");
    event["data"]["object"]["customer_email"] = json!("hush@example.com");
    let first = account.accept(&event).await;
    let object = "SELECT wanted FROM payment_objects WHERE kind = 'subscription' AND external_id = 'sub_1' AND seen = 0
        AND due_at IS NOT NULL AND dirty_since IS NOT NULL";
    assert_eq!(service.count(object).await, 1);
    // The same event again, with another time in its signature.
    assert_eq!(account.accept(&event).await, first);
    assert_eq!(service.count(object).await, 1);
    let second = account.accept(&subscription_event("evt_2", "sub_1")).await;
    assert_ne!(first, second);
    assert_eq!(service.count(object).await, 2);
    assert_eq!(
        service.count("SELECT count(*) FROM payment_objects").await,
        1
    );

    let view = api
        .get_json(&format!("/payment-notifications/{first}"))
        .await;
    let expected = json!({
        "id": first, "payment_account_id": account.id, "event_id": "evt_1", "type": "customer.subscription.updated",
        "object_type": "subscription", "object_id": "sub_1", "state": "new", "reason": null, "attempts": 0,
        "next_attempt_at": null, "created_at": view["created_at"],
    });
    assert_eq!(view, expected);
    let read = api.get_json(&account.api_path()).await;
    assert!(read["last_heard_at"].is_string(), "{read}");
    assert!(!service.database.dump().contains("hush"));
}

#[tokio::test]
async fn what_is_not_understood_is_stored_with_its_reason() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]);
    let stripe = TestAccount::stripe(&api, &service.anonymous()).await;
    let lemon = TestAccount::lemon_squeezy(&api, &service.anonymous()).await;
    let store = r#"{"external_account_id": "7"}"#;
    assert_eq!(api.put(&lemon.api_path(), store).await.status, 200);
    let mut other_store = lemon_event("order_created", "orders", "1");
    other_store["data"]["attributes"]["store_id"] = json!(8);
    let other_store = other_store.to_string();
    let unknown = stripe_event("evt_x", "balance.available", &json!({})).to_string();
    for (account, body, state, reason) in [
        (
            &lemon,
            other_store.as_bytes(),
            "refused",
            "another account or store",
        ),
        (&stripe, unknown.as_bytes(), "ignored", "this type"),
        (
            &stripe,
            &[0xff, 0xfe][..],
            "failed",
            "must be a JSON document",
        ),
    ] {
        let response = account.send(body).await;
        assert_eq!(response.status, 200, "{state}: {}", response.text);
        let id = response.json()["id"].as_str().unwrap().to_owned();
        let view = api.get_json(&format!("/payment-notifications/{id}")).await;
        assert_eq!(view["state"], state, "{view}");
        assert!(view["reason"].as_str().unwrap().contains(reason), "{view}");
    }
    let objects = service.count("SELECT count(*) FROM payment_objects").await;
    assert_eq!(objects, 0);
}

#[tokio::test]
async fn concurrent_repetitions_are_stored_once() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]);
    let account = TestAccount::stripe(&api, &service.anonymous()).await;
    let other = TestAccount::stripe(&api, &service.anonymous()).await;
    let sends: JoinSet<_> = (0..40)
        .map(|number| {
            let account = if number % 4 == 3 { &other } else { &account }.clone();
            async move {
                let event = subscription_event(&format!("evt_{}", number % 2), "sub_1");
                (account.id.clone(), account.accept(&event).await)
            }
        })
        .collect();
    let accepted = sends.join_all().await;
    let of_first: BTreeSet<&String> = accepted
        .iter()
        .filter(|(id, _)| *id == account.id)
        .map(|(_, notification)| notification)
        .collect();
    assert_eq!(
        of_first.len(),
        2,
        "each repetition gets the id of the first"
    );
    // The accounts do not share event ids: evt_0 and evt_1, and evt_1.
    assert_eq!(
        service
            .count("SELECT count(*) FROM payment_notifications")
            .await,
        3
    );
    assert_eq!(
        service
            .count("SELECT sum(wanted)::bigint FROM payment_objects")
            .await,
        3
    );
}

#[tokio::test]
async fn body_may_have_one_mebibyte() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]);
    let account = TestAccount::lemon_squeezy(&api, &service.anonymous()).await;
    let event = lemon_event("order_created", "orders", "1").to_string();
    let padded = |size: usize| event.clone() + &" ".repeat(size - event.len());
    let largest = account.send(padded(MEGABYTE).as_bytes()).await;
    assert_eq!(largest.status, 200, "{}", largest.text);
    let too_large = account.send(padded(MEGABYTE + 1).as_bytes()).await;
    too_large.assert_problem(413, "payload_too_large");
    assert_eq!(
        service
            .count("SELECT count(*) FROM payment_notifications")
            .await,
        1
    );
}

#[tokio::test]
async fn unknown_and_deleted_accounts_are_not_found() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]);
    let account = TestAccount::stripe(&api, &service.anonymous()).await;
    account.accept(&subscription_event("evt_1", "sub_1")).await;
    let event = subscription_event("evt_2", "sub_1").to_string();
    for id in [
        "pac_01920000000070008000000000000001",
        "x",
        "usr_01920000000070008000000000000001",
    ] {
        let unknown = TestAccount {
            id: id.to_owned(),
            ..account.clone()
        };
        let response = unknown.send(event.as_bytes()).await;
        response.assert_problem(404, "payment_account_not_found");
    }
    assert_eq!(api.delete(&account.api_path()).await.status, 204);
    let response = account.send(event.as_bytes()).await;
    response.assert_problem(404, "payment_account_not_found");
    // Its notifications can still be read, and nothing is left to do.
    let list = api.get_json("/payment-notifications").await;
    assert_eq!(list["data"].as_array().map(Vec::len), Some(1));
    let due = "SELECT count(*) FROM payment_objects WHERE due_at IS NOT NULL OR seen < wanted";
    assert_eq!(service.count(due).await, 0);
    let path = format!(
        "/payment-notifications/{}/replay",
        list["data"][0]["id"].as_str().unwrap()
    );
    let replayed = api.post(&path, "").await;
    replayed.assert_problem(404, "payment_account_not_found");
}
