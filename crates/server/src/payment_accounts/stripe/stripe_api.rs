//! Fetches objects from the API of Stripe.
//!
//! The version of the API is pinned, so that responses keep their shape when Stripe or the account moves on. Both
//! generations of shapes are read: in 2025-03-31 ("basil"), the period of a subscription moved to its items and the
//! subscription of an invoice to `parent`, and refunds and disputes lost their invoice.

use perennial_domain::{PaymentObjectKind, PaymentProvider};
use reqwest::Method;
use secrecy::SecretString;
use serde_json::Value;
use url::Url;

use super::{
    stripe_invoice::{InvoiceMoney, invoice_fact, invoice_payment_intents, needs_charges},
    stripe_subscription::subscription_fact,
};
use crate::{
    http::outbound::{ApiBody, ApiHttpClient},
    payment_accounts::{
        fetched_object::{FetchError, FetchedObject, ObjectReader, leads_to},
        provider_metrics::count_request,
        provider_notification::PaymentObjectRef,
    },
};

/// The version whose shapes this module reads.
pub(super) const API_VERSION: &str = "2026-10-28.endive";
/// The largest page of a list.
pub(super) const MAX_PAGE: &str = "100";

/// Requests with the API key of one account.
pub struct StripeApi<'a> {
    pub client: &'a ApiHttpClient,
    pub base: &'a Url,
    pub api_key: &'a SecretString,
}

impl StripeApi<'_> {
    /// Sends a GET request. `path` has the segments after `/v1`.
    pub(super) async fn get(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Value, FetchError> {
        let mut url = self.url(path);
        url.query_pairs_mut().extend_pairs(query);
        let headers = [("stripe-version", API_VERSION)];
        let response = self.client.get_json(url, self.api_key, &headers).await;
        Ok(count_request(PaymentProvider::Stripe, response)?)
    }

    /// Sends a POST request with a form, or a DELETE request without a body. `path` has the segments after `/v1`.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &[&str],
        form: &[(&str, &str)],
        idempotency_key: Option<&str>,
    ) -> Result<Value, FetchError> {
        let mut headers = vec![("stripe-version", API_VERSION)];
        headers.extend(idempotency_key.map(|key| ("idempotency-key", key)));
        let pairs = { form.iter() }.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let body = match method {
            Method::DELETE => ApiBody::None,
            _ => ApiBody::Form(pairs.collect()),
        };
        let (client, url) = (self.client, self.url(path));
        let response = client.send_json(method, url, self.api_key, &headers, body);
        Ok(count_request(PaymentProvider::Stripe, response.await)?)
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

    /// Fetches an object.
    pub async fn fetch(&self, object: &PaymentObjectRef) -> Result<FetchedObject, FetchError> {
        let id = object.id.as_str();
        match object.kind {
            PaymentObjectKind::Subscription => {
                let expand = [("expand[]", "customer")];
                let value = self.get(&["subscriptions", id], &expand).await?;
                Ok(subscription_fact(&value)?)
            }
            PaymentObjectKind::Invoice => self.fetch_invoice(id).await,
            PaymentObjectKind::PaymentIntent => self.fetch_paid_invoice(id).await,
            PaymentObjectKind::Charge => self.fetch_link("charge", &["charges", id]).await,
            PaymentObjectKind::Refund => self.fetch_link("refund", &["refunds", id]).await,
            PaymentObjectKind::Dispute => self.fetch_link("dispute", &["disputes", id]).await,
            PaymentObjectKind::Order | PaymentObjectKind::Customer => {
                Ok(FetchedObject::Unrelated("Stripe reports no such object"))
            }
        }
    }

    /// Fetches an invoice, and what happened to its money: charges with their refunds, and disputes.
    async fn fetch_invoice(&self, id: &str) -> Result<FetchedObject, FetchError> {
        let expand = [("expand[]", "payments")];
        let invoice = self.get(&["invoices", id], &expand).await?;
        let mut money = InvoiceMoney::default();
        if needs_charges(&invoice)? {
            for intent in invoice_payment_intents(&invoice)? {
                self.fetch_money(&intent, &mut money).await?;
            }
        }
        Ok(invoice_fact(&invoice, &money)?)
    }

    /// Adds the charges of a payment, with their refunds, and its disputes.
    pub(super) async fn fetch_money(
        &self,
        intent: &str,
        money: &mut InvoiceMoney,
    ) -> Result<(), FetchError> {
        let of_intent = [("payment_intent", intent), ("limit", MAX_PAGE)];
        money.add_charges(&self.get(&["charges"], &of_intent).await?)?;
        if money.is_disputed {
            money.add_disputes(&self.get(&["disputes"], &of_intent).await?)?;
        }
        Ok(())
    }

    /// Fetches which invoice a payment was for.
    async fn fetch_paid_invoice(&self, intent: &str) -> Result<FetchedObject, FetchError> {
        let query = [
            ("payment[type]", "payment_intent"),
            ("payment[payment_intent]", intent),
            ("limit", "1"),
        ];
        let list = self.get(&["invoice_payments"], &query).await?;
        let list = ObjectReader::new("invoice payment", &list);
        Ok(match list.items("/data")?.first() {
            Some(payment) => {
                let invoice = payment.id("/invoice")?;
                leads_to(PaymentObjectKind::Invoice, invoice.as_str())
            }
            None => FetchedObject::Unrelated("the payment is for no invoice"),
        })
    }

    /// Fetches an object that leads to its payment, or to its charge, which leads to its payment.
    async fn fetch_link(
        &self,
        noun: &'static str,
        path: &[&str],
    ) -> Result<FetchedObject, FetchError> {
        let value = self.get(path, &[]).await?;
        let object = ObjectReader::new(noun, &value);
        if let Some(intent) = object.optional_id("/payment_intent")? {
            return Ok(leads_to(PaymentObjectKind::PaymentIntent, intent));
        }
        // Of shapes before basil.
        if let Some(invoice) = object.optional_id("/invoice")? {
            return Ok(leads_to(PaymentObjectKind::Invoice, invoice));
        }
        Ok(match object.optional_id("/charge")? {
            Some(charge) => leads_to(PaymentObjectKind::Charge, charge),
            None => FetchedObject::Unrelated("the charge is for no invoice"),
        })
    }
}
