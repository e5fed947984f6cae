//! Payment accounts: the API, and the notifications of payment providers.

mod accounts;
mod import;
mod import_outcomes;
mod import_plans;
mod kills;
mod limits;
mod notifications;
mod operations;
mod outages;
mod outbound;
mod receiving;
mod reconcile;
mod rotation;
mod sdk_signatures;
mod signatures;
mod sync;

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::harness::api::{ApiClient, ApiResponse};

const ACCOUNTS: &str = "/payment-accounts";
const STRIPE_SECRET: &str = "whsec_first_secret";
const LEMON_SECRET: &str = "a-chosen-secret";

pub fn hex_signature(secret: &str, message: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(message);
    hex::encode(mac.finalize().into_bytes())
}

/// Returns the header `Stripe-Signature` of a body that is signed at a time in Unix seconds.
pub fn stripe_signature(secret: &str, seconds: i64, body: &[u8]) -> String {
    let message = [format!("{seconds}.").as_bytes(), body].concat();
    format!("t={seconds},v1={}", hex_signature(secret, &message))
}

/// A payment account with a secret, and an API client that sends its notifications.
#[derive(Clone)]
pub struct TestAccount {
    pub id: String,
    pub secret: String,
    is_stripe: bool,
    anonymous: ApiClient,
}

impl TestAccount {
    /// Creates an account of Stripe.
    pub async fn stripe(api: &ApiClient, anonymous: &ApiClient) -> Self {
        let fields = json!({"provider": "stripe", "mode": "test", "api_key": "rk_test_1"});
        Self::create(api, anonymous, &fields, STRIPE_SECRET).await
    }

    /// Creates an account of Lemon Squeezy.
    pub async fn lemon_squeezy(api: &ApiClient, anonymous: &ApiClient) -> Self {
        let fields = json!({"provider": "lemonsqueezy", "mode": "test"});
        Self::create(api, anonymous, &fields, LEMON_SECRET).await
    }

    async fn create(api: &ApiClient, anonymous: &ApiClient, fields: &Value, secret: &str) -> Self {
        let created = api.create(ACCOUNTS, fields).await;
        let account = Self {
            id: created["id"].as_str().unwrap().to_owned(),
            secret: secret.to_owned(),
            is_stripe: fields["provider"] == "stripe",
            anonymous: anonymous.clone(),
        };
        account.rotate(api, secret).await;
        account
    }

    pub async fn rotate(&self, api: &ApiClient, secret: &str) -> Value {
        let path = format!("{}/rotate-secret", self.api_path());
        let body = json!({ "secret": secret }).to_string();
        let rotated = api.post(&path, &body).await;
        assert_eq!(rotated.status, 200, "{}", rotated.text);
        rotated.json()
    }

    pub fn api_path(&self) -> String {
        format!("{ACCOUNTS}/{}", self.id)
    }

    pub fn path(&self) -> String {
        format!("/payment-notifications/{}", self.id)
    }

    pub fn header(&self) -> &'static str {
        if self.is_stripe {
            "stripe-signature"
        } else {
            "x-signature"
        }
    }

    /// Returns a valid signature of a body, now.
    pub fn sign(&self, body: &[u8]) -> String {
        if self.is_stripe {
            stripe_signature(&self.secret, Timestamp::now().as_second(), body)
        } else {
            hex_signature(&self.secret, body)
        }
    }

    pub async fn send(&self, body: &[u8]) -> ApiResponse {
        self.send_with(&self.sign(body), body).await
    }

    /// Sends a body with this value of the signature header.
    pub async fn send_with(&self, signature: &str, body: &[u8]) -> ApiResponse {
        let signed = self.anonymous.with(self.header(), signature);
        signed
            .send(Method::POST, &self.path(), Some(body.to_vec()))
            .await
    }

    /// Sends an event that must be accepted, and returns the id of its notification.
    pub async fn accept(&self, event: &Value) -> String {
        let response = self.send(event.to_string().as_bytes()).await;
        assert_eq!(response.status, 200, "{}", response.text);
        response.json()["id"].as_str().unwrap().to_owned()
    }
}

/// Returns an event of Stripe about a subscription.
pub fn subscription_event(id: &str, subscription: &str) -> Value {
    stripe_event(
        id,
        "customer.subscription.updated",
        &json!({"id": subscription, "object": "subscription"}),
    )
}

pub fn stripe_event(id: &str, event_type: &str, object: &Value) -> Value {
    json!({
        "id": id, "object": "event", "type": event_type, "livemode": false, "data": {"object": object},
    })
}

/// Returns a webhook request of Lemon Squeezy.
pub fn lemon_event(name: &str, data_type: &str, id: &str) -> Value {
    json!({
        "meta": {"event_name": name, "test_mode": true, "webhook_id": format!("w-{name}-{id}")},
        "data": {"type": data_type, "id": id, "attributes": {"store_id": 7}},
    })
}
