//! Checkout sessions and customer portal sessions of Stripe.

use reqwest::Method;

use super::stripe_api::StripeApi;
use crate::{
    http::outbound::ApiHttpError,
    payment_accounts::{
        checkout_request::{CheckoutRequest, CreatedCheckout, PRICE_FIELD},
        fetched_object::{FetchError, ObjectReader},
        user_token,
    },
};

impl StripeApi<'_> {
    /// Creates a checkout session. A customer who was deleted at Stripe buys as a new one, with the email address.
    pub async fn create_checkout(
        &self,
        request: &CheckoutRequest<'_>,
    ) -> Result<CreatedCheckout, FetchError> {
        match self.create_session(request).await {
            Err(error) if request.customer.is_some() && is_about_customer(&error) => {
                // Stripe rejects another request with the same key.
                let idempotency_key = format!("{}-new-customer", request.idempotency_key);
                let request = CheckoutRequest {
                    customer: None,
                    idempotency_key: &idempotency_key,
                    ..*request
                };
                self.create_session(&request).await
            }
            created => created,
        }
    }

    /// Creates a checkout session. The subscription gets the signed value too, because notifications name it and not the
    /// session. A one-time price gets an invoice, which has the signed value instead.
    async fn create_session(
        &self,
        request: &CheckoutRequest<'_>,
    ) -> Result<CreatedCheckout, FetchError> {
        let (mode, bought): (_, &[&str]) = if request.is_recurring {
            ("subscription", &["subscription_data"])
        } else {
            let invoice = "invoice_creation[invoice_data]";
            ("payment", &["payment_intent_data", invoice])
        };
        let metadata = format!("metadata[{}]", user_token::FIELD);
        let bought: Vec<[String; 2]> = { bought.iter() }
            .map(|data| {
                [user_token::FIELD, PRICE_FIELD].map(|field| format!("{data}[metadata][{field}]"))
            })
            .collect();
        let trial_days = request.trial_days.to_string();
        let mut form = vec![
            ("mode", mode),
            ("line_items[0][price]", request.variant),
            ("line_items[0][quantity]", "1"),
            ("success_url", request.success_url),
            ("client_reference_id", request.user_token),
            (metadata.as_str(), request.user_token),
        ];
        for [user, price] in &bought {
            form.push((user, request.user_token));
            if !request.is_recurring {
                form.push((price, request.variant));
            }
        }
        if !request.is_recurring {
            form.push(("invoice_creation[enabled]", "true"));
        }
        if request.is_recurring && request.trial_days > 0 {
            form.push(("subscription_data[trial_period_days]", trial_days.as_str()));
        }
        // Stripe accepts only one of them.
        match (request.customer, request.email) {
            (Some(customer), _) => form.push(("customer", customer)),
            (None, Some(email)) => form.push(("customer_email", email)),
            (None, None) => {}
        }
        let path = ["checkout", "sessions"];
        let session = self
            .send(Method::POST, &path, &form, Some(request.idempotency_key))
            .await?;
        let session = ObjectReader::new("checkout session", &session);
        Ok(CreatedCheckout {
            url: session.text("/url")?.to_owned(),
            expires_at: session.optional_seconds("/expires_at")?,
        })
    }

    /// Creates a session of the customer portal and returns its URL.
    pub async fn create_portal_session(
        &self,
        customer: &str,
        return_url: Option<&str>,
    ) -> Result<String, FetchError> {
        let mut form = vec![("customer", customer)];
        form.extend(return_url.map(|url| ("return_url", url)));
        let path = ["billing_portal", "sessions"];
        let session = self.send(Method::POST, &path, &form, None).await?;
        let session = ObjectReader::new("portal session", &session);
        Ok(session.text("/url")?.to_owned())
    }
}

/// Returns whether Stripe has rejected the customer of a request.
fn is_about_customer(error: &FetchError) -> bool {
    let FetchError::Http(ApiHttpError::Rejected(_, codes)) = error else {
        return false;
    };
    codes.contain("customer")
}
