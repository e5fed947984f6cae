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
        let currency = self.price.currency().code().to_lowercase();
        let variant = slugify(&self.variant);
        [
            join_slug(&name, cycle),
            join_slug(&name, &format!("{cycle}-{currency}")),
            join_slug(&name, &format!("{cycle}-{variant}")),
        ]
    }

    /// Returns the product's name, cut to the length that a plan's name can have.
    pub fn plan_name(&self) -> String {
        let name = self.product_name.trim();
        let cut: String = name.chars().take(MAX_PLAN_NAME).collect();
        cut.trim_end().to_owned()
    }
}

/// The longest name of a plan, in characters.
const MAX_PLAN_NAME: usize = 200;
/// The longest slug.
const MAX_SLUG: usize = 64;

/// Returns a slug that ends with `end`. The name is cut so that the slug is not too long.
fn join_slug(name: &str, end: &str) -> String {
    let rest = MAX_SLUG.saturating_sub(end.len() + 1);
    let name: String = name.chars().take(rest).collect();
    let slug = match name.trim_end_matches('-') {
        "" => end.to_owned(),
        name => format!("{name}-{end}"),
    };
    slug.chars().take(MAX_SLUG).collect()
}

/// Returns the ASCII letters and digits of a name in lower case, with `-` for all others.
fn slugify(name: &str) -> String {
    let mut slug = String::new();
    for character in name.chars() {
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
    use perennial_domain::{SingleLine, Slug};

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

    #[test]
    fn slugs_and_names_of_long_products_are_valid() {
        for (name, variant) in [
            ("x".repeat(64), "price_1Ab".to_owned()),
            ("Long name ".repeat(40), "price_1Ab".to_owned()),
            ("y".repeat(300), format!("price_{}", "z".repeat(90))),
        ] {
            let price = SellablePrice {
                variant,
                product: "prod_1".to_owned(),
                product_name: name,
                price: Money::from_minor_units(1_999, "EUR".parse().unwrap()).unwrap(),
                billing_cycle: BillingCycle::Quarterly,
                is_active: true,
            };
            let slugs = price.slugs();
            for slug in &slugs {
                assert!(slug.parse::<Slug>().is_ok(), "{slug}");
            }
            assert!(slugs[0].ends_with("-quarterly"), "{}", slugs[0]);
            assert!(slugs[1].ends_with("-quarterly-eur"), "{}", slugs[1]);
            assert_ne!(slugs[1], slugs[2]);
            let name = price.plan_name().parse::<SingleLine<200>>();
            assert!(name.is_ok(), "{}", price.plan_name());
        }
    }
}
