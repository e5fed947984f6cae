//! `POST /checkouts`

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    super::{
        ACCOUNTS,
        sync::{StripeShop, id_of, lemon_squeezy::LemonShop},
    },
    buy, checkout, checkout_body, session_id,
};
use crate::{
    harness::{api::ApiClient, in_process::InProcessServer, service::InProcessService},
    subscription_plans::minimal_plan,
    subscriptions::create_user,
};

#[tokio::test]
async fn bought_subscription_is_of_the_user_of_the_checkout() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let user = create_user(&shop.api, "ada@example.com").await;
    let session = shop.object(&checkout(&shop, &user).await).await;
    assert_eq!(session["mode"], "subscription");
    assert_eq!(session["success_url"], "https://example.com/welcome");
    assert_eq!(session["customer_email"], "ada@example.com");
    let reference = session["client_reference_id"].as_str().unwrap();
    assert!(reference.starts_with(&user), "{reference}");
    assert_eq!(session["metadata"]["perennial_user"], reference);
    let bought = buy(&shop, &user).await;
    let record = shop.subscription(&bought).await;
    assert_eq!(record["user_id"], user);
    assert_eq!(record["status"], "active");
    let first = shop.object(&bought).await;
    assert_eq!(first["items"]["data"][0]["price"]["id"], price);
    // The next purchase is of the same customer.
    let session = shop.object(&checkout(&shop, &user).await).await;
    assert_eq!(session["customer"], first["customer"]);
}

#[tokio::test]
async fn customer_deleted_at_the_provider_buys_as_a_new_one() {
    let shop = StripeShop::start().await;
    shop.create_plan("pro").await;
    let user = create_user(&shop.api, "ada@example.com").await;
    let bought = buy(&shop, &user).await;
    let customer = shop.object(&bought).await["customer"].clone();
    let path = format!("customers/{}", customer.as_str().unwrap());
    shop.stand_in.delete(&path).await;
    shop.settle().await;
    let api = shop.api.with("idempotency-key", "once");
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let body = checkout_body(&user).to_string();
        let response = api.post("/checkouts", &body).await;
        assert_eq!(response.status, 201, "{}", response.text);
        sessions.push(session_id(&response.json()));
    }
    assert_eq!(sessions[0], sessions[1], "of the same key");
    let session = shop.object(&sessions[0]).await;
    assert_eq!(session["customer"], Value::Null);
    assert_eq!(session["customer_email"], "ada@example.com");
    // The next purchase is of the new customer.
    let bought = buy(&shop, &user).await;
    let created = shop.object(&bought).await["customer"].clone();
    assert_ne!(created, customer);
    let session = shop.object(&checkout(&shop, &user).await).await;
    assert_eq!(session["customer"], created);
}

#[tokio::test]
async fn retry_with_the_same_key_returns_the_same_checkout() {
    let shop = StripeShop::start().await;
    shop.create_plan("pro").await;
    let user = create_user(&shop.api, "ada@example.com").await;
    let api = shop.api.with("idempotency-key", "once");
    let mut urls = Vec::new();
    for _ in 0..2 {
        let response = api
            .post("/checkouts", &checkout_body(&user).to_string())
            .await;
        assert_eq!(response.status, 201, "{}", response.text);
        assert_eq!(response.header("cache-control"), "no-store");
        assert!(response.json()["expires_at"].is_string());
        urls.push(session_id(&response.json()));
    }
    assert_eq!(urls[0], urls[1]);
    assert_ne!(urls[0], checkout(&shop, &user).await, "without a key");
}

#[tokio::test]
async fn invalid_checkouts_are_rejected() {
    let shop = StripeShop::start().await;
    shop.create_plan("pro").await;
    let user = create_user(&shop.api, "ada@example.com").await;
    let unsold =
        json!({"name": "Unsold", "slug": "unsold", "price": 1, "billing_cycle": "monthly"});
    shop.api.create("/subscription-plans", &unsold).await;
    let unknown_user = "usr_01920000000070008000000000000001";
    let unknown_account = "pac_01920000000070008000000000000001";
    for (field, value, code) in [
        ("success_url", json!("ftp://example.com"), "invalid_format"),
        ("success_url", json!(null), "required"),
        ("user_id", json!(unknown_user), "unknown_reference"),
        ("user_id", json!(null), "required"),
        ("subscription_plan_slug", json!("none"), "unknown_reference"),
        (
            "subscription_plan_slug",
            json!("unsold"),
            "unknown_reference",
        ),
        (
            "payment_account_id",
            json!(unknown_account),
            "unknown_reference",
        ),
    ] {
        let mut body = checkout_body(&user);
        body[field] = value;
        let response = shop.api.post("/checkouts", &body.to_string()).await;
        assert_eq!(response.status, 422, "{body}: {}", response.text);
        assert!(response.text.contains(code), "{body}: {}", response.text);
    }
    let second = json!({"provider": "lemonsqueezy", "mode": "test"});
    let second = shop.api.create(ACCOUNTS, &second).await;
    let mut body = checkout_body(&user);
    let response = shop.api.post("/checkouts", &body.to_string()).await;
    assert_eq!(response.status, 422, "{}", response.text);
    for id in [shop.account.id.as_str(), second["id"].as_str().unwrap()] {
        assert!(response.text.contains(id), "{}", response.text);
    }
    body["payment_account_id"] = json!(shop.account.id);
    let response = shop.api.post("/checkouts", &body.to_string()).await;
    assert_eq!(response.status, 201, "{}", response.text);
}

#[tokio::test]
async fn unavailable_provider_is_reported_and_creates_nothing() {
    let shop = StripeShop::start().await;
    shop.create_plan("pro").await;
    let user = create_user(&shop.api, "ada@example.com").await;
    for (status, expected, code) in [
        (500, 503, "unavailable"),
        (402, 502, "payment_provider_failed"),
    ] {
        let fault = json!({"kind": "status", "status": status, "path": "/v1/checkout/sessions", "count": 1});
        shop.stand_in.add_fault(fault).await;
        let body = checkout_body(&user).to_string();
        let response = shop.api.post("/checkouts", &body).await;
        response.assert_problem(expected, code);
    }
    checkout(&shop, &user).await;
}

#[tokio::test]
async fn user_buys_for_themselves_only() {
    let shop = StripeShop::start().await;
    shop.create_plan("pro").await;
    let other = create_user(&shop.api, "other@example.com").await;
    let page = shop.service.api(&["--kind", "publishable"]);
    let session = page.sign_up("ada@example.com").await;
    let user = page.with_bearer(session.access());
    let body = json!({"subscription_plan_slug": "pro", "success_url": "https://example.com/"});
    let created = user.post("/checkouts", &body.to_string()).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let reference = shop.object(&session_id(&created.json())).await;
    let reference = reference["client_reference_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(reference.starts_with(session.user()), "{reference}");
    let foreign = user
        .post("/checkouts", &checkout_body(&other).to_string())
        .await;
    assert_eq!(foreign.status, 422, "{}", foreign.text);
    page.post("/checkouts", &body.to_string())
        .await
        .assert_problem(403, "insufficient_scope");
}

#[tokio::test]
async fn user_of_a_live_instance_cannot_choose_a_test_account() {
    // The identity provider of tests exists in sandbox mode only.
    let sandbox = InProcessService::start_in_process().await;
    let (_, publishable) = sandbox.create_client(&["--kind", "publishable"]);
    let page = sandbox.anonymous().with("client-id", &publishable);
    let session = page.sign_up("ada@example.com").await;
    let mut variables = sandbox.variables.clone();
    variables.insert("PERENNIAL_MODE", "live".to_owned());
    let live = InProcessServer::start(&variables).await;
    let live = ApiClient::in_process(Arc::new(live));
    let user = live.with("client-id", &publishable);
    let user = user.with_bearer(session.access());
    let (_, secret) = sandbox.create_client(&[]);
    let api = live.with("client-id", &secret);
    let mut plan = minimal_plan("pro");
    plan["href"] = json!("https://shop.lemonsqueezy.com/buy/1");
    api.create("/subscription-plans", &plan).await;
    let create = async |mode: &str| {
        let account = json!({"provider": "lemonsqueezy", "mode": mode});
        id_of(&api.create(ACCOUNTS, &account).await)
    };
    let test = create("test").await;
    create("live").await;
    let mut body = json!({"subscription_plan_slug": "pro", "success_url": "https://example.com/"});
    let only = user.post("/checkouts", &body.to_string()).await;
    assert_eq!(only.status, 201, "{}", only.text);
    body["payment_account_id"] = json!(test);
    let refused = user.post("/checkouts", &body.to_string()).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    assert!(
        refused.text.contains("unknown_reference"),
        "{}",
        refused.text
    );
    // A server can choose it.
    body["user_id"] = json!(session.user());
    let allowed = api.post("/checkouts", &body.to_string()).await;
    assert_eq!(allowed.status, 201, "{}", allowed.text);
    create("live").await;
    body["payment_account_id"].take();
    for (client, is_listed) in [(&user, false), (&api, true)] {
        let several = client.post("/checkouts", &body.to_string()).await;
        assert_eq!(several.status, 422, "{}", several.text);
        assert_eq!(several.text.contains("pac_"), is_listed, "{}", several.text);
    }
}

/// Returns the checkout of the plan `pro` for a user.
async fn lemon_checkout(shop: &LemonShop, user: &str) -> Value {
    let body = checkout_body(user).to_string();
    let response = shop.api.post("/checkouts", &body).await;
    assert_eq!(response.status, 201, "{}", response.text);
    response.json()
}

#[tokio::test]
async fn lemon_squeezy_checkout_carries_the_signed_value() {
    let shop = LemonShop::start(true).await;
    let user = create_user(&shop.api, "owner@example.com").await;
    let checkout = lemon_checkout(&shop, &user).await;
    assert!(checkout["expires_at"].is_string(), "{checkout}");
    let url = checkout["url"].as_str().unwrap();
    let (_, rest) = url.split_once("/custom/").unwrap();
    let (id, _) = rest.split_once('?').unwrap();
    let paid = json!({"email": "payer@example.com"});
    let sold = shop
        .stand_in
        .post(&format!("/checkouts/{id}/complete"), paid)
        .await;
    shop.settle().await;
    let bought = sold["subscription"]["id"].as_str().unwrap();
    assert_eq!(shop.status(bought).await, "active");
    let own = shop
        .api
        .get_json(&format!("/subscriptions?user_id={user}"))
        .await;
    assert_eq!(own["data"].as_array().unwrap().len(), 1, "{own}");
}

#[tokio::test]
async fn without_an_api_key_the_checkout_is_a_signed_link() {
    let shop = LemonShop::start(false).await;
    let user = create_user(&shop.api, "owner@example.com").await;
    let body = checkout_body(&user).to_string();
    let response = shop.api.post("/checkouts", &body).await;
    assert_eq!(response.status, 422, "no href: {}", response.text);
    let href = r#"{"href": "https://shop.lemonsqueezy.com/buy/1"}"#;
    shop.api.put("/subscription-plans/pro", href).await;
    let checkout = lemon_checkout(&shop, &user).await;
    let expected = format!(
        "https://shop.lemonsqueezy.com/buy/1?checkout%5Bcustom%5D%5Bperennial_user%5D={user}."
    );
    let url = checkout["url"].as_str().unwrap();
    assert!(url.starts_with(&expected), "{url}");
    assert!(checkout["expires_at"].is_null());
}
