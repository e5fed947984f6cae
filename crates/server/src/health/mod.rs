//! The checks of an installation: `GET /health` returns them, and `perennial doctor` prints them.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /health` | `read.rs` | secret clients with `health:read` |
//!
//! A failed check does not stop the others. Checks of a tenant's data cover the tenants of the [`HealthChecker`]: all of
//! them for the command, and only the caller's for the endpoint. `doctor` has further checks, of what a running service
//! has already proven: its configuration and the schema.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App, auth::Tenant, clock::Clocks, config::Mode, crypto::DerivedKeys, db::Databases,
    identity_providers::IdentityVerifier,
};

mod client_checks;
mod database_checks;
mod health_check;
mod key_checks;
mod payment_checks;
mod provider_checks;
mod read;
mod worker_checks;

pub use client_checks::check_clients;
pub use health_check::{HealthCheck, HealthStatus};
pub use key_checks::check_master_keys;

/// Returns the endpoint of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(read::read))
}

/// What the checks read.
pub struct HealthChecker<'a> {
    pub db: &'a Databases,
    pub mode: Mode,
    pub clocks: Clocks,
    /// The configured master keys; `None` if there is none yet.
    pub keys: Option<&'a DerivedKeys>,
    pub verifier: Option<&'a IdentityVerifier>,
    /// The tenants whose data is checked, with their names.
    pub tenants: &'a [(Tenant, String)],
    /// The time for all checks together.
    pub timeout: Duration,
}

impl HealthChecker<'_> {
    /// Runs all checks, one after the other.
    pub async fn run(&self) -> Vec<HealthCheck> {
        let deadline = Instant::now() + self.timeout;
        let mut checks = Vec::new();
        // Boxed, because each has another type. The slowest is last.
        let groups: [(&str, CheckFuture<'_>); 9] = [
            ("database", Box::pin(self.check_databases())),
            ("keys", Box::pin(self.check_keys())),
            ("clients", Box::pin(self.check_clients())),
            ("worker", Box::pin(self.check_worker())),
            ("subscriptions", Box::pin(self.check_backlog())),
            ("unmanaged_subscriptions", Box::pin(self.check_unmanaged())),
            ("payment_accounts", Box::pin(self.check_payment_accounts())),
            ("reports", Box::pin(self.check_reports())),
            ("identity_providers", Box::pin(self.check_providers())),
        ];
        for (name, group) in groups {
            match timeout_at(deadline, group).await {
                Ok(Ok(found)) => checks.extend(found),
                Ok(Err(error)) => checks.push(HealthCheck::failed(name, format!("{error:#}"))),
                Err(_) => {
                    let seconds = self.timeout.as_secs();
                    let detail = format!("not checked: the checks took longer than {seconds} s");
                    checks.push(HealthCheck::warning(name, detail));
                }
            }
        }
        checks
    }
}

type CheckFuture<'a> =
    std::pin::Pin<Box<dyn Future<Output = anyhow::Result<Vec<HealthCheck>>> + Send + 'a>>;
