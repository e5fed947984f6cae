//! Cancellations here that payment providers follow.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    super::sync::{StripeShop, lemon_squeezy::LemonShop},
    buy, pending_commands,
};
use crate::{
    harness::{process::run_ok, wait_until},
    subscriptions::{create_user, record_path},
};

pub(super) const LIMIT: Duration = Duration::from_mins(1);

/// A shop with a user who has bought the plan `pro`.
pub(super) async fn start() -> (StripeShop, String, String) {
    let shop = StripeShop::start().await;
    shop.create_plan("pro").await;
    let user = create_user(&shop.api, "ada@example.com").await;
    let bought = buy(&shop, &user).await;
    (shop, user, bought)
}

pub(super) async fn set_status(shop: &StripeShop, bought: &str, query: &str, status: &str) {
    let record = shop.subscription(bought).await;
    let path = format!("{}{query}", record_path(&record));
    let body = json!({ "status": status }).to_string();
    let response = shop.api.put(&path, &body).await;
    assert_eq!(response.status, 200, "{}", response.text);
}

/// Waits until all commands are acknowledged.
pub(super) async fn acknowledged(shop: &StripeShop) {
    wait_until("no command is pending", LIMIT, async || {
        pending_commands(shop).await == 0
    })
    .await;
    shop.settle().await;
}

#[tokio::test]
async fn cancellation_and_its_undoing_reach_the_provider() {
    let (shop, _, bought) = start().await;
    set_status(&shop, &bought, "", "cancelled").await;
    acknowledged(&shop).await;
    let object = shop.object(&bought).await;
    assert_eq!(object["cancel_at_period_end"], true, "{object}");
    assert_eq!(shop.status(&bought).await, "cancelled");
    set_status(&shop, &bought, "", "active").await;
    acknowledged(&shop).await;
    let object = shop.object(&bought).await;
    assert_eq!(object["cancel_at_period_end"], false, "{object}");
    assert_eq!(shop.status(&bought).await, "active");
}

/// Ends a subscription here, and returns its status at the provider and the status of the record.
async fn end(shop: &StripeShop, bought: &str, status: &str) -> (Value, String) {
    set_status(shop, bought, "", status).await;
    assert_eq!(shop.status(bought).await, "expired");
    acknowledged(shop).await;
    let object = shop.object(bought).await;
    (object["status"].clone(), shop.status(bought).await)
}

#[tokio::test]
async fn cancelled_past_due_subscription_ends_at_the_provider() {
    let (shop, _, bought) = start().await;
    let renew = format!("/subscriptions/{bought}/renew");
    shop.stand_in.post(&renew, json!({"outcome": "fail"})).await;
    shop.settle().await;
    assert_eq!(shop.status(&bought).await, "past_due");
    let ended = end(&shop, &bought, "cancelled").await;
    assert_eq!(ended, (json!("canceled"), "expired".to_owned()));
}

#[tokio::test]
async fn cancelled_paused_subscription_ends_at_the_provider() {
    let (shop, _, bought) = start().await;
    let object = format!("subscriptions/{bought}");
    let pause = [("pause_collection[behavior]", "void")];
    shop.stand_in.stripe(&object, &pause).await;
    shop.settle().await;
    assert_eq!(shop.status(&bought).await, "paused");
    let ended = end(&shop, &bought, "cancelled").await;
    assert_eq!(ended, (json!("canceled"), "expired".to_owned()));
}

#[tokio::test]
async fn expired_active_subscription_ends_at_the_provider() {
    let (shop, _, bought) = start().await;
    let ended = end(&shop, &bought, "expired").await;
    assert_eq!(ended, (json!("canceled"), "expired".to_owned()));
    // The end that the provider reports is no command.
    let versions = "SELECT coalesce(sum(version), 0)::bigint FROM payment_commands";
    assert_eq!(shop.count(versions).await, 1);
}

#[tokio::test]
async fn cancellation_at_another_time_reaches_stripe_and_is_undone() {
    let (shop, _, bought) = start().await;
    let record = shop.subscription(&bought).await;
    for end in ["2030-01-01T00:00:00.000000Z", "2030-06-01T00:00:00.000000Z"] {
        let body = json!({"status": "cancelled", "ends_at": end}).to_string();
        let response = shop.api.put(&record_path(&record), &body).await;
        assert_eq!(response.status, 200, "{}", response.text);
        acknowledged(&shop).await;
        let object = shop.object(&bought).await;
        let expected: jiff::Timestamp = end.parse().unwrap();
        assert_eq!(object["cancel_at"], expected.as_second(), "{object}");
        assert_eq!(shop.subscription(&bought).await["ends_at"], end);
    }
    set_status(&shop, &bought, "", "active").await;
    acknowledged(&shop).await;
    let object = shop.object(&bought).await;
    assert!(object["cancel_at"].is_null(), "{object}");
}

#[tokio::test]
async fn local_change_and_deletion_tell_the_provider_nothing() {
    let (shop, _, bought) = start().await;
    set_status(&shop, &bought, "?local=true", "cancelled").await;
    let record = shop.subscription(&bought).await;
    shop.api.delete(&record_path(&record)).await;
    assert_eq!(shop.count("SELECT count(*) FROM payment_commands").await, 0);
    let object = shop.object(&bought).await;
    assert_eq!(object["cancel_at_period_end"], false, "{object}");
}

#[tokio::test]
async fn command_stays_while_the_provider_is_down_and_is_sent_after_its_return() {
    let (shop, _, bought) = start().await;
    let fault = json!({"kind": "status", "status": 503, "path": format!("/v1/subscriptions/{bought}"), "method": "POST"});
    shop.stand_in.add_fault(fault).await;
    set_status(&shop, &bought, "", "cancelled").await;
    wait_until("two attempts fail", LIMIT, async || {
        let failed = "SELECT coalesce(max(attempts), 0)::bigint FROM payment_commands WHERE reason LIKE '%503%'";
        shop.count(failed).await >= 2
    })
    .await;
    assert_eq!(pending_commands(&shop).await, 1);
    let command = ["payment-account", "show", &shop.account.id];
    let shown = run_ok(&shop.service.variables, &command);
    assert!(shown.contains("pending commands: 1"), "{shown}");
    shop.stand_in.clear_faults().await;
    acknowledged(&shop).await;
    assert_eq!(shop.object(&bought).await["cancel_at_period_end"], true);
}

/// Returns how many commands were acknowledged for a reason that matches a pattern.
async fn acknowledged_because(shop: &StripeShop, reason: &str) -> i64 {
    shop.count(&format!(
        "SELECT count(*) FROM payment_commands WHERE acknowledged_at IS NOT NULL AND reason LIKE '{reason}'"
    ))
    .await
}

#[tokio::test]
async fn command_about_an_ended_subscription_is_acknowledged() {
    let (shop, _, bought) = start().await;
    shop.stand_in.queue_notifications().await;
    let path = format!("/subscriptions/{bought}/cancel");
    shop.stand_in.post(&path, Value::Null).await;
    // The record does not know of the end yet.
    for status in ["cancelled", "active"] {
        set_status(&shop, &bought, "", status).await;
        wait_until("the command is acknowledged", LIMIT, async || {
            pending_commands(&shop).await == 0
        })
        .await;
        let reason = "the subscription has ended at the payment provider";
        assert_eq!(acknowledged_because(&shop, reason).await, 1, "{status}");
    }
}

#[tokio::test]
async fn command_about_an_unknown_subscription_is_acknowledged() {
    let (shop, _, bought) = start().await;
    let rename = "UPDATE payment_objects SET external_id = 'sub_unknown' WHERE external_id = $1";
    shop.database.execute(rename, &[&bought]).await.unwrap();
    set_status(&shop, &bought, "", "cancelled").await;
    acknowledged(&shop).await;
    let reason = "the payment provider has no such subscription";
    assert_eq!(acknowledged_because(&shop, reason).await, 1);
}

#[tokio::test]
async fn erasing_a_user_ends_the_subscription_at_the_provider() {
    let (shop, user, bought) = start().await;
    let erased = shop.api.delete(&format!("/users/{user}")).await;
    assert_eq!(erased.status, 204, "{}", erased.text);
    acknowledged(&shop).await;
    assert_eq!(shop.object(&bought).await["status"], "canceled");
    assert_eq!(shop.status(&bought).await, "expired");
}

#[tokio::test]
async fn user_cancels_a_subscription_that_an_account_runs() {
    let shop = StripeShop::start().await;
    run_ok(
        &shop.service.variables,
        &["tenant", "set", "--self-service", "on"],
    );
    shop.create_plan("pro").await;
    let page = shop.service.api(&["--kind", "publishable"]);
    let session = page.sign_up("ada@example.com").await;
    let user = page.with_bearer(session.access());
    let bought = buy(&shop, session.user()).await;
    let path = record_path(&shop.subscription(&bought).await);
    let cancel = r#"{"status": "cancelled"}"#;
    let local = user.put(&format!("{path}?local=true"), cancel).await;
    assert_eq!(local.status, 400, "{}", local.text);
    let cancelled = user.put(&path, cancel).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text);
    acknowledged(&shop).await;
    assert_eq!(shop.object(&bought).await["cancel_at_period_end"], true);
}

#[tokio::test]
async fn deleting_the_payment_account_gives_up_its_commands() {
    let (shop, _, bought) = start().await;
    let fault = json!({"kind": "status", "status": 503, "path": format!("/v1/subscriptions/{bought}"), "method": "POST"});
    shop.stand_in.add_fault(fault).await;
    set_status(&shop, &bought, "", "cancelled").await;
    assert_eq!(pending_commands(&shop).await, 1);
    let deleted = shop.api.delete(&shop.account.api_path()).await;
    assert_eq!(deleted.status, 204, "{}", deleted.text);
    let reason = "the payment account was deleted";
    assert_eq!(acknowledged_because(&shop, reason).await, 1);
}

#[tokio::test]
async fn lemon_squeezy_follows_a_cancellation_and_its_undoing() {
    let shop = LemonShop::start(true).await;
    let sold = shop.buy("USD", 1_999).await;
    shop.settle().await;
    let list = shop.api.get_json("/subscriptions").await;
    let path = record_path(&list["data"][0]);
    for (status, expected) in [("cancelled", true), ("active", false)] {
        let body = json!({ "status": status }).to_string();
        let response = shop.api.put(&path, &body).await;
        assert_eq!(response.status, 200, "{}", response.text);
        wait_until("the provider follows", LIMIT, async || {
            let accounts = shop.api.get_json("/payment-accounts").await;
            accounts["data"][0]["pending_commands"] == 0
        })
        .await;
        shop.settle().await;
        let resource = format!("subscriptions/{}", sold.subscription);
        let unchanged = json!({"type": "subscriptions", "id": sold.subscription, "attributes": {}});
        let resource = shop
            .stand_in
            .lemon_squeezy(reqwest::Method::PATCH, &resource, unchanged)
            .await;
        assert_eq!(resource["attributes"]["cancelled"], expected, "{resource}");
        assert_eq!(shop.status(&sold.subscription).await, status);
    }
}
