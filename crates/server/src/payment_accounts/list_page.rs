//! Pages of the lists of a payment account's API.

use perennial_domain::{PaymentObjectKind, PaymentProvider};
use serde::{Deserialize, Serialize};

use super::{
    account_api::AccountApi,
    fetched_object::{FetchError, FetchedObject, UnknownShape},
    provider_notification::PaymentObjectRef,
    sellable::SellablePage,
    stripe::InvoiceMoneyIndex,
};
/// The lists that are read, in this order: a payment needs its subscription. Only Lemon Squeezy has orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListStep {
    Subscriptions,
    Invoices,
    Orders,
}

impl ListStep {
    /// Returns the kind of the listed objects.
    pub const fn kind(self) -> PaymentObjectKind {
        match self {
            Self::Subscriptions => PaymentObjectKind::Subscription,
            Self::Invoices => PaymentObjectKind::Invoice,
            Self::Orders => PaymentObjectKind::Order,
        }
    }

    /// Returns the name of the listed objects for people.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Subscriptions => "subscriptions",
            Self::Invoices => "invoices",
            Self::Orders => "orders",
        }
    }

    /// Returns the next list of a payment provider.
    pub const fn next(self, provider: PaymentProvider) -> Option<Self> {
        match (self, provider) {
            (Self::Subscriptions, _) => Some(Self::Invoices),
            (Self::Invoices, PaymentProvider::LemonSqueezy) => Some(Self::Orders),
            (Self::Invoices, PaymentProvider::Stripe) | (Self::Orders, _) => None,
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

impl AccountApi<'_> {
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

    /// Lists a page of subscriptions of all statuses, of invoices or of orders, newest first.
    pub(super) async fn list_objects(
        &self,
        step: ListStep,
        range: ListRange<'_>,
        money: &InvoiceMoneyIndex,
    ) -> Result<ListPage, FetchError> {
        match (self, step) {
            (Self::Stripe(api), ListStep::Subscriptions) => api.list_subscriptions(range).await,
            (Self::Stripe(api), ListStep::Invoices) => api.list_invoices(range, money).await,
            (Self::Stripe(_), ListStep::Orders) => Ok(ListPage {
                items: Vec::new(),
                next: None,
            }),
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
