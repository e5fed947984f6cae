//! Fetches objects from the API of Lemon Squeezy, in the form of JSON:API.

use perennial_domain::PaymentObjectKind;
use secrecy::SecretString;
use url::Url;

use super::lemon_facts::resource_fact;
use crate::{
    http::outbound::ApiHttpClient,
    payment_accounts::{
        fetched_object::{FetchError, FetchedObject},
        notification::PaymentObjectRef,
    },
};

/// The media type of JSON:API. Requests with another one are refused.
const MEDIA_TYPE: &str = "application/vnd.api+json";

/// Requests with the API key of one account.
pub struct LemonSqueezyApi<'a> {
    pub client: &'a ApiHttpClient,
    pub base: &'a Url,
    pub api_key: &'a SecretString,
}

impl LemonSqueezyApi<'_> {
    /// Fetches an object.
    pub async fn fetch(&self, object: &PaymentObjectRef) -> Result<FetchedObject, FetchError> {
        let collection = match object.kind {
            PaymentObjectKind::Subscription => "subscriptions",
            PaymentObjectKind::Invoice => "subscription-invoices",
            PaymentObjectKind::Order => "orders",
            PaymentObjectKind::PaymentIntent
            | PaymentObjectKind::Charge
            | PaymentObjectKind::Refund
            | PaymentObjectKind::Dispute
            | PaymentObjectKind::Customer => {
                return Ok(FetchedObject::Unrelated(
                    "Lemon Squeezy reports no such object",
                ));
            }
        };
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            // Encodes each segment, because an id comes from a notification.
            segments
                .clear()
                .extend(["v1", collection, object.id.as_str()]);
        }
        let headers = [("accept", MEDIA_TYPE)];
        let document = self.client.get_json(url, self.api_key, &headers).await?;
        Ok(resource_fact(object.kind, &document)?)
    }
}
