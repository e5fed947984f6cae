//! Plans that are paid once.

use reqwest::Method;
use serde_json::{Value, json};

use super::{
    super::sync::{StripeShop, id_of, lemon_squeezy::LemonShop},
    checkout, checkout_body, pending_commands,
};
use crate::{
    harness::wait_until, payment_accounts::sync::LIMIT, subscription_plans::minimal_plan,
    subscriptions::create_user,
};

/// Creates a price that is paid once.
async fn create_price(shop: &StripeShop) -> String {
    let form = [
        ("currency", "usd"),
        ("unit_amount", "29900"),
        ("product_data[name]", "Forever"),
    ];
    id_of(&shop.stand_in.stripe("prices", &form).await)
}

/// Returns the lifetime plan `pro` with a variant.
fn lifetime_plan(variant: &str) -> Value {
    let mut plan = minimal_plan("pro");
    plan["billing_cycle"] = json!("lifetime");
    plan["price"] = json!(299.0);
    plan["variants"] = json!([variant]);
    plan
}

async fn create_plan(shop: &StripeShop) -> String {
    let price = create_price(shop).await;
    let plan = lifetime_plan(&price);
    shop.api.create("/subscription-plans", &plan).await;
    price
}

/// Completes a checkout session, and returns the invoice.
async fn pay(shop: &StripeShop, session: &str) -> String {
    let path = format!("/checkout_sessions/{session}/complete");
    let paid = json!({"email": "payer@example.com", "card": "pm_card_visa"});
    let completed = shop.stand_in.post(&path, paid).await;
    shop.settle().await;
    completed["invoice"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn lifetime_plan_is_delivered_and_ends_with_a_full_refund() {
    let shop = StripeShop::start().await;
    create_plan(&shop).await;
    let user = create_user(&shop.api, "ada@example.com").await;
    let session = checkout(&shop, &user).await;
    assert_eq!(shop.object(&session).await["mode"], "payment");
    let invoice = pay(&shop, &session).await;

    let record = shop.subscription(&invoice).await;
    assert_eq!(record["user_id"], user);
    assert_eq!(record["status"], "active");
    assert_eq!(record["billing_cycle"], "lifetime");
    assert_eq!(record["lifecycle"], "provider");
    assert!(record["renews_at"].is_null(), "{record}");
    let payment = shop.payment(&invoice).await;
    assert_eq!(payment["subscription_id"], record["id"]);
    assert_eq!(payment["status"], "completed");
    assert_eq!(payment["amount"], json!(299.0));
    assert!(payment["period_starts_at"].is_string(), "{payment}");
    assert!(payment["period_ends_at"].is_null(), "{payment}");

    let refund = format!("/invoices/{invoice}/refund");
    shop.stand_in.post(&refund, json!({"amount": 900})).await;
    shop.settle().await;
    let payment = shop.payment(&invoice).await;
    assert_eq!(payment["status"], "partially_refunded");
    assert_eq!(shop.status(&invoice).await, "active");
    shop.stand_in.post(&refund, json!({})).await;
    shop.settle().await;
    assert_eq!(shop.payment(&invoice).await["status"], "refunded");
    assert_eq!(shop.status(&invoice).await, "expired");

    let events = "SELECT count(*) FROM events WHERE kind = 'subscription.updated'";
    assert_eq!(
        shop.count(events).await,
        1,
        "one change of the subscription"
    );
    let unfinished =
        "SELECT count(*) FROM payment_notifications WHERE state NOT IN ('done', 'ignored')";
    assert_eq!(shop.count(unfinished).await, 0);
}

#[tokio::test]
async fn lifetime_subscription_ends_with_a_lost_dispute_only() {
    let shop = StripeShop::start().await;
    create_plan(&shop).await;
    let user = create_user(&shop.api, "ada@example.com").await;
    for (outcome, expected) in [("won", "active"), ("lost", "expired")] {
        let session = checkout(&shop, &user).await;
        let invoice = pay(&shop, &session).await;
        let path = format!("/invoices/{invoice}/dispute");
        let dispute = shop.stand_in.post(&path, json!({})).await;
        shop.settle().await;
        assert_eq!(shop.payment(&invoice).await["status"], "disputed");
        assert_eq!(shop.status(&invoice).await, "active");
        let close = format!("/disputes/{}/close", id_of(&dispute));
        shop.stand_in.post(&close, json!({"status": outcome})).await;
        shop.settle().await;
        assert_eq!(shop.status(&invoice).await, expected);
    }
}

/// Sells a price once through a session that the service did not create, and returns the invoice.
async fn sell(shop: &StripeShop, price: &str) -> String {
    let form = [
        ("mode", "payment"),
        ("line_items[0][price]", price),
        ("line_items[0][quantity]", "2"),
        ("success_url", "https://example.com/"),
        ("invoice_creation[enabled]", "true"),
    ];
    let session = shop.stand_in.stripe("checkout/sessions", &form).await;
    pay(shop, &id_of(&session)).await
}

#[tokio::test]
async fn price_of_a_lifetime_plan_is_delivered_without_a_checkout_and_others_are_ignored() {
    let shop = StripeShop::start().await;
    let price = create_plan(&shop).await;
    let user = create_user(&shop.api, "payer@example.com").await;
    let other = create_price(&shop).await;
    let unrelated = sell(&shop, &other).await;
    let ignored = shop.notification(&unrelated).await;
    assert_eq!(ignored["state"], "ignored", "{ignored}");
    let reason = ignored["reason"].as_str().unwrap();
    assert!(reason.contains("no lifetime plan has"), "{reason}");
    assert_eq!(shop.count("SELECT count(*) FROM subscriptions").await, 0);

    let invoice = sell(&shop, &price).await;
    let record = shop.subscription(&invoice).await;
    assert_eq!(record["user_id"], user, "by email address");
    assert_eq!(record["quantity"], 2);
    assert_eq!(shop.payment(&invoice).await["amount"], json!(598.0));
}

#[tokio::test]
async fn erasing_a_user_sends_no_command_about_a_purchase() {
    let shop = StripeShop::start().await;
    create_plan(&shop).await;
    let user = create_user(&shop.api, "ada@example.com").await;
    let session = checkout(&shop, &user).await;
    let invoice = pay(&shop, &session).await;
    let erased = shop.api.delete(&format!("/users/{user}")).await;
    assert_eq!(erased.status, 204, "{}", erased.text);
    wait_until("no command is pending", LIMIT, async || {
        pending_commands(&shop).await == 0
    })
    .await;
    let reason = "SELECT count(*) FROM payment_commands WHERE reason LIKE 'a one-time purchase%'";
    assert_eq!(shop.count(reason).await, 1);
    assert_eq!(shop.status(&invoice).await, "expired");
}

/// Buys a lifetime plan at Lemon Squeezy.
async fn buy_order(has_api_key: bool) {
    let shop = LemonShop::start(has_api_key).await;
    let product = json!({"name": "Forever", "variants": [{"price": 29_900}]});
    let created = shop.stand_in.post("/products", product).await;
    let variant = created["variants"][0]["id"].as_str().unwrap();
    let mut plan = lifetime_plan(variant);
    plan["slug"] = json!("forever");
    plan["href"] = json!("https://shop.lemonsqueezy.com/buy/1");
    shop.api.create("/subscription-plans", &plan).await;
    let user = create_user(&shop.api, "ada@example.com").await;
    let mut body = checkout_body(&user);
    body["subscription_plan_slug"] = json!("forever");
    let response = shop.api.post("/checkouts", &body.to_string()).await;
    assert_eq!(response.status, 201, "{}", response.text);
    // The checkout that the stand-in has, or one with the value of the link.
    let url = reqwest::Url::parse(response.json()["url"].as_str().unwrap()).unwrap();
    let id = if has_api_key {
        url.path().rsplit('/').next().unwrap().to_owned()
    } else {
        let mut pairs = url.query_pairs();
        let token = pairs.find(|(name, _)| name == "checkout[custom][perennial_user]");
        let custom = json!({"perennial_user": token.unwrap().1});
        let relation = |kind: &str, id: &str| json!({"data": {"type": kind, "id": id}});
        let checkout = json!({
            "type": "checkouts",
            "attributes": {"checkout_data": {"custom": custom}},
            "relationships": {"store": relation("stores", "1"), "variant": relation("variants", variant)},
        });
        let created = shop
            .stand_in
            .lemon_squeezy(Method::POST, "checkouts", checkout);
        id_of(&created.await)
    };
    let paid = json!({"email": "payer@example.com"});
    let path = format!("/checkouts/{id}/complete");
    let sold = shop.stand_in.post(&path, paid).await;
    shop.settle().await;
    let order = id_of(&sold["order"]);
    let external_id = format!("order_{order}");
    let record = shop.subscription(&external_id).await;
    assert_eq!(record["user_id"], user, "the signed value decides");
    assert_eq!(record["status"], "active");
    assert_eq!(record["subscription_plan_slug"], "forever");
    let payment = shop.payment(&external_id).await;
    assert_eq!(
        (&payment["status"], &payment["amount"]),
        (&json!("completed"), &json!(299.0))
    );

    shop.stand_in.post("/clock", json!({"seconds": 1})).await;
    let refund = format!("/orders/{order}/refund");
    shop.stand_in.post(&refund, json!({})).await;
    shop.settle().await;
    assert_eq!(shop.payment(&external_id).await["status"], "refunded");
    assert_eq!(shop.status(&external_id).await, "expired");
}

#[tokio::test]
async fn one_time_order_is_delivered_and_ends_with_a_full_refund() {
    buy_order(true).await;
}

#[tokio::test]
async fn one_time_order_is_delivered_without_an_api_key() {
    buy_order(false).await;
}
