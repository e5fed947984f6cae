//! `perennial seed`: fills an empty sandbox with demo data.

use std::time::Instant;

use anyhow::bail;
use clap::Args;
use perennial_domain::Lifecycle;

use super::{
    bootstrap,
    progress::ProgressBar,
    tenant::{TenantArg, check_can_be_managed},
};
use crate::{
    config::Mode,
    sandbox::demo_data::{self, SUBSCRIBER_COUNT},
};

#[derive(Debug, Args)]
#[command(after_help = "Example:
  perennial seed --demo
  perennial sandbox clock advance 1mo")]
pub struct SeedArgs {
    /// Create three plans, 240 subscribers and 14 months of payments, and set the tenant's
    /// lifecycle to managed
    #[arg(long, required = true)]
    demo: bool,
    #[command(flatten)]
    tenant: TenantArg,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl SeedArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let started = Instant::now();
        let (db, mode) = bootstrap::open().await?;
        if mode != Mode::Sandbox {
            bail!("this database is in {mode} mode; demo data requires sandbox mode");
        }
        let home = db.home()?.connection().await?;
        let tenant = self.tenant.resolve(&home).await?;
        drop(home);
        let now = bootstrap::clocks(&db).await?.billing.now();
        if tenant.lifecycle == Lifecycle::Recorded {
            check_can_be_managed(&db, &tenant, now).await?;
        }
        let bar = ProgressBar::new(SUBSCRIBER_COUNT);
        let progress =
            |done| bar.update(done, &format!("{done} of {SUBSCRIBER_COUNT} subscribers"));
        let context = bootstrap::system_context();
        let created = demo_data::create(&db, context, tenant, now, progress).await?;
        bar.clear();
        let payments = created.payments;
        if self.json {
            println!(
                "{}",
                serde_json::json!({"plans": 3, "subscribers": SUBSCRIBER_COUNT, "payments": payments})
            );
            return Ok(());
        }
        println!(
            "3 plans (free, pro, team) · {SUBSCRIBER_COUNT} subscribers · {payments} payments in 14 months · {:.1} s",
            started.elapsed().as_secs_f64()
        );
        println!("lifecycle is managed; next: perennial sandbox clock advance 1mo");
        Ok(())
    }
}
