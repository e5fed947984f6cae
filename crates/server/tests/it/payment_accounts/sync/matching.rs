//! Which user and plan a subscription gets.

use std::time::Duration;

use perennial::payment_accounts::user_token;
use serde_json::{Value, json};

use super::{LIMIT, StripeShop};
use crate::{
    harness::{
        identity_provider::{FakeIssuer, add_provider},
        master_key::derived_keys,
        process::{MASTER_KEY, run_ok},
        wait_until,
    },
    subscription_plans::minimal_plan,
    subscriptions::create_user,
};

const USERS: &str = "SELECT count(*) FROM users WHERE erased_at IS NULL";

fn sign(shop: &StripeShop, user: &str) -> String {
    let (keys, account) = (derived_keys(MASTER_KEY), shop.account.id.parse().unwrap());
    user_token::sign(&keys, account, user.parse().unwrap())
}

#[tokio::test]
async fn user_is_found_by_signed_value_then_customer_then_email() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let ada = create_user(&shop.api, "ada@example.com").await;
    let bob = create_user(&shop.api, "bob@example.com").await;
    let token = sign(&shop, &ada);
    let other_user = sign(&shop, &bob);
    let tampered = {
        let (_, mac) = other_user.split_once('.').unwrap();
        format!("{ada}.{mac}")
    };
    let subscribe = async |customer: &str, token: &str| -> Value {
        let metadata = [("metadata[perennial_user]", token)];
        let more: &[(&str, &str)] = if token.is_empty() { &[] } else { &metadata };
        let id = shop.subscribe(customer, &price, more).await;
        shop.settle().await;
        shop.subscription(&id).await["user_id"].clone()
    };

    // The signed value comes before the email address.
    let first = shop.create_customer("bob@example.com").await;
    assert_eq!(subscribe(&first, &token).await, ada);
    // The customer is known now.
    assert_eq!(subscribe(&first, "").await, ada, "known customer");
    // A value that the service did not sign does not count.
    let second = shop.create_customer("bob@example.com").await;
    assert_eq!(subscribe(&second, &tampered).await, bob, "tampered value");
    // Addresses are compared as everywhere else.
    let third = shop.create_customer("BOB@example.com").await;
    assert_eq!(subscribe(&third, "").await, bob, "email");
    assert_eq!(shop.count(USERS).await, 2, "no user was created");
    // A new user, once for two subscriptions at the same time.
    let fourth = shop.create_customer("eve@example.com").await;
    shop.stand_in.queue_notifications().await;
    let [one, two] = [
        shop.subscribe(&fourth, &price, &[]).await,
        shop.subscribe(&fourth, &price, &[]).await,
    ];
    let queued = shop.stand_in.notifications("queued").await;
    shop.stand_in.deliver(&queued).await;
    shop.settle().await;
    let user = shop.subscription(&one).await["user_id"].clone();
    assert_eq!(shop.subscription(&two).await["user_id"], user);
    assert_eq!(shop.count(USERS).await, 3);
    let created = "SELECT count(*) FROM events WHERE kind = 'user.created' AND payment_account_id IS NOT NULL";
    assert_eq!(shop.count(created).await, 1);
}

#[tokio::test]
async fn erased_user_gets_no_record_until_a_user_has_the_address() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let ada = create_user(&shop.api, "ada@example.com").await;
    let customer = shop.create_customer("ada@example.com").await;
    let first = shop.subscribe(&customer, &price, &[]).await;
    shop.settle().await;
    assert_eq!(shop.subscription(&first).await["user_id"], ada);
    let erase = ["user", "erase", "ada@example.com", "--yes"];
    run_ok(&shop.service.variables, &erase);

    let second = shop.subscribe(&customer, &price, &[]).await;
    shop.settle_or_wait().await;
    let waiting = shop.notification(&second).await;
    assert_eq!(waiting["state"], "waiting", "{waiting}");
    let reason = waiting["reason"].as_str().unwrap();
    assert!(reason.contains("was erased"), "{reason}");
    assert_eq!(
        shop.count(USERS).await,
        0,
        "the address is not stored again"
    );

    let user = create_user(&shop.api, "ada@example.com").await;
    wait_until("the subscription is applied", LIMIT, async || {
        shop.notification(&second).await["state"] == "done"
    })
    .await;
    assert_eq!(shop.subscription(&second).await["user_id"], user);
}

#[tokio::test]
async fn account_that_creates_no_users_waits_for_one() {
    let shop = StripeShop::start().await;
    let path = shop.account.api_path();
    let setting = json!({"creates_users": false}).to_string();
    let account = shop.api.put(&path, &setting).await;
    assert_eq!(account.json()["creates_users"], false, "{}", account.text);
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    shop.settle_or_wait().await;
    let waiting = shop.notification(&id).await;
    assert_eq!(waiting["state"], "waiting", "{waiting}");
    let reason = waiting["reason"].as_str().unwrap();
    assert!(reason.ends_with("does not create users"), "{reason}");
    assert_eq!(shop.count(USERS).await, 0);
    let user = create_user(&shop.api, "ada@example.com").await;
    shop.settle().await;
    assert_eq!(shop.subscription(&id).await["user_id"], user);
}

#[tokio::test]
async fn sign_up_with_an_unverified_address_does_not_get_the_subscription() {
    let shop = StripeShop::start().await;
    let issuer = FakeIssuer::start().await;
    add_provider(&shop.service.variables, &issuer.issuer);
    let price = shop.create_plan("pro").await;
    let page = shop.service.api(&["--kind", "publishable"]);
    let (unverified, verified) = (
        issuer.token_with("email_verified", Some("false")),
        issuer.token_with("x", None),
    );
    let email = "a@example.com";
    let attack = async || {
        let response = page.authenticate("sign-up", &unverified, email).await;
        response.assert_problem(403, "email_unverified");
    };
    attack().await;
    let customer = shop.create_customer(email).await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    shop.settle().await;
    let owner = shop.subscription(&id).await["user_id"].clone();
    attack().await;
    let signed_up = page.authenticate("sign-up", &verified, email).await;
    assert_eq!(signed_up.status, 201, "{}", signed_up.text);
    assert_eq!(signed_up.json()["auth_id"], owner, "{}", signed_up.text);
}

#[tokio::test]
async fn customer_without_address_waits_for_a_user() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("").await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    shop.settle_or_wait().await;
    let waiting = shop.notification(&id).await;
    assert_eq!(waiting["state"], "waiting", "{waiting}");
    assert_eq!(
        waiting["reason"],
        "no user: the customer has no email address"
    );
}

#[tokio::test]
async fn unknown_plan_that_appears_later_applies_what_has_waited() {
    let shop = StripeShop::start().await;
    let (price, _) = shop.create_price("usd", "1999").await;
    let customer = shop.create_customer("ada@example.com").await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    let invoice = shop.latest_invoice(&id).await;
    shop.settle_or_wait().await;
    for (object, expected) in [
        (&id, "no plan has price_"),
        (&invoice, "no subscription follows"),
    ] {
        let waiting = shop.notification(object).await;
        assert_eq!(waiting["state"], "waiting", "{waiting}");
        let reason = waiting["reason"].as_str().unwrap();
        assert!(reason.starts_with(expected), "{reason}");
        assert!(waiting["next_attempt_at"].is_string(), "{waiting}");
    }
    assert_eq!(
        shop.count(USERS).await,
        0,
        "nothing is stored while it waits"
    );
    shop.create_plan_for("other", "price_other").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(shop.count("SELECT count(*) FROM subscriptions").await, 0);

    shop.create_plan_for("pro", &price).await;
    shop.settle().await;
    assert_eq!(shop.status(&id).await, "active");
    assert_eq!(shop.payment(&invoice).await["status"], "completed");
    let unfinished = "SELECT count(*) FROM payment_notifications WHERE state <> 'done'";
    assert_eq!(shop.count(unfinished).await, 0);
}

#[tokio::test]
async fn two_plans_for_one_price_need_attention() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    shop.create_plan_for("max", &price).await;
    let customer = shop.create_customer("ada@example.com").await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    shop.settle_or_wait().await;
    let failed = shop.notification(&id).await;
    assert_eq!(failed["state"], "failed", "{failed}");
    let reason = failed["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("needs attention: several plans have"),
        "{reason}"
    );
    let change = json!({"variants": []}).to_string();
    assert_eq!(
        shop.api
            .put("/subscription-plans/max", &change)
            .await
            .status,
        200
    );
    let replay = format!(
        "/payment-notifications/{}/replay",
        failed["id"].as_str().unwrap()
    );
    assert_eq!(shop.api.post(&replay, "").await.status, 200);
    shop.settle().await;
    assert_eq!(
        shop.subscription(&id).await["subscription_plan_slug"],
        "pro"
    );
}

#[tokio::test]
async fn plan_is_found_by_product_if_no_plan_has_the_price() {
    let shop = StripeShop::start().await;
    let (price, product) = shop.create_price("usd", "1999").await;
    let mut plan = minimal_plan("by-product");
    plan["product_id"] = json!(product);
    shop.api.create("/subscription-plans", &plan).await;
    let customer = shop.create_customer("ada@example.com").await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    shop.settle().await;
    let subscription = shop.subscription(&id).await;
    assert_eq!(subscription["subscription_plan_slug"], "by-product");
}

/// A client's own integration has created the record before the account was connected.
#[tokio::test]
async fn record_of_a_client_is_followed_by_its_external_id() {
    let shop = StripeShop::start().await;
    shop.stand_in.queue_notifications().await;
    let (price, _) = shop.create_price("usd", "1999").await;
    let user = create_user(&shop.api, "ada@example.com").await;
    shop.api
        .create("/subscription-plans", &minimal_plan("own"))
        .await;
    let customer = shop.create_customer("other@example.com").await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    let fields = json!({
        "user_id": user, "subscription_plan_slug": "own", "external_subscription_id": id, "status": "past_due",
    });
    let record = shop.api.create("/subscriptions", &fields).await;
    let queued = shop.stand_in.notifications("queued").await;
    shop.stand_in.deliver(&queued).await;
    shop.settle().await;
    let followed = shop.subscription(&id).await;
    assert_eq!(followed["id"], record["id"]);
    assert_eq!(followed["status"], "active");
    assert_eq!(followed["subscription_plan_slug"], "own");
    assert_eq!(followed["user_id"], user);
}
