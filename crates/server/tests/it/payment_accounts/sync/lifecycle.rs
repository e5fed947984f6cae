//! The life of a subscription at Stripe.

use perennial::payment_accounts::user_token;
use serde_json::{Value, json};

use super::{StripeShop, id_of};
use crate::{
    harness::{master_key::derived_keys, process::MASTER_KEY},
    subscriptions::create_user,
};

#[tokio::test]
async fn subscription_follows_stripe_through_its_life() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let user = create_user(&shop.api, "ada@example.com").await;
    let (keys, account) = (derived_keys(MASTER_KEY), shop.account.id.parse().unwrap());
    let token = user_token::sign(&keys, account, user.parse().unwrap());

    // Checkout.
    let session = shop
        .stand_in
        .stripe(
            "checkout/sessions",
            &[
                ("mode", "subscription"),
                ("line_items[0][price]", &price),
                ("success_url", "https://example.com/done"),
                ("subscription_data[metadata][perennial_user]", &token),
            ],
        )
        .await;
    let complete = format!("/checkout_sessions/{}/complete", id_of(&session));
    let session = shop
        .stand_in
        .post(&complete, json!({"email": "other@example.com"}))
        .await;
    let id = session["subscription"].as_str().unwrap();
    shop.settle().await;
    let subscription = shop.subscription(id).await;
    assert_eq!(subscription["status"], "active");
    assert_eq!(subscription["user_id"], user, "the signed value decides");
    let first = shop.latest_invoice(id).await;
    let payment = shop.payment(&first).await;
    assert_eq!(payment["status"], "completed");
    assert_eq!(payment["amount"], json!(19.99));
    assert_eq!(payment["subscription_id"], subscription["id"]);
    assert!(payment["period_ends_at"].is_string(), "{payment}");

    // A renewal that fails and is recovered.
    let path = format!("/subscriptions/{id}");
    shop.stand_in
        .post(&format!("{path}/renew"), json!({"outcome": "fail"}))
        .await;
    shop.settle().await;
    assert_eq!(shop.status(id).await, "past_due");
    let second = shop.latest_invoice(id).await;
    let failed = shop.payment(&second).await;
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["failure_reason"], "Your card was declined.");
    shop.stand_in
        .post(&format!("{path}/recover"), json!({}))
        .await;
    shop.settle().await;
    assert_eq!(shop.status(id).await, "active");
    let recovered = shop.payment(&second).await;
    assert_eq!(recovered["status"], "completed");
    assert_eq!(recovered["id"], failed["id"], "one payment per invoice");
    assert_eq!(recovered["failure_reason"], Value::Null);

    // Refunds.
    let refund = format!("/invoices/{second}/refund");
    shop.stand_in.post(&refund, json!({"amount": 500})).await;
    shop.settle().await;
    let refunded = shop.payment(&second).await;
    assert_eq!(refunded["status"], "partially_refunded");
    assert_eq!(refunded["refunded_amount"], json!(5.0));
    shop.stand_in.post(&refund, json!({})).await;
    shop.settle().await;
    assert_eq!(shop.payment(&second).await["status"], "refunded");

    // A dispute that is won, and one that is lost.
    for (outcome, expected) in [("won", "completed"), ("lost", "refunded")] {
        shop.stand_in
            .post(&format!("{path}/renew"), json!({}))
            .await;
        let invoice = shop.latest_invoice(id).await;
        let dispute = shop
            .stand_in
            .post(&format!("/invoices/{invoice}/dispute"), json!({}))
            .await;
        shop.settle().await;
        assert_eq!(shop.payment(&invoice).await["status"], "disputed");
        let close = format!("/disputes/{}/close", id_of(&dispute));
        shop.stand_in.post(&close, json!({"status": outcome})).await;
        shop.settle().await;
        assert_eq!(shop.payment(&invoice).await["status"], expected);
    }

    // A pause, which leaves the status active at Stripe.
    let object = format!("subscriptions/{id}");
    shop.stand_in
        .stripe(&object, &[("pause_collection[behavior]", "void")])
        .await;
    shop.settle().await;
    assert_eq!(shop.status(id).await, "paused");
    shop.stand_in
        .stripe(&object, &[("pause_collection", "")])
        .await;
    shop.settle().await;
    assert_eq!(shop.status(id).await, "active");

    // Cancellation and expiry.
    shop.stand_in
        .stripe(&object, &[("cancel_at_period_end", "true")])
        .await;
    shop.settle().await;
    let cancelled = shop.subscription(id).await;
    assert_eq!(cancelled["status"], "cancelled");
    assert!(cancelled["ends_at"].is_string(), "{cancelled}");
    shop.stand_in
        .post(&format!("{path}/cancel"), json!({}))
        .await;
    shop.settle().await;
    assert_eq!(shop.status(id).await, "expired");

    // Each change has its author, and each notification its end.
    let events = shop.api.get_json("/events?limit=100").await;
    let follows = |event: &&Value| {
        let kind = event["type"].as_str().unwrap();
        kind.starts_with("subscription.") || kind.starts_with("payment.")
    };
    let events: Vec<&Value> = { events["data"].as_array().unwrap().iter() }
        .filter(follows)
        .collect();
    assert!(events.len() >= 12, "{}", events.len());
    for event in events {
        assert_eq!(event["actor"]["type"], "payment_account", "{event}");
        assert_eq!(event["actor"]["id"], shop.account.id);
    }
    let unfinished =
        "SELECT count(*) FROM payment_notifications WHERE state NOT IN ('done', 'ignored')";
    assert_eq!(shop.count(unfinished).await, 0);
}

#[tokio::test]
async fn trial_has_no_payment_until_it_is_charged() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    let trial = [("trial_period_days", "14")];
    let id = shop.subscribe(&customer, &price, &trial).await;
    shop.settle().await;
    let subscription = shop.subscription(&id).await;
    assert_eq!(subscription["status"], "on_trial");
    let trials =
        "SELECT count(*) FROM subscriptions WHERE trial_ends_at > now() + interval '13 days'";
    assert_eq!(shop.count(trials).await, 1);
    let payments = "SELECT count(*) FROM subscription_payments";
    assert_eq!(shop.count(payments).await, 0);
    let invoice = shop.latest_invoice(&id).await;
    let ignored = shop.notification(&invoice).await;
    assert_eq!(ignored["state"], "ignored", "{ignored}");
    shop.stand_in
        .post("/clock", json!({"seconds": 14 * 86_400}))
        .await;
    shop.settle().await;
    assert_eq!(shop.status(&id).await, "active");
    assert_eq!(shop.count(payments).await, 1);
}
