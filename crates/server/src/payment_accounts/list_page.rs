//! Pages of the lists of a payment account's API.

use perennial_domain::{PaymentAccount, PaymentObjectKind, PaymentProvider, TenantId};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::{
    account_api::open_api_key,
    fetched_object::{FetchError, FetchedObject, UnknownShape},
    lemon_squeezy::LemonSqueezyApi,
    provider_notification::PaymentObjectRef,
    sellable::SellablePage,
    stripe::{InvoiceMoneyIndex, StripeApi},
};
use crate::{
    app::App,
    db::{CellDatabase, Error},
};

/// The lists that are read, in this order: a payment needs its subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListStep {
    Subscriptions,
    Invoices,
}

impl ListStep {
    /// Returns the kind of the listed objects.
    pub const fn kind(self) -> PaymentObjectKind {
        match self {
            Self::Subscriptions => PaymentObjectKind::Subscription,
            Self::Invoices => PaymentObjectKind::Invoice,
        }
    }

    /// Returns the name of the listed objects for people.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Subscriptions => "subscriptions",
            Self::Invoices => "invoices",
        }
    }
}

/// An object of a list.
#[derive(Debug)]
pub struct ListedObject {
    pub object: PaymentObjectRef,
    pub fetched: Result<FetchedObject, UnknownShape>,
}

/// A page of a list.
#[derive(Debug)]
pub struct ListPage<T = ListedObject> {
    pub items: Vec<T>,
    /// The cursor of the next page; `None` for the last one.
    pub next: Option<String>,
}

/// The part of a list to read.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListRange<'a> {
    /// The cursor of the page; `None` for the first one.
    pub after: Option<&'a str>,
    /// Only objects that were created since this time in Unix seconds, if the API can select them.
    pub created_since: Option<i64>,
}

/// The API key of an account. It must outlive an [`AccountApi`].
pub struct AccountKey(SecretString);

impl AccountKey {
    /// Reads the API key of an account. Returns `None` if it has none.
    pub(super) async fn open(
        app: &App,
        database: &CellDatabase,
        tenant: TenantId,
        account: &PaymentAccount,
    ) -> Result<Option<Self>, Error> {
        let key = open_api_key(&app.keys, database, tenant, account).await?;
        Ok(key.map(Self))
    }
}

/// The API of the payment provider of an account.
pub enum AccountApi<'a> {
    Stripe(StripeApi<'a>),
    LemonSqueezy(LemonSqueezyApi<'a>),
}

impl<'a> AccountApi<'a> {
    pub(super) fn new(app: &'a App, account: &PaymentAccount, key: &'a AccountKey) -> Self {
        let (client, api_key) = (&app.payment_client, &key.0);
        match account.provider {
            PaymentProvider::Stripe => Self::Stripe(StripeApi {
                client,
                base: &app.payment_apis.stripe,
                api_key,
            }),
            PaymentProvider::LemonSqueezy => Self::LemonSqueezy(LemonSqueezyApi {
                client,
                base: &app.payment_apis.lemon_squeezy,
                api_key,
            }),
        }
    }

    /// Lists what happened to the money of invoices, which a list of invoices does not contain.
    pub(super) async fn list_money(
        &self,
        created_since: Option<i64>,
    ) -> Result<InvoiceMoneyIndex, FetchError> {
        match self {
            Self::Stripe(api) => api.list_money(created_since).await,
            Self::LemonSqueezy(_) => Ok(InvoiceMoneyIndex::default()),
        }
    }

    /// Lists a page of subscriptions of all statuses, or of invoices, newest first.
    pub(super) async fn list_objects(
        &self,
        step: ListStep,
        range: ListRange<'_>,
        money: &InvoiceMoneyIndex,
    ) -> Result<ListPage, FetchError> {
        match (self, step) {
            (Self::Stripe(api), ListStep::Subscriptions) => api.list_subscriptions(range).await,
            (Self::Stripe(api), ListStep::Invoices) => api.list_invoices(range, money).await,
            (Self::LemonSqueezy(api), step) => api.list_objects(step.kind(), range.after).await,
        }
    }

    /// Lists a page of recurring prices, with the names of their products.
    pub(super) async fn list_sellable(
        &self,
        after: Option<&str>,
    ) -> Result<SellablePage, FetchError> {
        match self {
            Self::Stripe(api) => api.list_prices(after).await,
            Self::LemonSqueezy(api) => api.list_variants(after).await,
        }
    }
}
