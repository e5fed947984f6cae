//! The API of a payment account's provider, with the account's API key.

use jiff::Timestamp;
use perennial_domain::{AsciiToken, PaymentAccount, PaymentProvider, TenantId};
use secrecy::SecretString;

use super::{
    account_secrets,
    fetched_object::{FetchError, FetchedObject},
    lemon_squeezy::{LemonSqueezyApi, ORDER_PREFIX},
    provider_notification::PaymentObjectRef,
    stripe::StripeApi,
    table,
};
use crate::{
    app::App,
    config::PaymentApisConfig,
    crypto::DerivedKeys,
    db::{CellDatabase, Error},
    http::outbound::ApiHttpClient,
    payment_commands::PaymentProviderCommand,
};

/// The API of a payment provider, with the API key of one account.
pub enum AccountApi<'a> {
    Stripe(StripeApi<'a>),
    LemonSqueezy(LemonSqueezyApi<'a>),
}

impl<'a> AccountApi<'a> {
    pub fn new(
        provider: PaymentProvider,
        client: &'a ApiHttpClient,
        apis: &'a PaymentApisConfig,
        api_key: &'a SecretString,
    ) -> Self {
        match provider {
            PaymentProvider::Stripe => Self::Stripe(StripeApi {
                client,
                base: &apis.stripe,
                api_key,
            }),
            PaymentProvider::LemonSqueezy => Self::LemonSqueezy(LemonSqueezyApi {
                client,
                base: &apis.lemon_squeezy,
                api_key,
                store: None,
                mode: None,
            }),
        }
    }

    /// Creates the API of an account, which contains only the objects of its store and mode.
    pub fn for_account(
        app: &'a App,
        account: &'a PaymentAccount,
        api_key: &'a SecretString,
    ) -> Self {
        let (client, apis) = (&app.payment_client, &app.payment_apis);
        let mut api = Self::new(account.provider, client, apis, api_key);
        if let Self::LemonSqueezy(api) = &mut api {
            let store = account.details.external_account_id.as_ref();
            api.store = store.map(AsciiToken::as_str);
            api.mode = Some(account.mode);
        }
        api
    }

    /// Fetches an object.
    pub async fn fetch(&self, object: &PaymentObjectRef) -> Result<FetchedObject, FetchError> {
        match self {
            Self::Stripe(api) => api.fetch(object).await,
            Self::LemonSqueezy(api) => api.fetch(object).await,
        }
    }

    /// Sends a command about a subscription. `ends_at` is when a cancellation takes effect, if not at the end of the period.
    pub async fn send_command(
        &self,
        command: PaymentProviderCommand,
        subscription: &str,
        ends_at: Option<Timestamp>,
    ) -> Result<(), FetchError> {
        match self {
            Self::Stripe(api) => api.send_command(command, subscription, ends_at).await,
            // Lemon Squeezy cancels at the end of the period only.
            Self::LemonSqueezy(api) => api.send_command(command, subscription).await,
        }
    }
}

/// Returns whether a lifetime subscription has this external id: that of an invoice or an order.
pub(super) fn is_purchase(provider: PaymentProvider, subscription: &str) -> bool {
    let prefix = match provider {
        PaymentProvider::Stripe => "in_",
        PaymentProvider::LemonSqueezy => ORDER_PREFIX,
    };
    subscription.starts_with(prefix)
}

/// Returns the API key of an account, or `None` if it has none.
pub async fn open_api_key(
    keys: &DerivedKeys,
    database: &CellDatabase,
    tenant: TenantId,
    account: &PaymentAccount,
) -> Result<Option<SecretString>, Error> {
    let Some(sealed) = table::find_api_key(database, tenant, account.id).await? else {
        return Ok(None);
    };
    let opened = keys.open(&sealed, &account_secrets::api_key_owner(account.id));
    opened
        .map(Some)
        .map_err(|error| Error::Internal(error.to_string()))
}
