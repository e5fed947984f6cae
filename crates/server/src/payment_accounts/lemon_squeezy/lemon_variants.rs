//! The variants of Lemon Squeezy that are subscriptions.

use perennial_domain::{Currency, Money, stripe_words};
use serde_json::Value;

use super::{LemonSqueezyApi, lemon_lists::next_page};
use crate::payment_accounts::{
    fetched_object::{FetchError, ObjectReader, UnknownShape},
    sellable::{SellablePage, SellablePrice, UnsellablePrice},
};

/// Prices of variants are not formatted, so their decimals cannot be checked. With two, there is no doubt.
const UNAMBIGUOUS_SCALE: u8 = 2;

impl LemonSqueezyApi<'_> {
    /// Lists variants that are subscriptions, with their products and the currency of their store.
    pub async fn list_variants(&self, after: Option<&str>) -> Result<SellablePage, FetchError> {
        let stores = self.list("stores", &[], None).await?;
        let list = self
            .list("variants", &[("include", "product")], after)
            .await?;
        let mut items = Vec::new();
        for item in ObjectReader::new("variant", &list).items("/data")? {
            if !item.flag("/attributes/is_subscription")? {
                continue;
            }
            let variant = item.id("/id")?.to_string();
            let product = item.id("/attributes/product_id")?.to_string();
            if !self.sells(&list, &product)? {
                continue;
            }
            let mut sellable = sellable_variant(&item, &list, &stores, (&variant, &product));
            if let Ok(price) = &mut sellable
                && item.optional_text("/attributes/status")? == Some("pending")
            {
                price.is_active = self.is_only_variant(&product).await?;
            }
            items.push(sellable.map_err(|error| UnsellablePrice {
                variant,
                product,
                reason: error.to_string(),
            }));
        }
        Ok(SellablePage {
            items,
            next: next_page(&list)?,
        })
    }

    /// Returns whether a product has one variant. It is the default one, which is sold although its status is `pending`.
    async fn is_only_variant(&self, product: &str) -> Result<bool, FetchError> {
        let of_product = [("filter[product_id]", product)];
        let variants = self.list("variants", &of_product, None).await?;
        let variants = ObjectReader::new("variant", &variants);
        Ok(variants.items("/data")?.len() == 1)
    }
}

impl LemonSqueezyApi<'_> {
    /// Returns whether an included product is of the account's store.
    fn sells(&self, list: &Value, product: &str) -> Result<bool, UnknownShape> {
        let Some(own) = self.store else {
            return Ok(true);
        };
        let product = find_resource(list, "/included", "product", product)?;
        let store = product.optional_id("/attributes/store_id")?;
        Ok(store.as_deref() == Some(own))
    }
}

/// Returns the resource with an id in an array of a document.
fn find_resource<'a>(
    document: &'a Value,
    pointer: &str,
    noun: &'static str,
    id: &str,
) -> Result<ObjectReader<'a>, UnknownShape> {
    let document = ObjectReader::new(noun, document);
    for item in document.items(pointer)? {
        if item.optional_id("/id")?.as_deref() == Some(id) {
            return Ok(item);
        }
    }
    Err(document.error(pointer, "does not contain the resource"))
}

fn sellable_variant(
    item: &ObjectReader<'_>,
    list: &Value,
    stores: &Value,
    (variant, product): (&str, &str),
) -> Result<SellablePrice, UnknownShape> {
    let product_resource = find_resource(list, "/included", "product", product)?;
    let store = product_resource.id("/attributes/store_id")?;
    let store = find_resource(stores, "/data", "store", store.as_str())?;
    let currency = store.text("/attributes/currency")?.parse::<Currency>();
    let currency = store.parsed("/attributes/currency", currency)?;
    if currency.scale() != UNAMBIGUOUS_SCALE {
        return Err(item.error(
            "/attributes/price",
            "is ambiguous in the currency of the store",
        ));
    }
    let units = item.integer("/attributes/price")?;
    let price = Money::from_minor_units(units, currency);
    let interval = item.text("/attributes/interval")?;
    let count = item.integer("/attributes/interval_count")?;
    // The words are those of Stripe.
    let billing_cycle = stripe_words::billing_cycle(interval, count)
        .map_err(|error| item.field_error(error))?
        .ok_or_else(|| item.error("/attributes/interval", "is no billing cycle of a plan"))?;
    Ok(SellablePrice {
        variant: variant.to_owned(),
        product: product.to_owned(),
        product_name: product_resource.text("/attributes/name")?.to_owned(),
        price: price.ok_or_else(|| item.error("/attributes/price", "must not be negative"))?,
        billing_cycle,
        is_active: item.text("/attributes/status")? == "published",
    })
}
