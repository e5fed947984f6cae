//! Lists of Lemon Squeezy: subscriptions, invoices and orders.

use perennial_domain::PaymentObjectKind;
use serde_json::{Value, json};

use super::{LemonSqueezyApi, lemon_facts::resource_fact};
use crate::payment_accounts::{
    fetched_object::{FetchError, ObjectReader, UnknownShape},
    list_page::{ListPage, ListedObject},
    provider_notification::PaymentObjectRef,
};

/// The largest page of a list.
const MAX_PAGE: &str = "100";

impl LemonSqueezyApi<'_> {
    /// Lists subscriptions, invoices or orders of the account's store, newest first. `after` is the number of the page.
    pub async fn list_objects(
        &self,
        kind: PaymentObjectKind,
        after: Option<&str>,
    ) -> Result<ListPage, FetchError> {
        let collection = match kind {
            PaymentObjectKind::Subscription => "subscriptions",
            PaymentObjectKind::Order => "orders",
            _ => "subscription-invoices",
        };
        let of_store: Vec<(&str, &str)> = { self.store.into_iter() }
            .map(|store| ("filter[store_id]", store))
            .collect();
        let list = self.list(collection, &of_store, after).await?;
        let mut items = Vec::new();
        for item in ObjectReader::new("resource", &list).items("/data")? {
            let id = item.id("/id")?.to_string();
            let document = json!({ "data": item.value });
            if !self.is_of_store(&document)? {
                continue;
            }
            items.push(ListedObject {
                object: PaymentObjectRef { kind, id },
                fetched: { self.check_mode(&document) }
                    .and_then(|()| resource_fact(kind, &document)),
            });
        }
        Ok(ListPage {
            items,
            next: next_page(&list)?,
        })
    }

    /// Requests a page of a list.
    pub(super) async fn list(
        &self,
        collection: &str,
        query: &[(&str, &str)],
        page: Option<&str>,
    ) -> Result<Value, FetchError> {
        let mut query = query.to_vec();
        query.push(("page[size]", MAX_PAGE));
        query.push(("page[number]", page.unwrap_or("1")));
        self.get(&[collection], &query).await
    }
}

/// Returns the number of the page after this one. A record that is created meanwhile moves others to a later page, so none
/// is left out.
pub(super) fn next_page(page: &Value) -> Result<Option<String>, UnknownShape> {
    let page = ObjectReader::new("list", page);
    let current = page.optional_integer("/meta/page/currentPage")?;
    let last = page.optional_integer("/meta/page/lastPage")?;
    Ok(match (current, last) {
        (Some(current), Some(last)) if current < last => {
            Some(current.saturating_add(1).to_string())
        }
        _ => None,
    })
}
