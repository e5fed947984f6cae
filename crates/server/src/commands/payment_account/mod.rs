//! `perennial payment-account`: a tenant's accounts with payment providers, by the rules of the API.

use anyhow::Context;
use clap::{Args, Subcommand};
use perennial_domain::{PaymentAccount, PaymentAccountId};

use account_report::AccountReport;

use super::{
    bootstrap,
    explain::date,
    request_fields::into_error,
    tenant::TenantArg,
    terminal::{eprint_wrapped, print_wrapped},
    text_table::Listing,
};
use crate::{
    auth::Tenant,
    clock::Clock,
    db::{CellDatabase, Databases},
    http::etag::IfMatch,
    payment_accounts::{self, PaymentAccountView, table},
    record::ChangeOrigin,
};

mod account_report;
mod check;
mod connect;
mod notifications;
mod settings;
mod webhook_setup;

#[derive(Debug, Subcommand)]
pub enum PaymentAccountCommand {
    /// Add an account and create its webhook at the payment provider
    Connect(connect::PaymentAccountConnectArgs),
    /// Check an account's API key, webhook and notifications
    Check(check::PaymentAccountCheckArgs),
    /// Add an account with a payment provider
    Add(settings::PaymentAccountAddArgs),
    /// List a tenant's payment accounts, newest first
    List {
        #[command(flatten)]
        tenant: TenantArg,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show a payment account, what of it is not applied, and commands that are not acknowledged
    Show {
        #[command(flatten)]
        account: PaymentAccountArg,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Change a payment account's description, external account id, API key or whether it creates users
    Update(settings::PaymentAccountUpdateArgs),
    /// Set or rotate the secret of notifications; the old one is accepted too for 24 hours
    Rotate(settings::PaymentAccountRotateArgs),
    /// Remove a payment account and erase its API key and secrets
    Remove {
        #[command(flatten)]
        account: PaymentAccountArg,
    },
    /// List received notifications, newest first; they are kept for at least 90 days
    Notifications(notifications::PaymentNotificationsArgs),
    /// Process a received notification again
    Replay(notifications::PaymentReplayArgs),
}

/// A payment account of a tenant.
#[derive(Debug, Args)]
pub struct PaymentAccountArg {
    /// The account's id (pac_…)
    #[arg(value_name = "ACCOUNT")]
    id: PaymentAccountId,
    #[command(flatten)]
    tenant: TenantArg,
}

impl PaymentAccountCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, mode) = bootstrap::open().await?;
        db.wait_until_connected().await;
        match self {
            Self::Connect(args) => args.run(&db, mode).await,
            Self::Check(args) => args.run(&db, mode).await,
            Self::Add(args) => args.run(&db, mode).await,
            Self::List { tenant, json } => list(&db, &tenant, json).await,
            Self::Show { account, json } => {
                let found = account.find(&db).await?;
                let connection = found.database(&db)?.connection().await?;
                let report =
                    AccountReport::load(&connection, found.tenant.id, found.record).await?;
                report.print(json)
            }
            Self::Update(args) => args.run(&db, mode).await,
            Self::Rotate(args) => args.run(&db, mode).await,
            Self::Remove { account } => {
                let found = account.find(&db).await?;
                let (database, origin) = (found.database(&db)?, found.origin());
                payment_accounts::delete_account(database, &origin, account.id, &IfMatch::ABSENT)
                    .await
                    .map_err(into_error)?;
                println!("removed {}", account.id);
                let provider = found.record.provider;
                eprint_wrapped(&format!(
                    "Delete its webhook at {provider} too, whose URL ends with {}.",
                    notification_path(account.id)
                ));
                Ok(())
            }
            Self::Notifications(args) => args.run(&db).await,
            Self::Replay(args) => args.run(&db, mode).await,
        }
    }
}

/// A payment account, and the tenant that it belongs to.
struct FoundPaymentAccount {
    tenant: Tenant,
    record: PaymentAccount,
}

impl PaymentAccountArg {
    async fn find(&self, db: &Databases) -> anyhow::Result<FoundPaymentAccount> {
        let tenant = self.tenant.resolve(&db.home()?.connection().await?).await?;
        let record = table::find(db.cell(&tenant.cell)?, tenant.id, self.id).await?;
        let record = record.with_context(|| {
            format!(
                "there is no payment account {}; see `perennial payment-account list`",
                self.id
            )
        })?;
        Ok(FoundPaymentAccount { tenant, record })
    }
}

impl FoundPaymentAccount {
    fn database<'a>(&self, db: &'a Databases) -> anyhow::Result<&'a CellDatabase> {
        Ok(db.cell(&self.tenant.cell)?)
    }

    fn origin(&self) -> ChangeOrigin<'_> {
        bootstrap::change_origin(&self.tenant, Clock::System)
    }
}

async fn list(db: &Databases, tenant: &TenantArg, json: bool) -> anyhow::Result<()> {
    let tenant = tenant.resolve(&db.home()?.connection().await?).await?;
    let connection = db.cell(&tenant.cell)?.connection().await?;
    let mut list = Listing::new(
        ["ID", "PROVIDER", "MODE", "DESCRIPTION", "LAST HEARD"],
        json,
    );
    for account in payment_accounts::list_all(&connection, tenant.id).await? {
        let row = [
            account.id.to_string(),
            account.provider.to_string(),
            account.mode.to_string(),
            description(&account),
            account.last_heard_at.map_or_else(String::new, date),
        ];
        let object = serde_json::to_string(&PaymentAccountView::from(&account))?;
        list.add(row, &object);
    }
    list.print_or("no payment accounts; add one with `perennial payment-account connect`");
    Ok(())
}

fn description(account: &PaymentAccount) -> String {
    let description = account.details.description.as_ref();
    description.map_or_else(String::new, ToString::to_string)
}

fn summary(account: &PaymentAccount) -> String {
    let PaymentAccount {
        id, provider, mode, ..
    } = account;
    let secret = if account.has_secret {
        ""
    } else {
        ", without a secret"
    };
    format!("{id}  {provider}, {mode} mode{secret}")
}

fn print_json(account: &PaymentAccount) -> anyhow::Result<()> {
    let view = PaymentAccountView::from(account);
    println!("{}", serde_json::to_string(&view)?);
    Ok(())
}

/// Prints an account after a change.
fn print_result(account: &PaymentAccount, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(account);
    }
    print_wrapped(&summary(account));
    Ok(())
}

/// Returns the path of the webhook URL, after the public URL of the service.
fn notification_path(id: PaymentAccountId) -> String {
    format!("/payment-notifications/{id}")
}
