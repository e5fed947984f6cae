//! Webhook endpoints of Stripe.

use perennial_domain::PaymentMode;
use reqwest::Method;
use secrecy::{ExposeSecret, SecretString};

use super::stripe_api::{API_VERSION, StripeApi};
use crate::{
    http::outbound::ApiHttpError,
    payment_accounts::{
        connect::{ConnectedAccount, ProviderWebhook, WebhookState},
        fetched_object::{FetchError, ObjectReader},
    },
};

/// The types of events that change records. Without `invoice.created`: an endpoint that fails on it delays renewals.
pub const EVENT_TYPES: [&str; 29] = [
    "charge.dispute.closed",
    "charge.dispute.created",
    "charge.dispute.funds_reinstated",
    "charge.dispute.funds_withdrawn",
    "charge.dispute.updated",
    "charge.refund.updated",
    "charge.refunded",
    "checkout.session.async_payment_succeeded",
    "checkout.session.completed",
    "customer.subscription.created",
    "customer.subscription.deleted",
    "customer.subscription.paused",
    "customer.subscription.pending_update_applied",
    "customer.subscription.pending_update_expired",
    "customer.subscription.resumed",
    "customer.subscription.trial_will_end",
    "customer.subscription.updated",
    "invoice.finalized",
    "invoice.marked_uncollectible",
    "invoice.overdue",
    "invoice.overpaid",
    "invoice.paid",
    "invoice.payment_action_required",
    "invoice.payment_failed",
    "invoice.updated",
    "invoice.voided",
    "refund.created",
    "refund.failed",
    "refund.updated",
];

/// Types of events whose failed delivery delays renewals.
const HARMFUL_EVENT_TYPES: [&str; 2] = ["invoice.created", "*"];

impl StripeApi<'_> {
    /// Returns the account and the mode of the API key.
    pub async fn find_account(&self) -> Result<ConnectedAccount, FetchError> {
        let mode = if self.api_key.expose_secret().contains("_live_") {
            PaymentMode::Live
        } else {
            PaymentMode::Test
        };
        let account = match self.get(&["account"], &[]).await {
            // A restricted key need not be allowed to read the account.
            Err(FetchError::Http(ApiHttpError::Unauthorized(403, _))) => {
                return Ok(ConnectedAccount {
                    mode,
                    external_ids: Vec::new(),
                });
            }
            account => account?,
        };
        let account = ObjectReader::new("account", &account);
        Ok(ConnectedAccount {
            mode,
            external_ids: vec![account.text("/id")?.to_owned()],
        })
    }

    /// Creates a webhook endpoint and returns the secret that Stripe issues.
    pub async fn create_webhook(
        &self,
        webhook: &ProviderWebhook<'_>,
    ) -> Result<SecretString, FetchError> {
        let mut form = vec![
            ("url", webhook.url),
            ("api_version", API_VERSION),
            ("description", "Perennial"),
        ];
        form.extend(EVENT_TYPES.map(|event_type| ("enabled_events[]", event_type)));
        let path = ["webhook_endpoints"];
        let created = self.send(Method::POST, &path, &form, None).await?;
        let created = ObjectReader::new("webhook endpoint", &created);
        Ok(created.text("/secret")?.into())
    }

    /// Deletes a webhook endpoint.
    pub async fn delete_webhook(&self, id: &str) -> Result<(), FetchError> {
        let path = ["webhook_endpoints", id];
        self.send(Method::DELETE, &path, &[], None).await?;
        Ok(())
    }

    /// Returns the webhook endpoints. Stripe allows 16 of them.
    pub async fn list_webhooks(&self) -> Result<Vec<WebhookState>, FetchError> {
        let list = self
            .get(&["webhook_endpoints"], &[("limit", "100")])
            .await?;
        let list = ObjectReader::new("webhook endpoint", &list);
        let mut webhooks = Vec::new();
        for endpoint in list.items("/data")? {
            let mut enabled = Vec::new();
            for event_type in endpoint.items("/enabled_events")? {
                enabled.push(event_type.text("")?);
            }
            let is_sent =
                |event_type: &str| enabled.contains(&event_type) || enabled.contains(&"*");
            webhooks.push(WebhookState {
                id: endpoint.text("/id")?.to_owned(),
                url: endpoint.text("/url")?.to_owned(),
                is_enabled: endpoint.text("/status")? == "enabled",
                missing_events: { EVENT_TYPES.into_iter() }
                    .filter(|event_type| !is_sent(event_type))
                    .collect(),
                harmful_events: { HARMFUL_EVENT_TYPES.iter() }
                    .filter(|event_type| enabled.contains(event_type))
                    .map(ToString::to_string)
                    .collect(),
            });
        }
        Ok(webhooks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payment_accounts::stripe::stripe_notification::changed_kind;

    #[test]
    fn requested_event_types_change_records() {
        for event_type in EVENT_TYPES {
            assert!(changed_kind(event_type).is_some(), "{event_type}");
            assert!(!HARMFUL_EVENT_TYPES.contains(&event_type));
        }
    }
}
