//! `perennial seed`: fills an empty sandbox with demo data.

use std::time::Instant;

use anyhow::bail;
use clap::Args;
use perennial_domain::Lifecycle;

use super::{
    bootstrap,
    progress::ProgressBar,
    sandbox::apply_all_due,
    tenant::{TenantArg, check_can_be_managed},
};
use crate::{
    auth::tenants::{self, LifecycleSettings, TenantSettings},
    config::Mode,
};

mod demo;
mod fixtures;
mod history;
mod replay;

use fixtures::SUBSCRIBER_COUNT;

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
        let mut home = db.home()?.connection().await?;
        let mut tenant = self.tenant.resolve(&home).await?;
        let now = bootstrap::clocks(&db).await?.billing.now();
        let was_recorded = tenant.lifecycle == Lifecycle::Recorded;
        if was_recorded {
            check_can_be_managed(&db, &tenant, now).await?;
        }
        let plans = demo::create_plans(&db, &tenant, now).await?;
        if was_recorded {
            let settings = TenantSettings {
                lifecycle: LifecycleSettings {
                    managed: Some(true),
                    since: now,
                    ..LifecycleSettings::default()
                },
                ..TenantSettings::default()
            };
            tenants::update(&mut home, bootstrap::system_context(), tenant.id, &settings).await?;
            tenant = self.tenant.resolve(&home).await?;
        }
        let mut demo = demo::Demo::new(&db, &tenant, &plans, now).await?;
        let progress = ProgressBar::new(SUBSCRIBER_COUNT);
        for number in 0..SUBSCRIBER_COUNT {
            demo.add_subscriber(&fixtures::subscriber(number, now))
                .await?;
            let done = number + 1;
            progress.update(done, &format!("{done} of {SUBSCRIBER_COUNT} subscribers"));
        }
        progress.clear();
        let payments = demo.finish();
        apply_all_due(&db, &tenant.cell, now).await?;
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
