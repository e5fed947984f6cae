//! The API of a payment account's provider, with the account's API key.

use perennial_domain::{PaymentAccount, PaymentProvider, TenantId};
use secrecy::SecretString;

use super::{
    account_secrets,
    fetched_object::{FetchError, FetchedObject},
    lemon_squeezy::LemonSqueezyApi,
    provider_notification::PaymentObjectRef,
    stripe::StripeApi,
    table,
};
use crate::{
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
            }),
        }
    }

    /// Fetches an object.
    pub async fn fetch(&self, object: &PaymentObjectRef) -> Result<FetchedObject, FetchError> {
        match self {
            Self::Stripe(api) => api.fetch(object).await,
            Self::LemonSqueezy(api) => api.fetch(object).await,
        }
    }

    /// Sends a command about a subscription.
    pub async fn send_command(
        &self,
        command: PaymentProviderCommand,
        subscription: &str,
    ) -> Result<(), FetchError> {
        match self {
            Self::Stripe(api) => api.send_command(command, subscription).await,
            Self::LemonSqueezy(api) => api.send_command(command, subscription).await,
        }
    }
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
