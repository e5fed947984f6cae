//! `perennial report rebuild`

use std::time::Duration;

use clap::Args;

use crate::{
    auth::{Tenant, tenants},
    commands::{pluralize, progress::ProgressBar, tenant::TenantArg},
    db::Databases,
    reports::{RebuildStep, rebuild_step},
};

/// How long to wait while the roll-up has locked the sums.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub struct ReportRebuildArgs {
    /// All tenants
    #[arg(long, conflicts_with = "tenant")]
    all: bool,
    #[command(flatten)]
    tenant: TenantArg,
}

impl ReportRebuildArgs {
    pub(super) async fn run(self, db: &Databases) -> anyhow::Result<()> {
        let home = db.home()?.connection().await?;
        let tenants = if self.all {
            tenants::table::list(&home).await?
        } else {
            let tenant = self.tenant.resolve(&home).await?;
            let tenants = tenants::table::list(&home).await?.into_iter();
            tenants.filter(|(other, _)| other.id == tenant.id).collect()
        };
        drop(home);
        for (tenant, name) in tenants {
            let (users, payments) = rebuild(db, &tenant, &name).await?;
            let (users, payments) = (pluralize(users, "user"), pluralize(payments, "payment"));
            println!("rebuilt the reports of {name}: {users}, {payments}");
        }
        Ok(())
    }
}

async fn rebuild(db: &Databases, tenant: &Tenant, name: &str) -> anyhow::Result<(usize, usize)> {
    let database = db.cell(&tenant.cell)?;
    let progress = ProgressBar::new(0);
    let (mut users, mut payments) = (0, 0);
    loop {
        match rebuild_step(database, tenant.id).await? {
            RebuildStep::Complete => break,
            RebuildStep::Users(count) => users += count,
            RebuildStep::Payments(count) => payments += count,
            RebuildStep::Waiting => tokio::time::sleep(LOCK_PAUSE).await,
        }
        progress.update(0, &format!("{name}: {users} users, {payments} payments"));
    }
    progress.clear();
    Ok((users, payments))
}
