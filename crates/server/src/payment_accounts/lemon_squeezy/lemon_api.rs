//! Fetches objects from the API of Lemon Squeezy, in the form of JSON:API.

use perennial_domain::{PaymentMode, PaymentObjectKind, PaymentProvider};
use reqwest::Method;
use secrecy::SecretString;
use serde_json::Value;
use url::Url;

use super::lemon_facts::resource_fact;
use crate::{
    http::outbound::{ApiBody, ApiHttpClient},
    payment_accounts::{
        fetched_object::{FetchError, FetchedObject, ObjectReader, UnknownShape},
        provider_metrics::count_request,
        provider_notification::PaymentObjectRef,
    },
};

/// The media type of JSON:API. Requests with another one are refused.
const MEDIA_TYPE: &str = "application/vnd.api+json";

/// Requests with the API key of one account.
pub struct LemonSqueezyApi<'a> {
    pub client: &'a ApiHttpClient,
    pub base: &'a Url,
    pub api_key: &'a SecretString,
    /// Only objects of this store are returned. `None`: of all stores.
    pub store: Option<&'a str>,
    /// The mode of the account. `None`: not known yet.
    pub mode: Option<PaymentMode>,
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
        let document = self.get(&[collection, object.id.as_str()], &[]).await?;
        self.check_mode(&document)?;
        if !self.is_of_store(&document)? {
            return Ok(FetchedObject::Unrelated("the object is of another store"));
        }
        Ok(resource_fact(object.kind, &document)?)
    }

    /// Returns whether the resource of a document is of the account's store.
    pub(super) fn is_of_store(&self, document: &Value) -> Result<bool, UnknownShape> {
        let resource = ObjectReader::new("resource", document);
        let store = resource.optional_id("/data/attributes/store_id")?;
        Ok(self.store.is_none_or(|own| store.as_deref() == Some(own)))
    }

    /// Rejects a resource of the other mode. The API key does not tell its mode, so an account can have one of the other mode.
    pub(super) fn check_mode(&self, document: &Value) -> Result<(), UnknownShape> {
        let field = "/data/attributes/test_mode";
        let Some(is_test) = document.pointer(field).and_then(Value::as_bool) else {
            return Ok(());
        };
        match self.mode {
            Some(mode) if is_test != (mode == PaymentMode::Test) => {
                let resource = ObjectReader::new("resource", document);
                let message = format!("the API key is not for the account's mode, {mode}");
                Err(resource.error(field, message))
            }
            _ => Ok(()),
        }
    }

    /// Sends a GET request. `path` has the segments after `/v1`.
    pub(super) async fn get(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Value, FetchError> {
        let mut url = self.url(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let headers = [("accept", MEDIA_TYPE)];
        let response = self.client.get_json(url, self.api_key, &headers).await;
        Ok(count_request(PaymentProvider::LemonSqueezy, response)?)
    }

    /// Sends another request. `path` has the segments after `/v1`.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &[&str],
        document: Option<Value>,
    ) -> Result<Value, FetchError> {
        let headers = [("accept", MEDIA_TYPE)];
        let body = document.map_or(ApiBody::None, |document| {
            ApiBody::Json(MEDIA_TYPE, document)
        });
        let (client, url) = (self.client, self.url(path));
        let response = client.send_json(method, url, self.api_key, &headers, body);
        Ok(count_request(
            PaymentProvider::LemonSqueezy,
            response.await,
        )?)
    }

    /// Returns the URL of the segments after `/v1`.
    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            // Encodes each segment, because an id comes from a notification.
            segments.clear().push("v1").extend(path);
        }
        url
    }
}
