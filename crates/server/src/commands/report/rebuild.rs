//! `perennial report rebuild` and `perennial report check`

use std::time::Duration;

use clap::Args;
use perennial_domain::format_minor_units;

use crate::{
    auth::{Tenant, tenants},
    commands::{pluralize, progress::ProgressBar, tenant::TenantArg, terminal::print_wrapped},
    db::Databases,
    reports::{RebuildStep, SumComparison, compare_sums, rebuild_step},
    subscriptions,
};

/// How long to wait while the roll-up has locked the sums.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Which tenants' reports.
#[derive(Debug, Args)]
pub struct ReportTenantsArgs {
    /// All tenants
    #[arg(long, conflicts_with = "tenant")]
    all: bool,
    #[command(flatten)]
    tenant: TenantArg,
}

impl ReportTenantsArgs {
    async fn tenants(&self, db: &Databases) -> anyhow::Result<Vec<(Tenant, String)>> {
        let home = db.home()?.connection().await?;
        let tenants = tenants::table::list(&home).await?;
        if self.all {
            return Ok(tenants);
        }
        let chosen = self.tenant.resolve(&home).await?;
        let tenants = tenants.into_iter();
        Ok(tenants
            .filter(|(tenant, _)| tenant.id == chosen.id)
            .collect())
    }

    pub(super) async fn rebuild(self, db: &Databases) -> anyhow::Result<()> {
        for (tenant, name) in self.tenants(db).await? {
            let (users, payments) = rebuild(db, &tenant, &name).await?;
            let (users, payments) = (pluralize(users, "user"), pluralize(payments, "payment"));
            println!("rebuilt the reports of {name}: {users}, {payments}");
        }
        Ok(())
    }

    pub(super) async fn check(self, db: &Databases) -> anyhow::Result<()> {
        let mut differences = 0;
        for (tenant, name) in self.tenants(db).await? {
            let scope = subscriptions::scope(&tenant);
            let found = match compare_sums(db.cell(&tenant.cell)?, scope, usize::MAX).await? {
                SumComparison::Compared(found) => found,
                SumComparison::Incomplete | SumComparison::TooMany => {
                    println!(
                        "the reports of {name} are not complete yet: a restored database is still being read"
                    );
                    continue;
                }
            };
            if found.is_empty() {
                println!("the reports of {name} equal the subscriptions");
            }
            for difference in &found {
                let currency = difference.currency;
                let [reported, stored] = [difference.reported, difference.stored]
                    .map(|value| format_minor_units(value, currency));
                print_wrapped(&format!(
                    "{name}: reports say {reported} {currency} per year, the subscriptions are worth {stored}"
                ));
            }
            differences += found.len();
        }
        if differences > 0 {
            anyhow::bail!("reports differ; `perennial report rebuild` computes them again");
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
