//! Webhooks of Lemon Squeezy.

use perennial_domain::PaymentMode;
use reqwest::Method;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::{lemon_api::LemonSqueezyApi, lemon_lists::next_page};
use crate::payment_accounts::{
    connect::{ConnectedAccount, ProviderWebhook, WebhookState},
    fetched_object::{FetchError, ObjectReader, UnknownShape},
};

/// The types of events that change records.
pub const EVENT_TYPES: [&str; 13] = [
    "order_created",
    "order_refunded",
    "subscription_cancelled",
    "subscription_created",
    "subscription_expired",
    "subscription_paused",
    "subscription_payment_failed",
    "subscription_payment_recovered",
    "subscription_payment_refunded",
    "subscription_payment_success",
    "subscription_resumed",
    "subscription_unpaused",
    "subscription_updated",
];

impl LemonSqueezyApi<'_> {
    /// Returns the stores and the mode of the API key.
    pub async fn find_account(&self) -> Result<ConnectedAccount, FetchError> {
        let user = self.get(&["users", "me"], &[]).await?;
        let user = ObjectReader::new("user", &user);
        let mode = if user.flag("/meta/test_mode")? {
            PaymentMode::Test
        } else {
            PaymentMode::Live
        };
        Ok(ConnectedAccount {
            mode,
            external_ids: self.list_stores().await?,
        })
    }

    /// Creates a webhook and returns its secret, which is the one of the request.
    pub async fn create_webhook(
        &self,
        webhook: &ProviderWebhook<'_>,
    ) -> Result<SecretString, FetchError> {
        let document = json!({"data": {
            "type": "webhooks",
            "attributes": {
                "url": webhook.url,
                "events": EVENT_TYPES,
                "secret": webhook.secret.expose_secret(),
                "test_mode": webhook.mode == PaymentMode::Test,
            },
            "relationships": {"store": {"data": {"type": "stores", "id": webhook.store.unwrap_or_default()}}},
        }});
        self.send(Method::POST, &["webhooks"], Some(document))
            .await?;
        Ok(webhook.secret.clone())
    }

    /// Deletes a webhook.
    pub async fn delete_webhook(&self, id: &str) -> Result<(), FetchError> {
        self.send(Method::DELETE, &["webhooks", id], None).await?;
        Ok(())
    }

    /// Returns all webhooks.
    pub async fn list_webhooks(&self) -> Result<Vec<WebhookState>, FetchError> {
        let (mut webhooks, mut page) = (Vec::new(), None::<String>);
        loop {
            let list = self.list("webhooks", &[], page.as_deref()).await?;
            webhooks.extend(webhook_states(&list)?);
            page = next_page(&list)?;
            if page.is_none() {
                return Ok(webhooks);
            }
        }
    }
}

/// Converts a page of webhooks.
fn webhook_states(list: &Value) -> Result<Vec<WebhookState>, UnknownShape> {
    let list = ObjectReader::new("webhook", list);
    let mut webhooks = Vec::new();
    for webhook in list.items("/data")? {
        let mut enabled = Vec::new();
        for event_type in webhook.items("/attributes/events")? {
            enabled.push(event_type.text("")?);
        }
        webhooks.push(WebhookState {
            id: webhook.text("/id")?.to_owned(),
            url: webhook.text("/attributes/url")?.to_owned(),
            is_enabled: true,
            missing_events: { EVENT_TYPES.into_iter() }
                .filter(|event_type| !enabled.contains(event_type))
                .collect(),
            harmful_events: Vec::new(),
        });
    }
    Ok(webhooks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payment_accounts::lemon_squeezy::lemon_notification::changed_kind;

    #[test]
    fn requested_event_types_change_records() {
        for event_type in EVENT_TYPES {
            assert!(changed_kind(event_type).is_some(), "{event_type}");
        }
    }
}
