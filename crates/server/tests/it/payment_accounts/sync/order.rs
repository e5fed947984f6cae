//! Notifications that are late or in the same second, and a response that is stale.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::StripeShop;
use crate::{
    harness::{process::Server, wait_until},
    subscriptions::record_path,
};

#[tokio::test]
async fn changes_of_one_second_end_with_the_last_one() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    shop.stand_in.post("/clock", json!({"freeze": true})).await;
    shop.stand_in.queue_notifications().await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    let path = format!("/subscriptions/{id}");
    let stand_in = &shop.stand_in;
    stand_in
        .post(&format!("{path}/renew"), json!({"outcome": "fail"}))
        .await;
    let first_half = stand_in.notifications("queued").await;
    stand_in.post(&format!("{path}/recover"), json!({})).await;
    let mut all = stand_in.notifications("queued").await;
    // The end of the history first, then what was before it.
    all.rotate_left(first_half.len());
    stand_in.deliver(&all).await;
    shop.settle().await;
    assert_eq!(shop.status(&id).await, "active");
    let invoice = shop.latest_invoice(&id).await;
    assert_eq!(shop.payment(&invoice).await["status"], "completed");
}

/// A worker fetches, is suspended for longer than its lease, and continues after another one has applied a newer state.
#[tokio::test]
async fn stale_response_does_not_replace_a_newer_one() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    shop.settle().await;
    assert_eq!(shop.status(&id).await, "active");
    // The response has the state at the time of the request, and arrives later.
    let path = format!("/v1/subscriptions/{id}");
    let slow =
        json!({"path": path, "kind": "slow", "delay_ms": 3_000, "executes": true, "count": 1});
    shop.stand_in.add_fault(slow).await;
    shop.emit("customer.subscription.updated", &id).await;
    let leased = "SELECT count(*) FROM payment_objects WHERE leased_until IS NOT NULL";
    wait_until(
        "the object is leased",
        Duration::from_secs(10),
        async || shop.count(leased).await == 1,
    )
    .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let suspended = Pid::from_raw(shop.service.server.process.id().try_into().unwrap()).unwrap();
    kill_process(suspended, Signal::STOP).unwrap();

    let other = Server::start(&shop.service.variables).await;
    let url = format!("{}{}", other.url, shop.account.path());
    let endpoint = format!("webhook_endpoints/{}", shop.endpoint);
    shop.stand_in.stripe(&endpoint, &[("url", &url)]).await;
    let object = format!("subscriptions/{id}");
    shop.stand_in
        .stripe(&object, &[("cancel_at_period_end", "true")])
        .await;
    let query = "SELECT count(*) FROM subscriptions WHERE status = 'cancelled'";
    wait_until("the lease expires", Duration::from_secs(40), async || {
        shop.count(query).await == 1
    })
    .await;
    kill_process(suspended, Signal::CONT).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(shop.count(query).await, 1, "the stale response is dropped");
    shop.settle().await;
    let updates = "SELECT count(*) FROM events WHERE kind = 'subscription.updated' AND data->>'status' = 'active'
        AND data->'previous'->>'status' = 'cancelled'";
    assert_eq!(shop.count(updates).await, 0);
}

/// A client replaces the subscription at Stripe by another one, and the first one ends.
#[tokio::test]
async fn record_that_was_moved_does_not_follow_the_previous_subscription() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    let first = shop.subscribe(&customer, &price, &[]).await;
    shop.settle().await;
    let path = record_path(&shop.subscription(&first).await);
    shop.stand_in.queue_notifications().await;
    let second = shop.subscribe(&customer, &price, &[]).await;
    let moved = json!({ "external_subscription_id": second }).to_string();
    assert_eq!(shop.api.put(&path, &moved).await.status, 200);
    let cancel = format!("/subscriptions/{first}/cancel");
    shop.stand_in.post(&cancel, json!({})).await;
    let queued = shop.stand_in.notifications("queued").await;
    shop.stand_in.deliver(&queued).await;
    shop.settle().await;
    let record = shop.api.get_json(&path).await;
    assert_eq!(record["status"], "active");
    assert_eq!(record["external_subscription_id"], second);
    let ignored = shop.notification(&first).await;
    assert_eq!(ignored["state"], "ignored", "{ignored}");
    assert_eq!(shop.count("SELECT count(*) FROM subscriptions").await, 1);
}
