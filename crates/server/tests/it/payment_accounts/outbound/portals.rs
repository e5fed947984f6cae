//! `POST /billing-portal-sessions`

use serde_json::json;

use super::{
    super::sync::{StripeShop, lemon_squeezy::LemonShop},
    buy,
};
use crate::subscriptions::create_user;

const PATH: &str = "/billing-portal-sessions";

#[tokio::test]
async fn portal_is_for_users_who_have_bought() {
    let shop = StripeShop::start().await;
    shop.create_plan("pro").await;
    let user = create_user(&shop.api, "ada@example.com").await;
    let body = json!({"user_id": user, "return_url": "https://example.com/account"}).to_string();
    let before = shop.api.post(PATH, &body).await;
    assert_eq!(before.status, 422, "{}", before.text);
    assert!(before.text.contains("bought nothing"), "{}", before.text);
    buy(&shop, &user).await;
    let response = shop.api.post(PATH, &body).await;
    assert_eq!(response.status, 200, "{}", response.text);
    assert_eq!(response.header("cache-control"), "no-store");
    let url = response.json()["url"].as_str().unwrap().to_owned();
    assert!(url.contains("/p/session/"), "{url}");
    let invalid = json!({"user_id": user, "return_url": "javascript:alert(1)"}).to_string();
    let invalid = shop.api.post(PATH, &invalid).await;
    assert_eq!(invalid.status, 422, "{}", invalid.text);
}

#[tokio::test]
async fn lemon_squeezy_portal_is_the_link_of_the_customer() {
    let shop = LemonShop::start(true).await;
    let user = create_user(&shop.api, "ada@example.com").await;
    shop.buy("USD", 1_999).await;
    shop.settle().await;
    let body = json!({"user_id": user}).to_string();
    let response = shop.api.post(PATH, &body).await;
    assert_eq!(response.status, 200, "{}", response.text);
    let url = response.json()["url"].as_str().unwrap().to_owned();
    assert!(url.contains("/billing?expires="), "{url}");
}
