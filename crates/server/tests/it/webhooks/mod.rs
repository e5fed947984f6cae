//! Webhook endpoints: the API, deliveries, and what an endpoint can do wrong.

mod certificates;
mod claims;
mod delivery;
mod endpoints;
mod failures;
mod guide;
mod internal_addresses;
mod killed_workers;
mod libraries;
mod outages;
mod starting_position;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::harness::{
    api::ApiClient,
    process::Variables,
    service::Service,
    wait_until,
    webhook_receiver::{ReceivedWebhook, WebhookReceiver},
};

/// Allows endpoints on the loopback interface.
pub fn allow_loopback(variables: &mut Variables) {
    variables.insert("PERENNIAL_WEBHOOK_NETWORKS", "127.0.0.0/8".to_owned());
}

/// A server process whose webhook requests can reach the test.
pub async fn start() -> (Service, ApiClient) {
    let service = Service::start_with(allow_loopback).await;
    let api = service.api(&[]);
    (service, api)
}

pub async fn create_endpoint(api: &ApiClient, receiver: &WebhookReceiver, fields: Value) -> Value {
    let mut body = json!({"url": receiver.url});
    body.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    api.create("/webhook-endpoints", &body).await
}

fn path(endpoint: &Value) -> String {
    format!("/webhook-endpoints/{}", endpoint["id"].as_str().unwrap())
}

pub async fn create_plan(api: &ApiClient, slug: &str) -> Value {
    let plan = json!({"name": slug, "slug": slug, "price": 1, "billing_cycle": "monthly"});
    api.create("/subscription-plans", &plan).await
}

pub async fn wait_for_count(receiver: &WebhookReceiver, count: usize) {
    let what = format!("{count} requests");
    wait_until(&what, Duration::from_secs(20), async || {
        receiver.count() >= count
    })
    .await;
}

/// Makes all retries due, as if their pauses had passed.
async fn end_pauses(database: &Client) {
    for change in [
        "UPDATE webhook_endpoints SET due_at = now(), paused_until = NULL",
        "UPDATE webhook_retries SET next_attempt_at = now() WHERE next_attempt_at > now()",
    ] {
        // A deadlock with the renewal of leases ends this statement. The caller repeats it.
        let _ = database.batch_execute(change).await;
    }
}

/// Returns whether the first requests with each event are in the order of the endpoint: of positions per subject for
/// `subject`, and of all positions for `strict`.
fn first_arrivals_are_in_order(order: &str, received: &[ReceivedWebhook]) -> bool {
    let mut seen = BTreeSet::new();
    let mut last: BTreeMap<String, i64> = BTreeMap::new();
    { received.iter() }
        .filter(|received| seen.insert(received.id.clone()))
        .all(|received| {
            let key = match order {
                "none" => return true,
                "strict" => String::new(),
                _ => received.subject(),
            };
            let last = last.insert(key, received.position());
            last.is_none_or(|last| last < received.position())
        })
}
