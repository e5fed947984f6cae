//! Changes whose notifications were lost are found by the reconcile.

use std::time::Duration;

use perennial_domain::{Id, PaymentAccountId};
use serde_json::json;
use tokio_postgres::Client;

use super::{
    ACCOUNTS,
    sync::{StripeShop, id_of},
};
use crate::harness::{payment_stand_in::TEST_KEY, wait_until};

const LIMIT: Duration = Duration::from_secs(60);
const TASK: &str = "task = 'payment_accounts.reconcile'";

/// Runs the hourly task now, and waits for its end.
pub async fn run_reconcile(database: &Client) {
    let make_due = format!("UPDATE task_leases SET next_run_at = now() WHERE {TASK}");
    wait_until("the task is due", LIMIT, async || {
        database.execute(&make_due, &[]).await.unwrap() == 1
    })
    .await;
    let done = format!(
        "SELECT count(*) FROM task_leases WHERE {TASK} AND next_run_at > now() AND held_by IS NULL"
    );
    wait_until("accounts are reconciled", LIMIT, async || {
        let row = database.query_one(&done, &[]).await.unwrap();
        row.get::<_, i64>(0) == 1
    })
    .await;
}

/// Reconciles, and waits until the objects that it has found are applied.
async fn reconcile(shop: &StripeShop) {
    run_reconcile(&shop.service.database.connect().await).await;
    shop.settle().await;
}

/// Loses all notifications of the changes that were made since they are queued.
async fn drop_notifications(shop: &StripeShop) {
    let ids = shop.stand_in.notifications("queued").await;
    assert!(!ids.is_empty());
    shop.stand_in
        .post("/notifications/drop", json!({ "ids": ids }))
        .await;
}

#[tokio::test]
async fn reconcile_repairs_a_day_without_notifications() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    let first = shop.subscribe(&customer, &price, &[]).await;
    shop.settle().await;
    // Without a cursor, all subscriptions are listed.
    reconcile(&shop).await;
    let with_cursor = "SELECT count(*) FROM payment_accounts WHERE cursor IS NOT NULL AND last_reconciled_at IS NOT NULL";
    assert_eq!(shop.count(with_cursor).await, 1);

    shop.stand_in.queue_notifications().await;
    let invoice = shop.latest_invoice(&first).await;
    let cancel = [("cancel_at_period_end", "true")];
    let object = format!("subscriptions/{first}");
    shop.stand_in.stripe(&object, &cancel).await;
    shop.stand_in
        .post(&format!("/invoices/{invoice}/refund"), json!({}))
        .await;
    let second = shop.subscribe(&customer, &price, &[]).await;
    drop_notifications(&shop).await;
    assert_eq!(shop.status(&first).await, "active");

    reconcile(&shop).await;
    assert_eq!(shop.status(&first).await, "cancelled");
    assert_eq!(shop.payment(&invoice).await["status"], "refunded");
    assert_eq!(shop.status(&second).await, "active");
    let invoice = shop.latest_invoice(&second).await;
    assert_eq!(shop.payment(&invoice).await["status"], "completed");

    let events = "SELECT count(*) FROM events WHERE kind LIKE 'subscription%'";
    let before = shop.count(events).await;
    reconcile(&shop).await;
    assert_eq!(shop.count(events).await, before, "nothing was missed");
}

#[tokio::test]
async fn reconcile_without_a_cursor_lists_subscriptions_and_recent_invoices() {
    let shop = StripeShop::start().await;
    shop.stand_in.queue_notifications().await;
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    drop_notifications(&shop).await;
    reconcile(&shop).await;
    assert_eq!(shop.status(&id).await, "active");
    let invoice = shop.latest_invoice(&id).await;
    assert_eq!(shop.payment(&invoice).await["status"], "completed");

    // A cursor that Stripe has forgotten, and a last run that is too long ago.
    let forget = "UPDATE payment_accounts SET cursor = 'evt_forgotten', last_reconciled_at = now() - interval '40 days'";
    let database = shop.service.database.connect().await;
    database.execute(forget, &[]).await.unwrap();
    let cancel = [("cancel_at_period_end", "true")];
    let object = format!("subscriptions/{id}");
    shop.stand_in.stripe(&object, &cancel).await;
    drop_notifications(&shop).await;
    reconcile(&shop).await;
    assert_eq!(shop.status(&id).await, "cancelled");

    // Only the cursor is unknown: events since the last run are listed.
    let forget = "UPDATE payment_accounts SET cursor = 'evt_forgotten'";
    database.execute(forget, &[]).await.unwrap();
    let resume = [("cancel_at_period_end", "false")];
    shop.stand_in.stripe(&object, &resume).await;
    drop_notifications(&shop).await;
    reconcile(&shop).await;
    assert_eq!(shop.status(&id).await, "active");
    let known = "SELECT count(*) FROM payment_accounts WHERE cursor <> 'evt_forgotten'";
    assert_eq!(shop.count(known).await, 1);
}

/// An account whose key cannot be decrypted is always the first one, because it was never reconciled.
#[tokio::test]
async fn account_that_fails_does_not_keep_others_from_being_reconciled() {
    let shop = StripeShop::start().await;
    let database = shop.service.database.connect().await;
    let fields = json!({"provider": "stripe", "mode": "test", "api_key": TEST_KEY});
    let broken = id_of(&shop.api.create(ACCOUNTS, &fields).await);
    let broken: PaymentAccountId = broken.parse().unwrap();
    let break_key = "UPDATE payment_accounts SET api_key = 'x' WHERE id = $1";
    let changed = database.execute(break_key, &[&broken.uuid()]).await;
    assert_eq!(changed.unwrap(), 1);
    run_reconcile(&database).await;
    let others = "SELECT count(*) FROM payment_accounts WHERE last_reconciled_at IS NOT NULL";
    assert_eq!(shop.count(others).await, 1);
}

/// The lists have no refund of an invoice that is older than 30 days, but the events that are left do.
#[tokio::test]
async fn refund_of_an_old_invoice_is_found_after_a_month_without_a_run() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    let customer = shop.create_customer("ada@example.com").await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    shop.settle().await;
    let invoice = shop.latest_invoice(&id).await;
    reconcile(&shop).await;
    let overrides = format!("/objects/{invoice}/overrides");
    let old = (jiff::Timestamp::now() - jiff::SignedDuration::from_hours(60 * 24)).as_second();
    shop.stand_in
        .post(&overrides, json!({"fields": {"created": old}}))
        .await;
    shop.stand_in.queue_notifications().await;
    let refund = format!("/invoices/{invoice}/refund");
    shop.stand_in.post(&refund, json!({})).await;
    drop_notifications(&shop).await;
    let database = shop.service.database.connect().await;
    let forget = "UPDATE payment_accounts SET last_reconciled_at = now() - interval '40 days'";
    database.execute(forget, &[]).await.unwrap();
    reconcile(&shop).await;
    assert_eq!(shop.payment(&invoice).await["status"], "refunded");
}
