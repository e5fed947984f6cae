//! Commands about subscriptions of Stripe.

use jiff::Timestamp;
use reqwest::Method;

use super::stripe_api::StripeApi;
use crate::{
    payment_accounts::fetched_object::{FetchError, ObjectReader},
    payment_commands::PaymentProviderCommand,
};

impl StripeApi<'_> {
    /// Sends a command about a subscription. It has no idempotency key: a repeated command changes nothing, and Stripe would
    /// repeat a failed response to the same key.
    pub async fn send_command(
        &self,
        command: PaymentProviderCommand,
        subscription: &str,
        ends_at: Option<Timestamp>,
    ) -> Result<(), FetchError> {
        let path = ["subscriptions", subscription];
        let cancel_at = ends_at.map(|end| end.as_second().to_string());
        let (method, parameter) = match (command, cancel_at.as_deref()) {
            (PaymentProviderCommand::Cancel, Some(end)) => (Method::POST, ("cancel_at", end)),
            (PaymentProviderCommand::Cancel, None) => {
                (Method::POST, ("cancel_at_period_end", "true"))
            }
            (PaymentProviderCommand::Resume, _) => {
                (Method::POST, ("cancel_at_period_end", "false"))
            }
            (PaymentProviderCommand::End, _) => {
                self.send(Method::DELETE, &path, &[], None).await?;
                return Ok(());
            }
        };
        let changed = self.send(method, &path, &[parameter], None).await?;
        // A cancellation at another time than the end of the period is undone by its own parameter.
        let changed = ObjectReader::new("subscription", &changed);
        if command == PaymentProviderCommand::Resume && changed.get("/cancel_at").is_some() {
            self.send(Method::POST, &path, &[("cancel_at", "")], None)
                .await?;
        }
        Ok(())
    }
}
