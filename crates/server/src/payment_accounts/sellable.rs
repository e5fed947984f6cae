//! The recurring prices of a payment provider, from which an import creates plans.

use perennial_domain::{BillingCycle, Money};

use super::list_page::ListPage;

/// A recurring price that a plan can have.
#[derive(Debug, Clone, PartialEq)]
pub struct SellablePrice {
    /// The price or variant, for the plan's `variants`.
    pub variant: String,
    pub product: String,
    pub product_name: String,
    pub price: Money,
    pub billing_cycle: BillingCycle,
    /// Whether it can be bought. Subscriptions to a price outlive it.
    pub is_active: bool,
}

/// A recurring price that no plan can have, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsellablePrice {
    pub variant: String,
    pub product: String,
    pub reason: String,
}

pub(super) type SellablePage = ListPage<Result<SellablePrice, UnsellablePrice>>;

impl SellablePrice {
    /// Returns the slugs that a plan for this price may have, the best first: by product and billing cycle, then with the
    /// currency, then with the price's id.
    pub fn slugs(&self) -> [String; 3] {
        let cycle = self.billing_cycle.as_str();
        let name = slugify(&self.product_name);
        let short = if name.is_empty() {
            cycle.to_owned()
        } else {
            format!("{name}-{cycle}")
        };
        let currency = self.price.currency().code().to_lowercase();
        let with_currency = format!("{short}-{currency}");
        let with_id = format!("{short}-{}", slugify(&self.variant));
        [short, with_currency, with_id]
    }
}

/// The longest part of a slug that comes from a name.
const MAX_SLUG_PART: usize = 60;

/// Returns the ASCII letters and digits of a name in lower case, with `-` for all others.
fn slugify(name: &str) -> String {
    let mut slug = String::new();
    for character in name.chars().take(MAX_SLUG_PART) {
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slug_has_the_product_and_the_billing_cycle() {
        let mut price = SellablePrice {
            variant: "price_1Ab".to_owned(),
            product: "prod_1".to_owned(),
            product_name: " Pro+ (Team)".to_owned(),
            price: Money::from_minor_units(1_999, "EUR".parse().unwrap()).unwrap(),
            billing_cycle: BillingCycle::Yearly,
            is_active: true,
        };
        let expected = [
            "pro-team-yearly",
            "pro-team-yearly-eur",
            "pro-team-yearly-price-1ab",
        ];
        assert_eq!(price.slugs(), expected);
        price.product_name = "プロ".to_owned();
        assert_eq!(price.slugs()[0], "yearly");
    }
}
