//! Commands about subscriptions of Stripe.

use reqwest::Method;

use super::stripe_api::StripeApi;
use crate::{
    payment_accounts::fetched_object::FetchError, payment_commands::PaymentProviderCommand,
};

impl StripeApi<'_> {
    /// Sends a command about a subscription. It has no idempotency key: a repeated command changes nothing, and Stripe would
    /// repeat a failed response to the same key.
    pub async fn send_command(
        &self,
        command: PaymentProviderCommand,
        subscription: &str,
    ) -> Result<(), FetchError> {
        let path = ["subscriptions", subscription];
        let (method, form): (_, &[(&str, &str)]) = match command {
            PaymentProviderCommand::Cancel => (Method::POST, &[("cancel_at_period_end", "true")]),
            PaymentProviderCommand::Resume => (Method::POST, &[("cancel_at_period_end", "false")]),
            PaymentProviderCommand::End => (Method::DELETE, &[]),
        };
        self.send(method, &path, form, None).await?;
        Ok(())
    }
}
