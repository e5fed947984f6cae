//! What the service tells payment providers: checkouts, portal sessions, cancellations and webhooks.

mod checkouts;
mod command_retries;
mod commands;
mod connect;
mod portals;
mod purchases;

use serde_json::{Value, json};

use super::sync::StripeShop;

/// Buys the plan `pro` for a user through a checkout, and returns Stripe's id of the subscription.
async fn buy(shop: &StripeShop, user: &str) -> String {
    let session = checkout(shop, user).await;
    let path = format!("/checkout_sessions/{session}/complete");
    let paid = json!({"email": "payer@example.com", "card": "pm_card_visa"});
    let completed = shop.stand_in.post(&path, paid).await;
    shop.settle().await;
    completed["subscription"].as_str().unwrap().to_owned()
}

/// Creates a checkout of the plan `pro`, and returns Stripe's id of the session.
async fn checkout(shop: &StripeShop, user: &str) -> String {
    let response = shop
        .api
        .post("/checkouts", &checkout_body(user).to_string())
        .await;
    assert_eq!(response.status, 201, "{}", response.text);
    session_id(&response.json())
}

fn checkout_body(user: &str) -> Value {
    json!({"subscription_plan_slug": "pro", "user_id": user, "success_url": "https://example.com/welcome"})
}

/// Returns Stripe's id of the session that a checkout's URL names.
fn session_id(checkout: &Value) -> String {
    let url = checkout["url"].as_str().unwrap();
    url.rsplit('/').next().unwrap().to_owned()
}

/// Returns how many commands of the account are shown as pending.
async fn pending_commands(shop: &StripeShop) -> i64 {
    let account = shop.api.get_json(&shop.account.api_path()).await;
    account["pending_commands"].as_i64().unwrap()
}
