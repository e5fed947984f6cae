//! Records follow Lemon Squeezy, with and without an API key.

use perennial::payment_accounts::user_token;
use reqwest::Method;
use serde_json::{Value, json};
use tokio_postgres::Client;

use super::{
    super::{ACCOUNTS, LEMON_SECRET, TestAccount},
    LIMIT, latest_notification, payment_record, subscription_record, wait_until_clean,
};
use crate::{
    harness::{
        api::ApiClient,
        master_key::derived_keys,
        payment_stand_in::{PaymentStandIn, TEST_KEY},
        process::MASTER_KEY,
        service::Service,
        wait_until,
    },
    subscription_plans::minimal_plan,
    subscriptions::{create_user, record_path},
};

const EVENTS: [&str; 13] = [
    "order_created",
    "order_refunded",
    "subscription_created",
    "subscription_updated",
    "subscription_cancelled",
    "subscription_resumed",
    "subscription_expired",
    "subscription_paused",
    "subscription_unpaused",
    "subscription_payment_success",
    "subscription_payment_failed",
    "subscription_payment_recovered",
    "subscription_payment_refunded",
];

/// A service with an account of Lemon Squeezy, a plan, and a stand-in with one variant.
pub struct LemonShop {
    // The service stops before the stand-in.
    service: Service,
    pub api: ApiClient,
    pub stand_in: PaymentStandIn,
    pub account: TestAccount,
    variant: String,
    pub database: Client,
}

/// The payment provider's ids of what was bought.
pub struct Sold {
    pub subscription: String,
    pub invoice: String,
    pub order: String,
}

impl LemonShop {
    pub async fn start(has_api_key: bool) -> Self {
        let stand_in = PaymentStandIn::start("lemonsqueezy").await;
        let base = stand_in.url.clone();
        let service = Service::start_with(|variables| {
            variables.insert("PERENNIAL_LEMON_SQUEEZY_API_BASE", base);
        })
        .await;
        let api = service.api(&[]);
        let mut fields = json!({"provider": "lemonsqueezy", "mode": "test"});
        if has_api_key {
            fields["api_key"] = json!(TEST_KEY);
        }
        let created = api.create(ACCOUNTS, &fields).await;
        let account = TestAccount {
            id: created["id"].as_str().unwrap().to_owned(),
            secret: LEMON_SECRET.to_owned(),
            is_stripe: false,
            anonymous: service.anonymous(),
        };
        account.rotate(&api, LEMON_SECRET).await;
        let product = json!({"name": "Pro", "variants": [{"price": 1_999, "interval": "month"}]});
        let created = stand_in.post("/products", product).await;
        let variant = created["variants"][0]["id"].as_str().unwrap().to_owned();
        let url = format!("{}{}", service.server.url, account.path());
        let webhook = json!({
            "type": "webhooks",
            "attributes": {"url": url, "events": EVENTS, "secret": LEMON_SECRET},
            "relationships": {"store": {"data": {"type": "stores", "id": "1"}}},
        });
        stand_in
            .lemon_squeezy(Method::POST, "webhooks", webhook)
            .await;
        let mut plan = minimal_plan("pro");
        plan["variants"] = json!([variant]);
        api.create("/subscription-plans", &plan).await;
        Self {
            database: service.database.connect().await,
            service,
            api,
            stand_in,
            account,
            variant,
        }
    }

    /// Buys the variant for a price in minor units.
    pub async fn buy(&self, currency: &str, price: i64) -> Sold {
        self.buy_with(currency, price, json!({})).await
    }

    /// Buys a variant of a store.
    pub async fn buy_variant(&self, store: &str, variant: &str) -> Sold {
        self.complete((store, variant), json!({}), json!({})).await
    }

    async fn buy_with(&self, currency: &str, price: i64, custom: Value) -> Sold {
        let paid = json!({"currency": currency, "price": price});
        self.complete(("1", &self.variant), custom, paid).await
    }

    async fn complete(&self, (store, variant): (&str, &str), custom: Value, paid: Value) -> Sold {
        let relation = |kind: &str, id: &str| json!({"data": {"type": kind, "id": id}});
        let checkout = json!({
            "type": "checkouts",
            "attributes": {"checkout_data": {"email": "ada@example.com", "custom": custom}},
            "relationships": {"store": relation("stores", store), "variant": relation("variants", variant)},
        });
        let checkout = self
            .stand_in
            .lemon_squeezy(Method::POST, "checkouts", checkout)
            .await;
        let path = format!("/checkouts/{}/complete", checkout["id"].as_str().unwrap());
        let sold = self.stand_in.post(&path, paid).await;
        // A one-time order has no subscription.
        let id = |name: &str| sold[name]["id"].as_str().unwrap_or_default().to_owned();
        Sold {
            subscription: id("subscription"),
            invoice: id("invoice"),
            order: id("order"),
        }
    }

    /// Runs an import that creates plans, and returns its report.
    pub fn import_plans(&self) -> Value {
        let arguments = ["import", "lemonsqueezy", "--create-plans", "--json"];
        self.service.run_json(&arguments)
    }

    pub async fn settle(&self) {
        self.stand_in.settle().await;
        wait_until_clean(&self.database, "due_at IS NOT NULL").await;
    }

    pub async fn subscription(&self, external_id: &str) -> Value {
        subscription_record(&self.database, &self.api, external_id).await
    }

    pub async fn status(&self, external_id: &str) -> String {
        let subscription = self.subscription(external_id).await;
        subscription["status"].as_str().unwrap().to_owned()
    }

    pub async fn payment(&self, external_id: &str) -> Value {
        payment_record(&self.database, &self.api, external_id).await
    }

    /// Returns the payment that follows an invoice, with amounts as they are written.
    pub async fn payment_text(&self, external_id: &str) -> String {
        let payment = self.payment(external_id).await;
        self.api.get(&record_path(&payment)).await.text
    }

    /// Returns the latest notification about an invoice. Objects of different kinds have the same ids.
    pub async fn invoice_notification(&self, invoice: &str) -> Value {
        latest_notification(&self.database, &self.api, "invoice", invoice).await
    }

    async fn change(&self, sold: &Sold, action: &str, body: Value) {
        let path = format!("/subscriptions/{}/{action}", sold.subscription);
        self.stand_in.post(&path, body).await;
        self.settle().await;
    }

    async fn update(&self, sold: &Sold, attributes: Value) {
        let data =
            json!({"type": "subscriptions", "id": sold.subscription, "attributes": attributes});
        let path = format!("subscriptions/{}", sold.subscription);
        self.stand_in
            .lemon_squeezy(Method::PATCH, &path, data)
            .await;
        self.settle().await;
    }
}

/// The life of a subscription. Without an API key, the newest notification counts.
async fn follow_life(has_api_key: bool) {
    let shop = LemonShop::start(has_api_key).await;
    let user = create_user(&shop.api, "owner@example.com").await;
    let (keys, account) = (derived_keys(MASTER_KEY), shop.account.id.parse().unwrap());
    let token = user_token::sign(&keys, account, user.parse().unwrap());
    let custom = json!({"perennial_user": token});
    let sold = shop.buy_with("USD", 1_999, custom).await;
    shop.settle().await;
    let id = &sold.subscription;
    assert_eq!(shop.status(id).await, "active");
    let record = shop.subscription(id).await;
    assert_eq!(record["user_id"], user, "the signed value decides");
    let payment = shop.payment(&sold.invoice).await;
    assert_eq!(payment["status"], "completed");
    assert_eq!(payment["amount"], json!(19.99));
    let row = shop
        .database
        .query_one("SELECT count(*) FROM subscription_payments", &[])
        .await;
    assert_eq!(
        row.unwrap().get::<_, i64>(0),
        1,
        "an order is the same money"
    );
    let order =
        "SELECT state FROM payment_notifications WHERE object_kind = 'order' AND object_id = $1";
    let row = shop.database.query_one(order, &[&sold.order]).await;
    assert_eq!(row.unwrap().get::<_, String>(0), "ignored");

    // The version of an object has whole seconds; without the API, changes of one second differ by status only.
    let next_second = async || {
        shop.stand_in.post("/clock", json!({"seconds": 1})).await;
    };
    next_second().await;
    shop.change(&sold, "renew", json!({"outcome": "fail"}))
        .await;
    assert_eq!(shop.status(id).await, "past_due");
    next_second().await;
    shop.change(&sold, "recover", json!({})).await;
    assert_eq!(shop.status(id).await, "active");
    next_second().await;
    shop.update(&sold, json!({"pause": {"mode": "void"}})).await;
    assert_eq!(shop.status(id).await, "paused");
    next_second().await;
    shop.update(&sold, json!({"pause": null})).await;
    assert_eq!(shop.status(id).await, "active");
    next_second().await;
    let refund = format!("/subscription-invoices/{}/refund", sold.invoice);
    shop.stand_in.post(&refund, json!({"amount": 500})).await;
    shop.settle().await;
    let refunded = shop.payment(&sold.invoice).await;
    assert_eq!(refunded["status"], "partially_refunded");
    assert_eq!(refunded["refunded_amount"], json!(5.0));
    next_second().await;
    shop.change(&sold, "cancel", json!({})).await;
    assert_eq!(shop.status(id).await, "cancelled");
    next_second().await;
    shop.change(&sold, "expire", json!({})).await;
    assert_eq!(shop.status(id).await, "expired");
}

#[tokio::test]
async fn subscription_follows_lemon_squeezy_through_its_life() {
    follow_life(true).await;
}

#[tokio::test]
async fn subscription_follows_notifications_without_an_api_key() {
    follow_life(false).await;
}

#[tokio::test]
async fn older_notification_is_not_applied_without_an_api_key() {
    let shop = LemonShop::start(false).await;
    shop.stand_in.queue_notifications().await;
    let sold = shop.buy("USD", 1_999).await;
    let before = shop.stand_in.notifications("queued").await;
    shop.stand_in.post("/clock", json!({"seconds": 5})).await;
    let path = format!("/subscriptions/{}/cancel", sold.subscription);
    shop.stand_in.post(&path, json!({})).await;
    let mut all = shop.stand_in.notifications("queued").await;
    all.rotate_left(before.len());
    for notification in &all {
        shop.stand_in
            .deliver(std::slice::from_ref(notification))
            .await;
        shop.settle().await;
    }
    assert_eq!(shop.status(&sold.subscription).await, "cancelled");
    assert_eq!(shop.payment(&sold.invoice).await["status"], "completed");
}

/// The API does not return the signed value. Without the notification that has it, another user would get the subscription.
#[tokio::test]
async fn signed_user_is_awaited_if_the_invoice_is_processed_first() {
    let shop = LemonShop::start(true).await;
    let user = create_user(&shop.api, "owner@example.com").await;
    create_user(&shop.api, "ada@example.com").await;
    let (keys, account) = (derived_keys(MASTER_KEY), shop.account.id.parse().unwrap());
    let token = user_token::sign(&keys, account, user.parse().unwrap());
    shop.stand_in.queue_notifications().await;
    let custom = json!({"perennial_user": token});
    let sold = shop.buy_with("USD", 1_999, custom).await;
    let queued = shop
        .stand_in
        .control(Method::GET, "/notifications?state=queued", Value::Null)
        .await;
    let (invoice, others): (Vec<&Value>, Vec<&Value>) = { queued.as_array().unwrap().iter() }
        .partition(|notification| notification["type"] == "subscription_payment_success");
    let ids = |notifications: &[&Value]| -> Vec<String> {
        let ids = notifications.iter().map(|item| &item["id"]);
        ids.map(|id| id.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(invoice.len(), 1, "{queued}");
    shop.stand_in.deliver(&ids(&invoice)).await;
    let waiting = "waits_for IS NULL OR leased_until IS NOT NULL";
    wait_until_clean(
        &shop.database,
        &format!("due_at IS NOT NULL AND ({waiting})"),
    )
    .await;
    let row = shop
        .database
        .query_one("SELECT count(*) FROM subscriptions", &[])
        .await;
    assert_eq!(
        row.unwrap().get::<_, i64>(0),
        0,
        "the user is not known yet"
    );
    shop.stand_in.deliver(&ids(&others)).await;
    shop.settle().await;
    let record = subscription_record(&shop.database, &shop.api, &sold.subscription).await;
    assert_eq!(record["user_id"], user, "the signed value decides");
    assert_eq!(shop.payment(&sold.invoice).await["status"], "completed");
}

/// The API key does not tell its mode. A test account with a live key must neither follow nor cancel live subscriptions.
#[tokio::test]
async fn object_of_the_other_mode_is_neither_applied_nor_cancelled() {
    let shop = LemonShop::start(true).await;
    let sold = shop.buy("USD", 1_999).await;
    shop.settle().await;
    let id = &sold.subscription;
    let overrides = format!("/objects/subscriptions/{id}/overrides");
    let live = json!({"fields": {"test_mode": false, "status": "past_due"}, "event": "subscription_updated"});
    shop.stand_in.post(&overrides, live).await;
    shop.settle().await;
    assert_eq!(shop.status(id).await, "active", "the record stays");
    let failed = latest_notification(&shop.database, &shop.api, "subscription", id).await;
    assert_eq!(failed["state"], "failed", "{failed}");
    let reason = failed["reason"].as_str().unwrap();
    assert!(
        reason.contains("not for the account's mode, test"),
        "{reason}"
    );

    let record = subscription_record(&shop.database, &shop.api, id).await;
    let cancel = json!({"status": "cancelled"}).to_string();
    let response = shop.api.put(&record_path(&record), &cancel).await;
    assert_eq!(response.status, 200, "{}", response.text);
    let rejected = "SELECT count(*) FROM payment_commands WHERE attempts > 0";
    wait_until("the command is rejected", LIMIT, async || {
        let row = shop.database.query_one(rejected, &[]).await.unwrap();
        row.get::<_, i64>(0) == 1
    })
    .await;
    let requests = shop
        .stand_in
        .control(Method::GET, "/requests", Value::Null)
        .await;
    assert!(!requests.to_string().contains("DELETE"), "{requests}");
}
