//! Commands about subscriptions of Lemon Squeezy.

use reqwest::Method;
use serde_json::json;

use super::lemon_api::LemonSqueezyApi;
use crate::{
    payment_accounts::fetched_object::FetchError, payment_commands::PaymentProviderCommand,
};

impl LemonSqueezyApi<'_> {
    /// Sends a command about a subscription. Lemon Squeezy cannot end a subscription before the end of the paid period.
    pub async fn send_command(
        &self,
        command: PaymentProviderCommand,
        subscription: &str,
    ) -> Result<(), FetchError> {
        let path = ["subscriptions", subscription];
        // A key of the other mode must not cancel a subscription that has the same number there.
        self.check_mode(&self.get(&path, &[]).await?)?;
        match command {
            PaymentProviderCommand::Cancel | PaymentProviderCommand::End => {
                self.send(Method::DELETE, &path, None).await?;
            }
            PaymentProviderCommand::Resume => {
                let document = json!({"data": {
                    "type": "subscriptions", "id": subscription, "attributes": {"cancelled": false},
                }});
                self.send(Method::PATCH, &path, Some(document)).await?;
            }
        }
        Ok(())
    }
}
