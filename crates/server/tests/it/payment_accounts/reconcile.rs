//! Changes whose notifications were lost are found by the reconcile.

use std::time::{Duration, Instant};

use perennial_domain::{Id, PaymentAccountId};
use serde_json::json;
use tokio_postgres::Client;

use super::{
    ACCOUNTS,
    sync::{StripeShop, id_of, lemon_squeezy::LemonShop},
};
use crate::{
    harness::{payment_stand_in::TEST_KEY, wait_until},
    subscription_plans::minimal_plan,
};

const LIMIT: Duration = Duration::from_mins(1);
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
async fn reconcile_waits_as_long_as_a_rate_limit_says() {
    let shop = StripeShop::start().await;
    let price = shop.create_plan("pro").await;
    reconcile(&shop).await;
    shop.stand_in.queue_notifications().await;
    let customer = shop.create_customer("ada@example.com").await;
    let id = shop.subscribe(&customer, &price, &[]).await;
    drop_notifications(&shop).await;
    let limited = json!({"kind": "status", "status": 429, "retry_after": 1, "path": "/v1/events", "count": 2});
    shop.stand_in.add_fault(limited).await;
    let started_at = Instant::now();
    reconcile(&shop).await;
    assert_eq!(shop.status(&id).await, "active");
    assert!(started_at.elapsed() > Duration::from_secs(2));
}

#[tokio::test]
async fn objects_of_another_store_are_not_followed() {
    let shop = LemonShop::start(true).await;
    let store = shop
        .stand_in
        .post("/stores", json!({"name": "Other"}))
        .await;
    let store = store["id"].as_str().unwrap();
    let own = json!({"external_account_id": "1"}).to_string();
    let limited = shop.api.put(&shop.account.api_path(), &own).await;
    assert_eq!(limited.status, 200, "{}", limited.text);
    let product = json!({"name": "Pro", "store_id": store, "variants": [{"price": 1_999, "interval": "month"}]});
    let created = shop.stand_in.post("/products", product).await;
    let variant = created["variants"][0]["id"].as_str().unwrap();
    let mut plan = minimal_plan("other");
    plan["variants"] = json!([variant]);
    shop.api.create("/subscription-plans", &plan).await;
    let own = shop.buy("USD", 1_999).await;
    let foreign = shop.buy_variant(store, variant).await;
    shop.settle().await;
    run_reconcile(&shop.database).await;
    shop.settle().await;
    assert_eq!(shop.status(&own.subscription).await, "active");
    let row = shop
        .database
        .query_one("SELECT count(*) FROM subscriptions", &[])
        .await;
    assert_eq!(row.unwrap().get::<_, i64>(0), 1, "{}", foreign.subscription);
    // The object is not followed either if a notification hides its store.
    let hint = "UPDATE payment_objects SET wanted = wanted + 1, due_at = now() WHERE kind = 'subscription' AND external_id = $1";
    let insert = "INSERT INTO payment_objects (tenant_id, account_id, kind, external_id, wanted, created_at, updated_at)
        SELECT tenant_id, id, 'subscription', $1, 0, now(), now() FROM payment_accounts ON CONFLICT DO NOTHING";
    for statement in [insert, hint] {
        let id = &foreign.subscription;
        shop.database.execute(statement, &[id]).await.unwrap();
    }
    shop.settle().await;
    let row = shop
        .database
        .query_one("SELECT count(*) FROM subscriptions", &[])
        .await;
    assert_eq!(row.unwrap().get::<_, i64>(0), 1);
}

#[tokio::test]
async fn order_whose_notification_was_lost_is_found() {
    let shop = LemonShop::start(true).await;
    run_reconcile(&shop.database).await;
    shop.stand_in.queue_notifications().await;
    let product = json!({"name": "Forever", "variants": [{"price": 29_900}]});
    let created = shop.stand_in.post("/products", product).await;
    let variant = created["variants"][0]["id"].as_str().unwrap();
    let mut plan = minimal_plan("forever");
    plan["billing_cycle"] = json!("lifetime");
    plan["variants"] = json!([variant]);
    shop.api.create("/subscription-plans", &plan).await;
    let sold = shop.buy_variant("1", variant).await;
    let ids = shop.stand_in.notifications("queued").await;
    let drop = json!({ "ids": ids });
    shop.stand_in.post("/notifications/drop", drop).await;
    // A new order waits for its notification, which may name the user.
    let overrides = format!("/objects/orders/{}/overrides", sold.order);
    let an_hour_ago = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(1);
    let old = json!({"fields": {"created_at": an_hour_ago.to_string()}});
    shop.stand_in.post(&overrides, old).await;
    run_reconcile(&shop.database).await;
    shop.settle().await;
    let id = format!("order_{}", sold.order);
    assert_eq!(shop.status(&id).await, "active");
    assert_eq!(shop.payment(&id).await["status"], "completed");
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
