//! The recurring prices of Stripe.

use perennial_domain::stripe_words;

use super::{stripe_api::StripeApi, stripe_lists::next_cursor};
use crate::payment_accounts::{
    fetched_object::{FetchError, ObjectReader, UnknownShape},
    list_page::ListRange,
    sellable::{SellablePage, SellablePrice, UnsellablePrice},
};

impl StripeApi<'_> {
    /// Lists recurring prices, active or not.
    pub async fn list_prices(&self, after: Option<&str>) -> Result<SellablePage, FetchError> {
        let query = [("type", "recurring"), ("expand[]", "data.product")];
        let range = ListRange {
            after,
            created_since: None,
        };
        let list = self.list("prices", &query, range).await?;
        let mut items = Vec::new();
        for item in ObjectReader::new("price", &list).items("/data")? {
            let variant = item.id("/id")?.to_string();
            let product = item.id("/product")?.to_string();
            let sellable = sellable_price(&item, &variant, &product);
            items.push(sellable.map_err(|error| UnsellablePrice {
                variant,
                product,
                reason: error.to_string(),
            }));
        }
        Ok(SellablePage {
            items,
            next: next_cursor(&list)?,
        })
    }
}

fn sellable_price(
    item: &ObjectReader<'_>,
    variant: &str,
    product: &str,
) -> Result<SellablePrice, UnknownShape> {
    let units = item.optional_integer("/unit_amount")?;
    let units = units.ok_or_else(|| item.error("/unit_amount", "has no fixed amount per unit"))?;
    let interval = item.text("/recurring/interval")?;
    let count = item.integer("/recurring/interval_count")?;
    let billing_cycle = stripe_words::billing_cycle(interval, count)
        .map_err(|error| item.field_error(error))?
        .ok_or_else(|| item.error("/recurring", "is no billing cycle of a plan"))?;
    let price = stripe_words::money("unit_amount", units, item.text("/currency")?);
    Ok(SellablePrice {
        variant: variant.to_owned(),
        product: product.to_owned(),
        // A deleted product has no name.
        product_name: { item.optional_text("/product/name")? }
            .unwrap_or(product)
            .to_owned(),
        price: price.map_err(|error| item.field_error(error))?,
        billing_cycle,
        is_active: item.flag("/active")?,
    })
}
