//! Webhook endpoints: the API, deliveries, and what an endpoint can do wrong.

mod delivery;
mod endpoints;
mod failures;

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{
    api::ApiClient, process::Variables, service::Service, wait_until,
    webhook_receiver::WebhookReceiver,
};

/// Allows endpoints on the loopback interface.
fn allow_loopback(variables: &mut Variables) {
    variables.insert("PERENNIAL_WEBHOOK_NETWORKS", "127.0.0.0/8".to_owned());
}

/// A server process whose webhook requests can reach the test.
async fn start() -> (Service, ApiClient) {
    let service = Service::start_with(allow_loopback).await;
    let api = service.api(&[]);
    (service, api)
}

async fn create_endpoint(api: &ApiClient, receiver: &WebhookReceiver, fields: Value) -> Value {
    let mut body = json!({"url": receiver.url});
    body.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    api.create("/webhook-endpoints", &body).await
}

fn path(endpoint: &Value) -> String {
    format!("/webhook-endpoints/{}", endpoint["id"].as_str().unwrap())
}

async fn create_plan(api: &ApiClient, slug: &str) -> Value {
    let plan = json!({"name": slug, "slug": slug, "price": 1, "billing_cycle": "monthly"});
    api.create("/subscription-plans", &plan).await
}

async fn wait_for_count(receiver: &WebhookReceiver, count: usize) {
    let what = format!("{count} requests");
    wait_until(&what, Duration::from_secs(20), async || {
        receiver.count() >= count
    })
    .await;
}
