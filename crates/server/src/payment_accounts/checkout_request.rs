//! What a payment provider needs to create a checkout.

use jiff::Timestamp;
use perennial_domain::PaymentProvider;

/// The name of the metadata with the price that a checkout sells once.
pub const PRICE_FIELD: &str = "perennial_price";

/// A checkout to create at a payment provider.
#[derive(Debug, Clone, Copy)]
pub struct CheckoutRequest<'a> {
    /// The provider's id of what is sold: a price or a variant.
    pub variant: &'a str,
    /// Whether the plan renews. Otherwise it is paid once.
    pub is_recurring: bool,
    /// 0 if there is no trial.
    pub trial_days: u32,
    /// Whether the user had the plan's trial before, so that one of the provider's product must be skipped.
    pub skips_trial: bool,
    /// The signed value that names the user, see [`super::user_token`].
    pub user_token: &'a str,
    /// The provider's id of the user as a customer, if they have bought before.
    pub customer: Option<&'a str>,
    pub email: Option<&'a str>,
    pub success_url: &'a str,
    pub idempotency_key: &'a str,
}

/// A created checkout.
#[derive(Debug, PartialEq, Eq)]
pub struct CreatedCheckout {
    pub url: String,
    /// `None` if the link does not expire.
    pub expires_at: Option<Timestamp>,
}

/// Returns the variant of a plan that a payment provider sells: the first one that has the form of its ids. The others are
/// of other providers, or were sold before.
pub fn sold_variant<'a>(
    provider: PaymentProvider,
    mut variants: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let is_id = |variant: &&str| match provider {
        PaymentProvider::Stripe => variant.starts_with("price_") || variant.starts_with("plan_"),
        PaymentProvider::LemonSqueezy => {
            !variant.is_empty() && variant.bytes().all(|byte| byte.is_ascii_digit())
        }
    };
    variants.find(is_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_variant_of_the_provider_is_sold() {
        let variants = ["", "1042", "price_new", "price_old", "77"];
        let sold = |provider| sold_variant(provider, variants.into_iter());
        assert_eq!(sold(PaymentProvider::Stripe), Some("price_new"));
        assert_eq!(sold(PaymentProvider::LemonSqueezy), Some("1042"));
        let none = sold_variant(PaymentProvider::Stripe, ["1042"].into_iter());
        assert_eq!(none, None);
    }
}
