//! Checkouts and customer portal links of Lemon Squeezy.

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::json;
use url::Url;

use super::lemon_api::LemonSqueezyApi;
use crate::payment_accounts::{
    checkout_request::{CheckoutRequest, CreatedCheckout},
    fetched_object::{FetchError, ObjectReader},
    user_token,
};

/// How long a checkout can be used: as long as one of Stripe.
const CHECKOUT_TTL: SignedDuration = SignedDuration::from_hours(24);

impl LemonSqueezyApi<'_> {
    /// Creates a checkout in a store.
    pub async fn create_checkout(
        &self,
        store: &str,
        request: &CheckoutRequest<'_>,
        now: Timestamp,
    ) -> Result<CreatedCheckout, FetchError> {
        let expires_at = now.saturating_add(CHECKOUT_TTL).unwrap_or(now);
        let related = |kind: &str, id: &str| json!({"data": {"type": kind, "id": id}});
        let mut data = json!({"custom": {user_token::FIELD: request.user_token}});
        if let (Some(email), Some(data)) = (request.email, data.as_object_mut()) {
            data.insert("email".to_owned(), email.into());
        }
        let document = json!({"data": {
            "type": "checkouts",
            "attributes": {
                "product_options": {"redirect_url": request.success_url},
                "checkout_options": {"skip_trial": request.skips_trial},
                "checkout_data": data,
                "expires_at": expires_at.to_string(),
            },
            "relationships": {
                "store": related("stores", store),
                "variant": related("variants", request.variant),
            },
        }});
        let created = self
            .send(Method::POST, &["checkouts"], Some(document))
            .await?;
        let created = ObjectReader::new("checkout", &created);
        Ok(CreatedCheckout {
            url: created.text("/data/attributes/url")?.to_owned(),
            expires_at: created.optional_rfc3339("/data/attributes/expires_at")?,
        })
    }

    /// Returns the ids of the stores that the API key can use.
    pub async fn list_stores(&self) -> Result<Vec<String>, FetchError> {
        let list = self.list("stores", &[], None).await?;
        let list = ObjectReader::new("store", &list);
        let mut stores = Vec::new();
        for store in list.items("/data")? {
            stores.push(store.text("/id")?.to_owned());
        }
        Ok(stores)
    }

    /// Returns the link to a customer's portal, which is valid for 24 hours. `None` if the customer has no subscription.
    pub async fn find_portal_url(&self, customer: &str) -> Result<Option<String>, FetchError> {
        let customer = self.get(&["customers", customer], &[]).await?;
        let customer = ObjectReader::new("customer", &customer);
        let url = customer.optional_text("/data/attributes/urls/customer_portal")?;
        Ok(url.map(str::to_owned))
    }
}

/// Returns a link to a plan's page at Lemon Squeezy that carries the signed value. `None` if the page is no URL.
pub fn checkout_link(page: &str, user_token: &str, email: Option<&str>) -> Option<String> {
    let mut url = Url::parse(page).ok()?;
    let name = format!("checkout[custom][{}]", user_token::FIELD);
    let mut pairs = url.query_pairs_mut();
    pairs.append_pair(&name, user_token);
    if let Some(email) = email {
        pairs.append_pair("checkout[email]", email);
    }
    drop(pairs);
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkout_link_carries_the_signed_value() {
        let page = "https://shop.lemonsqueezy.com/buy/1?embed=1";
        let link = checkout_link(page, "usr_1.ab", Some("a+b@example.com")).unwrap();
        let expected = "https://shop.lemonsqueezy.com/buy/1?embed=1&checkout%5Bcustom%5D%5Bperennial_user%5D=usr_1.ab\
                        &checkout%5Bemail%5D=a%2Bb%40example.com";
        assert_eq!(link, expected);
        assert_eq!(checkout_link("no URL", "usr_1.ab", None), None);
    }
}
