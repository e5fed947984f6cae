//! The account and webhooks of an API key, for the commands `connect` and `check`.

use perennial_domain::PaymentMode;
use secrecy::SecretString;

use super::{account_api::AccountApi, fetched_object::FetchError};

/// What an API key belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectedAccount {
    pub mode: PaymentMode,
    /// The provider's ids of the account, or of the stores. Empty if the key may not read them.
    pub external_ids: Vec<String>,
}

/// A webhook to create.
pub struct ProviderWebhook<'a> {
    pub url: &'a str,
    /// The store, if the provider has several per key.
    pub store: Option<&'a str>,
    pub mode: PaymentMode,
    /// The secret to use, if the provider does not issue one.
    pub secret: &'a SecretString,
}

/// A webhook at the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookState {
    /// The provider's id.
    pub id: String,
    pub url: String,
    pub is_enabled: bool,
    /// Types of events that change records and are not sent.
    pub missing_events: Vec<&'static str>,
    /// Types of events that must not be sent.
    pub harmful_events: Vec<String>,
}

/// Returns what an API key belongs to.
pub async fn find_account(api: &AccountApi<'_>) -> Result<ConnectedAccount, FetchError> {
    match api {
        AccountApi::Stripe(api) => api.find_account().await,
        AccountApi::LemonSqueezy(api) => api.find_account().await,
    }
}

/// Creates a webhook with exactly the types of events that change records. Returns its secret.
pub async fn create_webhook(
    api: &AccountApi<'_>,
    webhook: &ProviderWebhook<'_>,
) -> Result<SecretString, FetchError> {
    match api {
        AccountApi::Stripe(api) => api.create_webhook(webhook).await,
        AccountApi::LemonSqueezy(api) => api.create_webhook(webhook).await,
    }
}

/// Returns the webhook whose URL ends with this path.
pub async fn find_webhook(
    api: &AccountApi<'_>,
    path: &str,
) -> Result<Option<WebhookState>, FetchError> {
    Ok(list_webhooks(api, path).await?.into_iter().next())
}

/// Deletes the webhooks whose URL ends with this path.
pub async fn delete_webhooks(api: &AccountApi<'_>, path: &str) -> Result<(), FetchError> {
    for webhook in list_webhooks(api, path).await? {
        match api {
            AccountApi::Stripe(api) => api.delete_webhook(&webhook.id).await?,
            AccountApi::LemonSqueezy(api) => api.delete_webhook(&webhook.id).await?,
        }
    }
    Ok(())
}

async fn list_webhooks(api: &AccountApi<'_>, path: &str) -> Result<Vec<WebhookState>, FetchError> {
    let mut webhooks = match api {
        AccountApi::Stripe(api) => api.list_webhooks().await?,
        AccountApi::LemonSqueezy(api) => api.list_webhooks().await?,
    };
    webhooks.retain(|webhook| webhook.url.ends_with(path));
    Ok(webhooks)
}
