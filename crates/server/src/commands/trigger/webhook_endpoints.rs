//! The calls that cause events of webhook endpoints.

use anyhow::Context;
use axum::{Router, http::StatusCode};
use perennial_domain::EventKind;
use serde_json::json;
use tokio::net::TcpListener;

use super::{Trigger, id};

impl Trigger<'_> {
    /// Creates an endpoint on this machine that responds with 410. If it stays enabled, its own
    /// `webhook_endpoint.created` disables it. For other events, it is disabled or deleted at the end.
    pub(super) async fn cause_webhook_endpoint_event(
        &self,
        kind: EventKind,
    ) -> anyhow::Result<String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let router = Router::new().fallback(|| async { StatusCode::GONE });
        tokio::spawn(async move { axum::serve(listener, router).await });
        let status = match kind {
            EventKind::WebhookEndpointCreated | EventKind::WebhookEndpointDisabled => "enabled",
            _ => "disabled",
        };
        let body =
            json!({"url": url, "event_types": ["webhook_endpoint.created"], "status": status});
        let endpoint = self.post("/webhook-endpoints", &body).await.context(
            "events of webhook endpoints need an endpoint on this machine; start the sandbox with \
             PERENNIAL_WEBHOOK_NETWORKS=127.0.0.0/8",
        )?;
        let path = format!("/webhook-endpoints/{}", id(&endpoint)?);
        match kind {
            EventKind::WebhookEndpointUpdated => {
                self.put(&path, &json!({"order": "subject"})).await?;
            }
            EventKind::WebhookEndpointEnabled => {
                self.post(&format!("{path}/enable"), &json!({})).await?;
                self.delete(&path).await?;
            }
            EventKind::WebhookEndpointSecretRotated => {
                self.post(&format!("{path}/rotate-secret"), &json!({}))
                    .await?;
            }
            EventKind::WebhookEndpointCreated | EventKind::WebhookEndpointDeleted => {
                self.delete(&path).await?;
            }
            _ => {}
        }
        id(&endpoint)
    }
}
