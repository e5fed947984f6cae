//! Which events a new endpoint receives: all that are committed after the response to its creation, and possibly some that
//! were committed shortly before.

use std::{collections::BTreeSet, time::Duration};

use serde_json::json;

use super::{create_endpoint, create_plan, start, wait_for_count};
use crate::harness::{
    wait_until,
    webhook_receiver::{ReceivedWebhook, WebhookReceiver},
};

/// Endpoints are created while plans are. Each endpoint receives its own creation, and every plan of a request that was sent after
/// the endpoint's creation response.
#[tokio::test]
async fn endpoint_receives_every_event_committed_after_its_creation() {
    let (_service, api) = start().await;
    let mut endpoints = Vec::new();
    let mut next_plan = 0;
    for _ in 0..8 {
        let receiver = WebhookReceiver::start().await;
        let before = tokio::spawn({
            let (api, slug) = (api.clone(), format!("p{next_plan}"));
            async move { create_plan(&api, &slug).await }
        });
        let types = json!({"event_types": ["plan.created", "webhook_endpoint.created"]});
        let endpoint = create_endpoint(&api, &receiver, types).await;
        before.await.unwrap();
        create_plan(&api, &format!("p{}", next_plan + 1)).await;
        next_plan += 2;
        endpoints.push((endpoint, receiver, next_plan - 1));
    }
    for (endpoint, receiver, first_plan) in &endpoints {
        let expected: BTreeSet<String> = (*first_plan..next_plan)
            .map(|plan| format!("p{plan}"))
            .collect();
        wait_until("all plans arrive", Duration::from_secs(20), async || {
            let received = receiver.received();
            let slugs = received.iter().map(|received| {
                let slug = &received.body()["data"]["data"]["slug"];
                slug.as_str().unwrap_or_default().to_owned()
            });
            let slugs: BTreeSet<String> = slugs.collect();
            slugs.is_superset(&expected)
        })
        .await;
        let received = receiver.received();
        let mut subjects = received.iter().map(ReceivedWebhook::subject);
        let own = endpoint["id"].as_str().unwrap();
        assert!(subjects.any(|subject| subject == own));
    }
}

/// An event that has its position when the endpoint is created is not sent.
#[tokio::test]
async fn endpoint_does_not_receive_events_that_were_readable_before_its_creation() {
    let (_service, api) = start().await;
    create_plan(&api, "before").await;
    wait_until(
        "the event is readable",
        Duration::from_secs(10),
        async || {
            let events = api.get_json("/events?types=plan.created").await;
            events["data"].as_array().unwrap().len() == 1
        },
    )
    .await;
    let receiver = WebhookReceiver::start().await;
    create_endpoint(
        &api,
        &receiver,
        json!({"event_types": ["plan.*"], "order": "strict"}),
    )
    .await;
    create_plan(&api, "after").await;
    wait_for_count(&receiver, 1).await;
    let slug = receiver.received()[0].body()["data"]["data"]["slug"].clone();
    assert_eq!(slug, "after");
}
