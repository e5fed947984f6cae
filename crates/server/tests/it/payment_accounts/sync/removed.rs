//! Facts about records that were deleted, and about subscriptions of erased users.

use serde_json::json;

use super::{StripeShop, latest_notification, lemon_squeezy::LemonShop};
use crate::{harness::wait_until, payment_accounts::sync::LIMIT, subscriptions::record_path};

#[tokio::test]
async fn subscription_of_an_erased_user_is_not_reopened() {
    let shop = LemonShop::start(true).await;
    let sold = shop.buy("USD", 1_999).await;
    shop.settle().await;
    let record = shop.subscription(&sold.subscription).await;
    let user = record["user_id"].as_str().unwrap();
    let erased = shop.api.delete(&format!("/users/{user}")).await;
    assert_eq!(erased.status, 204, "{}", erased.text);
    // Lemon Squeezy ends the subscription at the end of the period, and reports it until then.
    let notification = async || {
        let (database, api) = (&shop.database, &shop.api);
        latest_notification(database, api, "subscription", &sold.subscription).await
    };
    wait_until("the cancellation is reported", LIMIT, async || {
        shop.settle().await;
        notification().await["state"] == "ignored"
    })
    .await;
    let ignored = notification().await;
    assert_eq!(ignored["reason"], "the user was erased");
    assert_eq!(shop.status(&sold.subscription).await, "expired");
    let row = shop
        .database
        .query_one("SELECT count(*) FROM users WHERE email <> \'\'", &[])
        .await;
    assert_eq!(row.unwrap().get::<_, i64>(0), 0, "no address is stored");
    let row = shop
        .database
        .query_one(
            "SELECT count(*) FROM payment_objects WHERE due_at IS NOT NULL",
            &[],
        )
        .await;
    assert_eq!(row.unwrap().get::<_, i64>(0), 0, "nothing is fetched again");
}

#[tokio::test]
async fn deleted_subscription_stays_deleted_and_its_payment_can_be_refunded() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    shop.settle().await;
    let record = shop.subscription(&id).await;
    let deleted = shop.api.delete(&record_path(&record)).await;
    assert_eq!(deleted.status, 204, "{}", deleted.text);
    let invoice = shop.latest_invoice(&id).await;
    let refund = format!("/invoices/{invoice}/refund");
    shop.stand_in.post(&refund, json!({})).await;
    let renew = format!("/subscriptions/{id}/renew");
    shop.stand_in.post(&renew, json!({})).await;
    shop.settle().await;
    let renewal = shop.latest_invoice(&id).await;
    for object in [&id, &renewal] {
        let ignored = shop.notification(object).await;
        assert_eq!(ignored["state"], "ignored", "{ignored}");
        assert_eq!(ignored["reason"], "the subscription was deleted");
    }
    let live = "SELECT count(*) FROM subscriptions WHERE deleted_at IS NULL";
    assert_eq!(shop.count(live).await, 0);
    assert_eq!(shop.payment(&invoice).await["status"], "refunded");
    assert_eq!(
        shop.count("SELECT count(*) FROM subscription_payments")
            .await,
        1
    );
}
