//! The check of identity providers: whether each publishes its keys.

use std::time::Duration;

use tokio::time::timeout;

use super::{HealthCheck, HealthChecker};
use crate::{config::Mode, identity_providers, timeline::plain_text::pluralize};

const NAME: &str = "identity_providers";
/// The time for one provider.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(5);

impl HealthChecker<'_> {
    pub(super) async fn check_providers(&self) -> anyhow::Result<Vec<HealthCheck>> {
        let Some(verifier) = self.verifier else {
            return Ok(Vec::new());
        };
        let home = self.db.home()?.connection().await?;
        let mut providers = Vec::new();
        for (tenant, _) in self.tenants {
            providers.extend(identity_providers::table::list(&home, tenant.id).await?);
        }
        drop(home);
        let mut checks = Vec::new();
        for provider in providers {
            let metadata = timeout(PROVIDER_TIMEOUT, verifier.metadata(&provider)).await;
            let issuer = &provider.issuer;
            let error = match metadata {
                Ok(Ok(metadata)) => {
                    let keys = pluralize(metadata.keys.len(), "key");
                    checks.push(HealthCheck::ok(NAME, format!("provider {issuer}, {keys}")));
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no response in {} s", PROVIDER_TIMEOUT.as_secs()),
            };
            checks.push(
                HealthCheck::failed(NAME, format!("provider {issuer}: {error}"))
                    .fix("run `perennial provider check`")
                    .see("runbooks/identity-provider-down"),
            );
        }
        if checks.is_empty() && self.mode == Mode::Live {
            let detail = "there is no identity provider, so users cannot sign in";
            checks.push(
                HealthCheck::warning(NAME, detail)
                    .fix("run `perennial provider add`")
                    .see("how-to/connect-an-identity-provider"),
            );
        }
        Ok(checks)
    }
}
