//! `perennial report`: the reports of the API in the terminal.

use clap::{Args, Subcommand};
use jiff::civil::Date;
use perennial_domain::{BillingCycle, Currency, Slug};

use super::{bootstrap, tenant::TenantArg};
use crate::{
    commands::request_fields::into_error,
    db::Databases,
    reports::{self, ReportContext, ReportInterval, ReportQuery, Tabular},
};

mod chart;
mod print;
mod rebuild;

#[derive(Debug, Subcommand)]
pub enum ReportCommand {
    /// Show recurring revenue (MRR) and why it changed
    #[command(after_help = "Examples:
  perennial report revenue
  perennial report revenue --interval day --from 2026-11-01
  perennial report revenue --plan pro --currency USD --csv > revenue.csv")]
    Revenue(PlanReportArgs),
    /// Show how many users and how much MRR was lost
    #[command(after_help = "Example:
  perennial report churn --interval quarter")]
    Churn(PlanReportArgs),
    /// Show trials that began, converted and were lost
    #[command(after_help = "Example:
  perennial report trials --plan pro")]
    Trials(PlanReportArgs),
    /// Show collected, refunded and failed payments
    #[command(after_help = "Example:
  perennial report payments --interval day --from 2026-11-01")]
    Payments(ReportArgs),
    /// Compute the sums of the reports again, from the journal of all changes
    #[command(
        after_help = "Reports show the old sums until the new ones are complete. An interrupted
rebuild continues when the command is run again."
    )]
    Rebuild(rebuild::ReportTenantsArgs),
    /// Compare the sums of the reports with the subscriptions
    #[command(after_help = "Reads every subscription. The exit status is 1 if the sums differ.")]
    Check(rebuild::ReportTenantsArgs),
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The first day [default: the first of the month eleven months before]
    #[arg(long, value_name = "DAY")]
    from: Option<Date>,
    /// The last day, in UTC [default: today]
    #[arg(long, value_name = "DAY")]
    to: Option<Date>,
    /// The length of the intervals: day, week, month, quarter or year
    #[arg(long, default_value = "month")]
    interval: ReportInterval,
    /// Only this currency (ISO 4217)
    #[arg(long)]
    currency: Option<Currency>,
    #[command(flatten)]
    tenant: TenantArg,
    /// Print one JSON object, as the API returns it
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
}

#[derive(Debug, Args)]
pub struct PlanReportArgs {
    #[command(flatten)]
    report: ReportArgs,
    /// Only plans with this slug
    #[arg(long, value_name = "SLUG")]
    plan: Option<Slug>,
    /// Only subscriptions with this billing cycle
    #[arg(long, value_name = "CYCLE")]
    billing_cycle: Option<BillingCycle>,
}

impl ReportArgs {
    async fn context(&self, db: &Databases) -> anyhow::Result<ReportContext> {
        let tenant = self.tenant.resolve(&db.home()?.connection().await?).await?;
        let now = bootstrap::clocks(db).await?.billing.now();
        let database = db.cell(&tenant.cell)?;
        let context = ReportContext::new(database, tenant.id, now).await;
        context.map_err(into_error)
    }

    fn query(&self, today: Date) -> anyhow::Result<ReportQuery> {
        let to = self.to.unwrap_or(today);
        let default = ReportQuery::last_year(to);
        let query = ReportQuery {
            from: self.from.unwrap_or(default.from),
            interval: self.interval,
            currency: self.currency,
            ..default
        };
        let checked = query
            .check()
            .map_err(|message| anyhow::anyhow!("--from: {message}"));
        checked.map(|()| query)
    }

    /// Prints the report as JSON or CSV if that was asked for. Otherwise returns it to be drawn.
    fn print<R: Tabular>(&self, report: R) -> anyhow::Result<Option<R>> {
        if self.json {
            println!("{}", serde_json::to_string(&report)?);
        } else if self.csv {
            print!("{}", report.table().to_csv());
        } else {
            return Ok(Some(report));
        }
        Ok(None)
    }
}

impl PlanReportArgs {
    fn query(&self, today: Date) -> anyhow::Result<ReportQuery> {
        Ok(ReportQuery {
            plan: self.plan,
            billing_cycle: self.billing_cycle,
            ..self.report.query(today)?
        })
    }
}

impl ReportCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, _) = bootstrap::open().await?;
        db.wait_until_connected().await;
        match self {
            Self::Revenue(args) => {
                let mut context = args.report.context(&db).await?;
                let query = args.query(context.today())?;
                let report = reports::revenue_report(&mut context, &query).await;
                if let Some(report) = args.report.print(report.map_err(into_error)?)? {
                    print::revenue(&report);
                }
            }
            Self::Churn(args) => {
                let mut context = args.report.context(&db).await?;
                let query = args.query(context.today())?;
                let report = reports::churn_report(&mut context, &query).await;
                if let Some(report) = args.report.print(report.map_err(into_error)?)? {
                    print::churn(&report);
                }
            }
            Self::Trials(args) => {
                let mut context = args.report.context(&db).await?;
                let query = args.query(context.today())?;
                let report = reports::trials_report(&mut context, &query).await;
                if let Some(report) = args.report.print(report.map_err(into_error)?)? {
                    print::trials(&report);
                }
            }
            Self::Payments(args) => {
                let mut context = args.context(&db).await?;
                let query = args.query(context.today())?;
                let report = reports::payments_report(&mut context, &query).await;
                if let Some(report) = args.print(report.map_err(into_error)?)? {
                    print::payments(&report);
                }
            }
            Self::Rebuild(args) => args.rebuild(&db).await?,
            Self::Check(args) => args.check(&db).await?,
        }
        Ok(())
    }
}
