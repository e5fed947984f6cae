//! The calls that cause events of payment accounts.

use perennial_domain::EventKind;
use serde_json::json;

use super::{Trigger, id};

impl Trigger<'_> {
    /// Creates an account without an API key, so that no request is sent to a payment provider. It is deleted at the end.
    pub(super) async fn cause_payment_account_event(
        &self,
        kind: EventKind,
    ) -> anyhow::Result<String> {
        let body = json!({"provider": "lemonsqueezy", "mode": "test"});
        let account = self.post("/payment-accounts", &body).await?;
        let path = format!("/payment-accounts/{}", id(&account)?);
        match kind {
            EventKind::PaymentAccountUpdated => {
                self.put(&path, &json!({"description": "Shop"})).await?;
            }
            EventKind::PaymentAccountSecretRotated => {
                self.post(&format!("{path}/rotate-secret"), &json!({}))
                    .await?;
            }
            _ => {}
        }
        self.delete(&path).await?;
        id(&account)
    }
}
