//! `perennial import`: takes over plans, customers, subscriptions and invoices of a payment provider.

use std::{collections::HashSet, time::Instant};

use anyhow::{Context, bail};
use clap::Args;
use perennial_domain::{PaymentAccount, PaymentAccountId, PaymentProvider};

use super::{bootstrap, progress::ProgressBar, tenant::TenantArg};
use crate::{
    app::App,
    auth::Tenant,
    clock::Clock,
    config::Config,
    db::instance,
    payment_accounts::{self, ListWalk, WalkPurpose},
};

mod import_report;
mod plans;

#[derive(Debug, Args)]
#[command(
    after_help = "A run that was interrupted continues. A second run repairs what
notifications have missed. The exit status is 1 if objects have failed;
objects that wait are applied by the service when their plan, user or
subscription appears.

Examples:
  perennial import stripe --dry-run --create-plans
  perennial import stripe --create-plans
  perennial import lemonsqueezy --account pac_…"
)]
pub struct ImportArgs {
    /// The payment provider: stripe or lemonsqueezy
    provider: PaymentProvider,
    /// The payment account (pac_…); optional while there is only one
    #[arg(long)]
    account: Option<PaymentAccountId>,
    /// Only print what would happen
    #[arg(long)]
    dry_run: bool,
    /// Create a plan for each recurring price that no plan has
    #[arg(long)]
    create_plans: bool,
    #[command(flatten)]
    tenant: TenantArg,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl ImportArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, mode) = bootstrap::open().await?;
        db.wait_until_connected().await;
        let home = db.home()?.connection().await?;
        let tenant = self.tenant.resolve(&home).await?;
        let keys = bootstrap::derived_keys(&home, mode).await?;
        drop(home);
        let app = App::new(&Config::from_env()?, &keys, Clock::System)?;
        app.db.wait_until_connected().await;
        if matches!(app.billing_clock, Clock::Offset(_)) {
            app.billing_clock
                .set(instance::clock_offset(app.db.home()?).await?);
        }
        let account = self.find_account(&app, &tenant).await?;
        self.import(&app, &tenant, &account).await
    }

    /// Returns the chosen account, or the only one of the payment provider.
    async fn find_account(&self, app: &App, tenant: &Tenant) -> anyhow::Result<PaymentAccount> {
        let connection = app.db.cell(&tenant.cell)?.connection().await?;
        let mut accounts = payment_accounts::list_all(&connection, tenant.id).await?;
        accounts.retain(|account| {
            account.provider == self.provider && self.account.is_none_or(|id| id == account.id)
        });
        let provider = self.provider;
        if accounts.len() > 1 {
            let ids: Vec<String> = accounts.iter().map(|found| found.id.to_string()).collect();
            let ids = ids.join(", ");
            bail!("there are several accounts of {provider}; choose one with --account: {ids}");
        }
        accounts.pop().with_context(|| match self.account {
            Some(id) => format!(
                "there is no payment account {id} of {provider}; see `perennial payment-account list`"
            ),
            None => format!(
                "there is no payment account of {provider}; add one with `perennial payment-account connect {provider}`"
            ),
        })
    }

    async fn import(
        &self,
        app: &App,
        tenant: &Tenant,
        account: &PaymentAccount,
    ) -> anyhow::Result<()> {
        let mut walk = ListWalk {
            app,
            database: app.db.cell(&tenant.cell)?,
            tenant: tenant.id,
            account,
            purpose: WalkPurpose::Import,
            is_dry_run: self.dry_run,
            assumed_variants: HashSet::new(),
        };
        let plans = plans::import_plans(&walk, tenant, self.create_plans).await;
        let plans =
            plans.with_context(|| format!("cannot read the lists of {}", account.provider))?;
        if self.dry_run {
            walk.assumed_variants = plans.created_variants();
        }
        let bar = ProgressBar::new(100);
        let started_at = Instant::now();
        let mut read = 0;
        let report = walk.run(|position| {
            let (step, count, percent) = position.progress();
            read = position.read;
            let rate = import_report::rate(read, started_at.elapsed());
            bar.update(percent, &format!("{} {count}, {rate}/s", step.noun()));
        });
        let report = report.await;
        bar.clear();
        let finished = import_report::FinishedImport {
            account,
            plans: &plans,
            report: &report?,
            read,
            elapsed: started_at.elapsed(),
            is_dry_run: self.dry_run,
        };
        finished.print(self.json)
    }
}
