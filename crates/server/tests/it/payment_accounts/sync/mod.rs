//! Records follow the stand-ins of payment providers: fetching, applying, matching and retrying.

mod convergence;
mod faults;
pub mod lemon_squeezy;
mod lifecycle;
mod managed;
mod matching;
mod money;
mod order;
mod removed;

use std::time::Duration;

use perennial_domain::{Id, PaymentId, SubscriptionId};
use serde_json::{Value, json};
use tokio_postgres::Client;
use uuid::Uuid;

use super::{ACCOUNTS, TestAccount};
use crate::{
    harness::{
        api::ApiClient,
        payment_stand_in::{PaymentStandIn, TEST_KEY},
        service::Service,
        wait_until,
    },
    subscription_plans::minimal_plan,
};

/// The types of events that change records.
const STRIPE_EVENTS: [&str; 20] = [
    "customer.subscription.created",
    "customer.subscription.deleted",
    "customer.subscription.paused",
    "customer.subscription.resumed",
    "customer.subscription.updated",
    "checkout.session.completed",
    "invoice.finalized",
    "invoice.marked_uncollectible",
    "invoice.paid",
    "invoice.payment_action_required",
    "invoice.payment_failed",
    "invoice.updated",
    "invoice.voided",
    "charge.refunded",
    "refund.created",
    "refund.updated",
    "charge.dispute.created",
    "charge.dispute.updated",
    "charge.dispute.closed",
    "charge.dispute.funds_reinstated",
];

pub const LIMIT: Duration = Duration::from_mins(1);

/// A service with an account of Stripe that is connected to a stand-in.
pub struct StripeShop {
    // The service stops before the stand-in.
    pub service: Service,
    pub api: ApiClient,
    pub stand_in: PaymentStandIn,
    pub account: TestAccount,
    /// The stand-in's webhook endpoint.
    pub endpoint: String,
    pub database: Client,
}

impl StripeShop {
    pub async fn start() -> Self {
        let stand_in = PaymentStandIn::start("stripe").await;
        let base = stand_in.url.clone();
        let service = Service::start_with(|variables| {
            variables.insert("PERENNIAL_STRIPE_API_BASE", base);
        })
        .await;
        let api = service.api(&[]);
        let fields = json!({"provider": "stripe", "mode": "test", "api_key": TEST_KEY});
        let created = api.create(ACCOUNTS, &fields).await;
        let id = created["id"].as_str().unwrap().to_owned();
        let url = format!("{}/payment-notifications/{id}", service.server.url);
        let mut form = vec![("url", url.as_str())];
        form.extend(STRIPE_EVENTS.map(|name| ("enabled_events[]", name)));
        let endpoint = stand_in.stripe("webhook_endpoints", &form).await;
        let secret = endpoint["secret"].as_str().unwrap().to_owned();
        let account = TestAccount {
            id,
            secret,
            is_stripe: true,
            anonymous: service.anonymous(),
        };
        account.rotate(&api, &account.secret).await;
        Self {
            database: service.database.connect().await,
            endpoint: id_of(&endpoint),
            service,
            api,
            stand_in,
            account,
        }
    }

    /// Creates a monthly price, and returns its id and that of its product.
    pub async fn create_price(&self, currency: &str, units: &str) -> (String, String) {
        let form = [
            ("currency", currency),
            ("unit_amount", units),
            ("recurring[interval]", "month"),
            ("product_data[name]", "Pro"),
        ];
        let price = self.stand_in.stripe("prices", &form).await;
        let product = price["product"].as_str().unwrap().to_owned();
        (id_of(&price), product)
    }

    /// Creates a price of 19.99 USD and a plan that has it.
    pub async fn create_plan(&self, slug: &str) -> String {
        let (price, _) = self.create_price("usd", "1999").await;
        self.create_plan_for(slug, &price).await;
        price
    }

    pub async fn create_plan_for(&self, slug: &str, price: &str) -> Value {
        let mut plan = minimal_plan(slug);
        plan["variants"] = json!([price]);
        self.api.create("/subscription-plans", &plan).await
    }

    /// Creates a customer with a card that succeeds.
    pub async fn create_customer(&self, email: &str) -> String {
        let card = "pm_card_visa";
        let form = [
            ("email", email),
            ("payment_method", card),
            ("invoice_settings[default_payment_method]", card),
        ];
        let form = if email.is_empty() {
            &form[1..]
        } else {
            &form[..]
        };
        id_of(&self.stand_in.stripe("customers", form).await)
    }

    /// Subscribes a customer to a price, with further parameters, and returns the id.
    pub async fn subscribe(&self, customer: &str, price: &str, more: &[(&str, &str)]) -> String {
        let form = [("customer", customer), ("items[0][price]", price)];
        let form = [&form[..], more].concat();
        id_of(&self.stand_in.stripe("subscriptions", &form).await)
    }

    /// Returns the stand-in's object.
    pub async fn object(&self, id: &str) -> Value {
        let path = format!("/objects/{id}");
        self.stand_in
            .control(reqwest::Method::GET, &path, Value::Null)
            .await
    }

    pub async fn latest_invoice(&self, subscription: &str) -> String {
        let subscription = self.object(subscription).await;
        subscription["latest_invoice"].as_str().unwrap().to_owned()
    }

    /// Waits until all notifications were received and no object is to be fetched.
    pub async fn settle(&self) {
        self.stand_in.settle().await;
        self.wait_until_clean("due_at IS NOT NULL").await;
    }

    /// Waits until no object is to be fetched, except those that wait for a record.
    pub async fn settle_or_wait(&self) {
        self.stand_in.settle().await;
        let dirty = "due_at IS NOT NULL AND (waits_for IS NULL OR leased_until IS NOT NULL)";
        self.wait_until_clean(dirty).await;
    }

    async fn wait_until_clean(&self, dirty: &str) {
        wait_until_clean(&self.database, dirty).await;
    }

    /// Returns the subscription that follows an object.
    pub async fn subscription(&self, external_id: &str) -> Value {
        subscription_record(&self.database, &self.api, external_id).await
    }

    pub async fn status(&self, external_id: &str) -> String {
        let subscription = self.subscription(external_id).await;
        subscription["status"].as_str().unwrap().to_owned()
    }

    /// Returns the payment that follows an invoice.
    pub async fn payment(&self, external_id: &str) -> Value {
        payment_record(&self.database, &self.api, external_id).await
    }

    /// Returns the latest notification about an object.
    pub async fn notification(&self, object: &str) -> Value {
        latest_notification(&self.database, &self.api, "%", object).await
    }

    pub async fn count(&self, query: &str) -> i64 {
        self.database.query_one(query, &[]).await.unwrap().get(0)
    }

    /// Sends an event about an object, as after a change.
    pub async fn emit(&self, kind: &str, object: &str) {
        let event = json!({"type": kind, "object": object});
        self.stand_in.post("/events", event).await;
    }
}

pub fn id_of(value: &Value) -> String {
    value["id"].as_str().unwrap().to_owned()
}

pub async fn wait_until_clean(database: &Client, dirty: &str) {
    let query = format!("SELECT count(*) FROM payment_objects WHERE {dirty}");
    wait_until("no object is dirty", LIMIT, async || {
        let row = database.query_one(&query, &[]).await.unwrap();
        row.get::<_, i64>(0) == 0
    })
    .await;
}

pub async fn subscription_record(database: &Client, api: &ApiClient, external_id: &str) -> Value {
    let query = "SELECT id FROM subscriptions WHERE external_id = $1 AND deleted_at IS NULL";
    let row = database.query_one(query, &[&external_id]).await.unwrap();
    let id = SubscriptionId::new(row.get::<_, Uuid>(0));
    api.get_json(&format!("/subscriptions/{id}")).await
}

pub async fn payment_record(database: &Client, api: &ApiClient, external_id: &str) -> Value {
    let query =
        "SELECT id FROM subscription_payments WHERE external_id = $1 AND deleted_at IS NULL";
    let row = database.query_one(query, &[&external_id]).await.unwrap();
    let id = PaymentId::new(row.get::<_, Uuid>(0));
    api.get_json(&format!("/subscription-payments/{id}")).await
}

/// Returns the latest notification about an object whose kind matches a pattern.
pub async fn latest_notification(
    database: &Client,
    api: &ApiClient,
    kind: &str,
    object: &str,
) -> Value {
    let query = "SELECT id FROM payment_notifications WHERE object_kind LIKE $1 AND object_id = $2
        ORDER BY created_at DESC, id DESC LIMIT 1";
    let row = database.query_one(query, &[&kind, &object]).await.unwrap();
    let id = perennial_domain::PaymentNotificationId::new(row.get::<_, Uuid>(0));
    api.get_json(&format!("/payment-notifications/{id}")).await
}
