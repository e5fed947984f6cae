//! `perennial payment-account add`, `update` and `rotate`

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use perennial_domain::{PaymentMode, PaymentProvider};

use super::{PaymentAccountArg, notification_path, print_result};
use crate::{
    clock::Clock,
    commands::{
        bootstrap,
        explain::date,
        request_fields::{RequestFields, into_error},
        tenant::TenantArg,
        terminal::print_wrapped,
    },
    config::Mode,
    db::Databases,
    http::etag::IfMatch,
    payment_accounts,
};

#[derive(Debug, Args)]
#[command(
    override_usage = "perennial payment-account add [OPTIONS] --provider <PROVIDER>
       --mode <MODE>"
)]
#[command(after_help = "Examples:
  perennial payment-account add --provider stripe --mode test \\
      --api-key-file key.txt
  perennial payment-account add --provider lemonsqueezy --mode live

Then create a webhook at the payment provider with the printed path, and set
its secret with `perennial payment-account rotate`.")]
pub struct PaymentAccountAddArgs {
    /// The payment provider: stripe or lemonsqueezy
    #[arg(long)]
    provider: PaymentProvider,
    /// Whether payments are real: test or live. A sandbox takes only test accounts
    #[arg(long)]
    mode: PaymentMode,
    #[command(flatten)]
    options: PaymentAccountOptionArgs,
    #[command(flatten)]
    tenant: TenantArg,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct PaymentAccountUpdateArgs {
    #[command(flatten)]
    account: PaymentAccountArg,
    #[command(flatten)]
    options: PaymentAccountOptionArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial payment-account rotate pac_0192f0c1a2b37c4d8e5f60718293a4b5 \\
      --secret-file secret.txt
  perennial payment-account rotate pac_0192f0c1a2b37c4d8e5f60718293a4b5

Stripe issues the secret of a webhook. For other providers, one is generated
and shown once.")]
pub struct PaymentAccountRotateArgs {
    #[command(flatten)]
    account: PaymentAccountArg,
    /// File with the secret that the payment provider issued
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The fields that can change.
#[derive(Debug, Args)]
pub struct PaymentAccountOptionArgs {
    /// A note for operators; empty clears it
    #[arg(long)]
    description: Option<String>,
    /// The provider's id of the account or store; notifications that name another one are refused;
    /// empty clears it
    #[arg(long, value_name = "ID")]
    external_account_id: Option<String>,
    /// Whether a customer whom no user matches gets a new one: true or false; true for a new
    /// account
    #[arg(long, value_name = "BOOL")]
    creates_users: Option<bool>,
    /// File with an API key of the account; required for stripe
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
}

impl PaymentAccountOptionArgs {
    fn into_fields(self) -> anyhow::Result<RequestFields> {
        let api_key = read_secret("--api-key-file", self.api_key_file.as_deref())?;
        Ok(RequestFields::default()
            .with_nullable("description", self.description)
            .with_nullable("external_account_id", self.external_account_id)
            .with("creates_users", self.creates_users)
            .with("api_key", api_key))
    }
}

/// Reads a file with a secret, without the white space around it.
pub(super) fn read_secret(flag: &str, file: Option<&Path>) -> anyhow::Result<Option<String>> {
    let Some(file) = file else { return Ok(None) };
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("{flag} {}", file.display()))?;
    let text = text.trim();
    if text.is_empty() {
        bail!("{flag} {}: is empty", file.display());
    }
    if text.contains(char::is_whitespace) {
        bail!(
            "{flag} {}: must contain one value on one line",
            file.display()
        );
    }
    Ok(Some(text.to_owned()))
}

impl PaymentAccountAddArgs {
    pub(super) async fn run(self, db: &Databases, mode: Mode) -> anyhow::Result<()> {
        let home = db.home()?.connection().await?;
        let tenant = self.tenant.resolve(&home).await?;
        let body = { self.options.into_fields()? }
            .with("provider", Some(self.provider.as_str()))
            .with("mode", Some(self.mode.as_str()))
            .into_body()?;
        let account = payment_accounts::parse_create(body, mode).map_err(into_error)?;
        let keys = bootstrap::derived_keys(&home, mode).await?;
        drop(home);
        let origin = bootstrap::change_origin(&tenant, Clock::System);
        let mut connection = db.cell(&tenant.cell)?.connection().await?;
        let tx = connection.begin();
        let context = origin.context(origin.clock.now(), &tx);
        let account = payment_accounts::insert_account(&context, &keys, account).await;
        let account = account.map_err(into_error)?;
        tx.commit().await?;
        print_result(&account, self.json)?;
        if !self.json {
            let (id, provider) = (account.id, account.provider);
            println!("path of notifications: {}", notification_path(id));
            let file = if provider.issues_secrets() {
                " --secret-file FILE"
            } else {
                ""
            };
            print_wrapped(&format!(
                "next: create a webhook at {provider} with the public URL of this service and this path, and set its \
                 secret with `perennial payment-account rotate {id}{file}`"
            ));
        }
        Ok(())
    }
}

impl PaymentAccountUpdateArgs {
    pub(super) async fn run(self, db: &Databases, mode: Mode) -> anyhow::Result<()> {
        let fields = self.options.into_fields()?;
        if fields.is_empty() {
            bail!("nothing to change; see `perennial payment-account update --help`");
        }
        let found = self.account.find(db).await?;
        let keys = bootstrap::derived_keys(&db.home()?.connection().await?, mode).await?;
        let (database, origin) = (found.database(db)?, found.origin());
        let (id, body) = (self.account.id, fields.into_body()?);
        let updated =
            payment_accounts::update_account(database, &origin, &keys, id, &IfMatch::ABSENT, body);
        print_result(&updated.await.map_err(into_error)?, self.json)
    }
}

impl PaymentAccountRotateArgs {
    pub(super) async fn run(self, db: &Databases, mode: Mode) -> anyhow::Result<()> {
        let secret = read_secret("--secret-file", self.secret_file.as_deref())?;
        let body = RequestFields::default()
            .with("secret", secret)
            .into_body()?;
        let found = self.account.find(db).await?;
        let keys = bootstrap::derived_keys(&db.home()?.connection().await?, mode).await?;
        let (database, origin) = (found.database(db)?, found.origin());
        let id = self.account.id;
        let view = payment_accounts::rotate_secret(database, &origin, &keys, id, body)
            .await
            .map_err(into_error)?;
        if self.json {
            println!("{}", serde_json::to_string(&view)?);
            return Ok(());
        }
        println!("{id}  secret stored");
        if let Some(secret) = view.secret() {
            println!("secret: {secret}");
            eprintln!("Store this secret now: it cannot be shown again.");
        }
        if let Some(expires_at) = view.previous_secret_expires_at() {
            eprintln!(
                "The previous secret is accepted too until {}.",
                date(expires_at)
            );
        }
        Ok(())
    }
}
