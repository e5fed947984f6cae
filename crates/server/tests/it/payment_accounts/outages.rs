//! A database that is away, and an API of a payment provider that is.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::{
    TestAccount, stripe_event, subscription_event,
    sync::{StripeShop, id_of},
};
use crate::harness::{
    api::ApiClient,
    client::create_client,
    cluster::Cluster,
    env_number,
    process::{Server, sandbox},
    wait_until,
};

#[tokio::test]
async fn database_outage_returns_503_until_it_ends() {
    let cluster = Cluster::start();
    let server = Server::start(&sandbox(&cluster.url())).await;
    let anonymous = ApiClient::new(&server.url);
    let (_, client) = create_client(&cluster.url(), &[]);
    let api = anonymous.with("client-id", &client);
    let account = TestAccount::stripe(&api, &anonymous).await;
    account.accept(&subscription_event("evt_1", "sub_1")).await;
    cluster.stop();
    for _ in 0..5 {
        let event = subscription_event("evt_2", "sub_1").to_string();
        let response = account.send(event.as_bytes()).await;
        response.assert_problem(503, "unavailable");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    // Without an account, it cannot be said that the signature is invalid.
    let unsigned = account.send_with("t=1,v1=0", b"{}").await;
    unsigned.assert_problem(503, "unavailable");
    cluster.resume();
    wait_until(
        "200 after the outage",
        Duration::from_secs(10),
        async || {
            let event = subscription_event("evt_2", "sub_1").to_string();
            account.send(event.as_bytes()).await.status == 200
        },
    )
    .await;
}

/// Returns events about each subscription of a shop and about its invoice.
async fn outage_events(shop: &StripeShop) -> Vec<Value> {
    let mut events = Vec::new();
    let mut after = String::new();
    loop {
        let list = format!("subscriptions?status=all&limit=100{after}");
        let page = shop.stand_in.stripe_get(&list).await;
        for subscription in page["data"].as_array().unwrap() {
            let number = events.len();
            let id = format!("evt_outage_{number}");
            events.push(subscription_event(
                &id,
                subscription["id"].as_str().unwrap(),
            ));
            let invoice = json!({"id": subscription["latest_invoice"], "object": "invoice"});
            let id = format!("evt_outage_{}", number + 1);
            events.push(stripe_event(&id, "invoice.paid", &invoice));
            after = format!("&starting_after={}", id_of(subscription));
        }
        if page["has_more"] == false {
            return events;
        }
    }
}

/// An outage of an hour is shortened: the pause between attempts stays the same after a minute
/// (`outage_of_an_hour_causes_few_attempts_and_ends_within_half_a_minute`). `OUTAGE_SECONDS` sets its length,
/// `OUTAGE_NOTIFICATIONS` the number of notifications.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_of_a_provider_outage_are_applied_within_a_minute_of_its_end() {
    let seconds: u32 = env_number("OUTAGE_SECONDS").unwrap_or(12);
    let notifications: u32 = env_number("OUTAGE_NOTIFICATIONS").unwrap_or(400);
    let shop = StripeShop::start().await;
    let bulk = json!({"subscriptions": notifications / 2, "invoices": notifications / 2});
    shop.stand_in.post("/bulk", bulk).await;
    let prices = shop.stand_in.stripe_get("prices?limit=1").await;
    let price = id_of(&prices["data"][0]);
    shop.create_plan_for("pro", &price).await;
    let events = outage_events(&shop).await;
    let fail = async |fault: Value| {
        let mut fault = fault;
        fault["path"] = json!("/v1/*");
        shop.stand_in.clear_faults().await;
        shop.stand_in.add_fault(fault).await;
    };

    fail(json!({"kind": "status", "status": 500})).await;
    shop.stand_in
        .control(Method::DELETE, "/requests", Value::Null)
        .await;
    let interval = Duration::from_secs(seconds.into()) / notifications;
    let mut ticks = tokio::time::interval(interval);
    for (number, event) in events.iter().enumerate() {
        ticks.tick().await;
        // In the second half, connections are closed without a response.
        if number == events.len() / 2 {
            fail(json!({"kind": "reset"})).await;
        }
        shop.account.accept(event).await;
    }
    let requests = shop
        .stand_in
        .control(Method::GET, "/requests", Value::Null)
        .await;
    let requests = requests["total"].as_i64().unwrap();
    let failed = "SELECT count(*) FROM payment_notifications WHERE state = 'new' AND attempts > 0";
    let failed = shop.count(failed).await;
    assert!(failed > 0, "the API was not down");
    assert_eq!(shop.count("SELECT count(*) FROM subscriptions").await, 0);
    let unapplied =
        "SELECT count(*) FROM payment_notifications WHERE state NOT IN ('done', 'ignored')";
    assert_eq!(
        shop.count(unapplied).await,
        i64::from(notifications),
        "all are stored"
    );

    shop.stand_in.clear_faults().await;
    let returned_at = Instant::now();
    wait_until(
        "all notifications are applied",
        Duration::from_secs(90),
        async || shop.count(unapplied).await == 0,
    )
    .await;
    let elapsed = returned_at.elapsed();
    println!(
        "{notifications} notifications in {seconds} s without the API, {requests} requests to it; applied {elapsed:.1?} \
         after its return"
    );
    assert!(elapsed < Duration::from_mins(1), "{elapsed:?}");
    // One in twelve is a trial, whose invoice is 0.
    let subscriptions = shop.count("SELECT count(*) FROM subscriptions").await;
    assert_eq!(subscriptions, i64::from(notifications / 2));
    let payments = "SELECT count(*) FROM subscription_payments";
    let ignored = "SELECT count(*) FROM payment_notifications WHERE state = 'ignored'";
    assert_eq!(
        shop.count(payments).await + shop.count(ignored).await,
        subscriptions
    );
}
