//! Creates the webhook of a payment account at its provider, for `perennial payment-account connect`.
//!
//! The command can be killed between any two steps. Running it again finds what is missing: a webhook without a stored
//! secret is replaced, and an account without a webhook gets one.

use anyhow::Context;
use perennial_domain::{AsciiToken, PaymentAccount};
use secrecy::{ExposeSecret, SecretString};

use super::{connect::guide, notification_path};
use crate::{
    commands::request_fields::{RequestFields, into_error},
    crypto::DerivedKeys,
    db::CellDatabase,
    http::{etag::IfMatch, outbound::ApiHttpError},
    payment_accounts::{self, AccountApi, FetchError, ProviderWebhook, account_secrets},
    randomness::Randomness,
    record::ChangeOrigin,
};

/// The setup of one account's webhook.
pub(super) struct WebhookSetup<'a> {
    pub api: &'a AccountApi<'a>,
    pub database: &'a CellDatabase,
    pub origin: &'a ChangeOrigin<'a>,
    pub keys: &'a DerivedKeys,
    pub account: &'a PaymentAccount,
    /// Of the webhook.
    pub url: &'a str,
}

impl WebhookSetup<'_> {
    /// Returns whether an earlier run has completed the setup.
    pub(super) async fn is_complete(&self) -> anyhow::Result<bool> {
        let path = notification_path(self.account.id);
        let found = payment_accounts::find_webhook(self.api, &path).await;
        let found = found.context("the webhooks cannot be read")?;
        Ok(self.account.has_secret && found.is_some())
    }

    /// Creates the webhook and stores its secret. Replaces webhooks that an interrupted run has left.
    pub(super) async fn complete(&self) -> anyhow::Result<()> {
        let removed = self.delete_webhooks().await;
        removed.context("the webhook of an earlier run cannot be deleted")?;
        let created = self.create().await?;
        created.map_err(|error| self.explain(&error))
    }

    /// Creates the webhook of a new account. Without a webhook, the account would receive nothing, so it is deleted.
    pub(super) async fn complete_new(&self) -> anyhow::Result<()> {
        let Err(error) = self.create().await? else {
            return Ok(());
        };
        // The provider may have created the webhook although its response was lost.
        if error.may_have_taken_effect() && self.delete_webhooks().await.is_err() {
            let id = self.account.id;
            let context = format!("run the command again to complete {id}");
            return Err(self.explain(&error).context(context));
        }
        let absent = IfMatch::ABSENT;
        payment_accounts::delete_account(self.database, self.origin, self.account.id, &absent)
            .await
            .map_err(into_error)?;
        Err(self.explain(&error))
    }

    /// Returns why the webhook cannot be created, and what to do.
    fn explain(&self, error: &FetchError) -> anyhow::Error {
        let (url, provider) = (self.url, self.account.provider);
        let guide = guide(provider);
        let fix = match error {
            FetchError::Http(ApiHttpError::Unauthorized(..)) => {
                format!("\nThe API key must be allowed to create webhooks; see {guide}.")
            }
            FetchError::Http(ApiHttpError::Rejected(..)) => format!(
                "\n{provider} must be able to reach the URL. Choose another one with --url; see {guide} for machines \
                 without a public address."
            ),
            FetchError::Http(_) | FetchError::Shape(_) => String::new(),
        };
        anyhow::anyhow!("cannot create the webhook {url}: {error}{fix}")
    }

    async fn delete_webhooks(&self) -> Result<(), FetchError> {
        let path = notification_path(self.account.id);
        payment_accounts::delete_webhooks(self.api, &path).await
    }

    /// Creates the webhook and stores its secret. The inner error is that of the provider.
    async fn create(&self) -> anyhow::Result<Result<(), FetchError>> {
        let secret = account_secrets::generate_secret(Randomness);
        let store = self.account.details.external_account_id.as_ref();
        let webhook = ProviderWebhook {
            url: self.url,
            store: store.map(AsciiToken::as_str),
            mode: self.account.mode,
            secret: &secret,
        };
        let issues_secrets = self.account.provider.issues_secrets();
        // A secret that we choose is stored first, so that no webhook exists without it.
        if !issues_secrets {
            self.store_secret(&secret).await?;
        }
        let created = match payment_accounts::create_webhook(self.api, &webhook).await {
            Ok(created) => created,
            Err(error) => return Ok(Err(error)),
        };
        if issues_secrets {
            self.store_secret(&created).await?;
        }
        Ok(Ok(()))
    }

    async fn store_secret(&self, secret: &SecretString) -> anyhow::Result<()> {
        let body = RequestFields::default()
            .with("secret", Some(secret.expose_secret().to_owned()))
            .into_body()?;
        let (keys, id) = (self.keys, self.account.id);
        payment_accounts::rotate_secret(self.database, self.origin, keys, id, body)
            .await
            .map_err(into_error)?;
        Ok(())
    }
}
