//! `perennial payment-account connect` and `check`

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use perennial_domain::{AsciiToken, NotificationState, PaymentAccount, PaymentProvider};
use secrecy::SecretString;

use super::{
    PaymentAccountArg, notification_path, print_result, settings::read_secret,
    webhook_setup::WebhookSetup,
};
use crate::{
    clock::Clock,
    commands::{
        bootstrap,
        explain::date,
        request_fields::{RequestFields, into_error},
        tenant::TenantArg,
        terminal::print_wrapped,
    },
    config::{Config, Mode},
    db::Databases,
    http::outbound::ApiHttpClient,
    payment_accounts::{self, AccountApi, ConnectedAccount, NewPaymentAccount, notifications_sql},
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial payment-account connect stripe --api-key-file key.txt
  perennial payment-account connect lemonsqueezy --api-key-file key.txt \\
      --url https://billing.example.com

Adds the account, creates a webhook at the payment provider with exactly the
events that are needed, and stores its secret. The mode, test or live, is that
of the API key. A run that was interrupted can be repeated.")]
pub struct PaymentAccountConnectArgs {
    /// The payment provider: stripe or lemonsqueezy
    provider: PaymentProvider,
    /// File with an API key of the account
    #[arg(long, value_name = "FILE")]
    api_key_file: PathBuf,
    /// Public URL of this service; default: PERENNIAL_PUBLIC_URL
    #[arg(long)]
    url: Option<String>,
    /// The store, if the API key is for several
    #[arg(long, value_name = "ID")]
    store: Option<String>,
    /// A note for operators
    #[arg(long)]
    description: Option<String>,
    #[command(flatten)]
    tenant: TenantArg,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct PaymentAccountCheckArgs {
    #[command(flatten)]
    account: PaymentAccountArg,
}

impl PaymentAccountConnectArgs {
    pub(super) async fn run(self, db: &Databases, mode: Mode) -> anyhow::Result<()> {
        let config = Config::from_env()?;
        let api_key = read_secret("--api-key-file", Some(&self.api_key_file))?;
        let api_key: SecretString = api_key.unwrap_or_default().into();
        let client = ApiHttpClient::new()?;
        let api = AccountApi::new(self.provider, &client, &config.payment_apis, &api_key);
        let found = payment_accounts::find_account(&api).await;
        let found = found.context("the API key cannot be used")?;
        let external_id = self.choose_external_id(&found)?;

        let home = db.home()?.connection().await?;
        let tenant = self.tenant.resolve(&home).await?;
        let keys = bootstrap::derived_keys(&home, mode).await?;
        drop(home);
        let database = db.cell(&tenant.cell)?;
        let mut connection = database.connection().await?;
        let existing = payment_accounts::list_all(&connection, tenant.id).await?;
        let is_same = |account: &&PaymentAccount| {
            let id = account.details.external_account_id.as_ref();
            (account.provider, account.mode) == (self.provider, found.mode)
                && id.map(AsciiToken::as_str) == external_id.as_deref()
        };
        let existing = existing.iter().find(is_same).cloned();
        let is_new = existing.is_none();
        let origin = bootstrap::change_origin(&tenant, Clock::System);
        let account = match existing {
            Some(account) => account,
            None => {
                let new = self.parse_account(&api_key, &found, external_id, mode)?;
                let tx = connection.begin();
                let context = origin.context(origin.clock.now(), &tx);
                let account = payment_accounts::insert_account(&context, &keys, new).await;
                let account = account.map_err(into_error)?;
                tx.commit().await?;
                account
            }
        };
        drop(connection);

        let public_url = self.url.as_deref().unwrap_or(&config.http.public_url);
        let url = format!(
            "{}{}",
            public_url.trim_end_matches('/'),
            notification_path(account.id)
        );
        let setup = WebhookSetup {
            api: &api,
            database,
            origin: &origin,
            keys: &keys,
            account: &account,
            url: &url,
        };
        if is_new {
            setup.complete_new().await?;
        } else if setup.is_complete().await? {
            let id = account.id;
            bail!("already connected as {id}; see `perennial payment-account check {id}`");
        } else {
            setup.complete().await?;
        }
        let account = PaymentAccount {
            has_secret: true,
            ..account
        };
        print_result(&account, self.json)?;
        if !self.json {
            println!("webhook: {url}");
        }
        Ok(())
    }

    /// Returns the account to add.
    fn parse_account(
        &self,
        api_key: &SecretString,
        found: &ConnectedAccount,
        external_id: Option<String>,
        mode: Mode,
    ) -> anyhow::Result<NewPaymentAccount> {
        let api_key = secrecy::ExposeSecret::expose_secret(api_key).to_owned();
        let body = RequestFields::default()
            .with("provider", Some(self.provider.as_str()))
            .with("mode", Some(found.mode.as_str()))
            .with("api_key", Some(api_key))
            .with("external_account_id", external_id)
            .with("description", self.description.clone())
            .into_body()?;
        payment_accounts::parse_create(body, mode).map_err(into_error)
    }

    /// Returns the account or store to follow.
    fn choose_external_id(&self, found: &ConnectedAccount) -> anyhow::Result<Option<String>> {
        let ids = &found.external_ids;
        match (&self.store, ids.as_slice()) {
            (Some(store), _) if ids.contains(store) => Ok(Some(store.clone())),
            (Some(store), _) => bail!(
                "--store {store} is none of the API key's: {}",
                ids.join(", ")
            ),
            (None, [only]) => Ok(Some(only.clone())),
            (None, []) if self.provider == PaymentProvider::Stripe => Ok(None),
            (None, []) => bail!("the API key is for no store"),
            (None, _) => bail!(
                "the API key is for several stores; choose one with --store: {}",
                ids.join(", ")
            ),
        }
    }
}

/// The results of `check`, printed as they come.
#[derive(Default)]
struct CheckReport {
    problems: usize,
}

impl CheckReport {
    fn add(&mut self, is_ok: bool, text: &str) {
        self.problems += usize::from(!is_ok);
        let mark = if is_ok { "ok     " } else { "problem" };
        print_wrapped(&format!("{mark}  {text}"));
    }
}

impl PaymentAccountCheckArgs {
    pub(super) async fn run(self, db: &Databases, mode: Mode) -> anyhow::Result<()> {
        let config = Config::from_env()?;
        let found = self.account.find(db).await?;
        let (account, tenant, database) = (&found.record, found.tenant.id, found.database(db)?);
        let keys = bootstrap::derived_keys(&db.home()?.connection().await?, mode).await?;
        let mut report = CheckReport::default();
        let api_key = payment_accounts::open_api_key(&keys, database, tenant, account).await?;
        match &api_key {
            Some(api_key) => {
                let client = ApiHttpClient::new()?;
                let apis = &config.payment_apis;
                let api = AccountApi::new(account.provider, &client, apis, api_key);
                check_provider(&mut report, &api, account).await;
            }
            None => report.add(
                !account.provider.requires_api_key(),
                "no API key: records follow notifications only, and the provider is told nothing",
            ),
        }
        let secret = if account.has_secret { "a" } else { "no" };
        let text = format!("{secret} secret of notifications is stored");
        report.add(account.has_secret, &text);
        let heard = account.last_heard_at;
        let heard = heard.map_or_else(|| "never".to_owned(), date);
        report.add(true, &format!("last notification: {heard}"));
        let connection = database.connection().await?;
        let counts = notifications_sql::count_unresolved(&connection, tenant, account.id).await?;
        for state in [NotificationState::Waiting, NotificationState::Failed] {
            let count = counts.iter().find(|(other, _)| *other == state);
            let count = count.map_or(0, |(_, number)| *number);
            report.add(count == 0, &format!("notifications {state}: {count}"));
        }
        let pending = account.pending_commands;
        report.add(
            pending == 0,
            &format!("commands not acknowledged: {pending}"),
        );
        if report.problems > 0 {
            bail!("problems: {}", report.problems);
        }
        Ok(())
    }
}

/// Checks the API key and the webhook at the payment provider.
async fn check_provider(report: &mut CheckReport, api: &AccountApi<'_>, account: &PaymentAccount) {
    match payment_accounts::find_account(api).await {
        Ok(found) => {
            let text = format!("the API key works, in {} mode", found.mode);
            report.add(found.mode == account.mode, &text);
            let id = account.details.external_account_id.as_ref();
            if let Some(id) = id
                .map(AsciiToken::as_str)
                .filter(|_| !found.external_ids.is_empty())
            {
                let is_own = found.external_ids.iter().any(|other| other == id);
                let not = if is_own { "" } else { " not" };
                report.add(is_own, &format!("the API key is{not} for {id}"));
            }
        }
        Err(error) => return report.add(false, &format!("the API key cannot be used: {error}")),
    }
    let path = notification_path(account.id);
    match payment_accounts::find_webhook(api, &path).await {
        Ok(Some(webhook)) => {
            let disabled = if webhook.is_enabled { "" } else { ", disabled" };
            let text = format!("webhook {}{disabled}", webhook.url);
            report.add(webhook.is_enabled, &text);
            if !webhook.missing_events.is_empty() {
                let missing = webhook.missing_events.join(", ");
                report.add(false, &format!("the webhook lacks: {missing}"));
            }
            if !webhook.harmful_events.is_empty() {
                let harmful = webhook.harmful_events.join(", ");
                report.add(false, &format!("the webhook must not have: {harmful}"));
            }
        }
        Ok(None) => report.add(
            false,
            &format!("no webhook has a URL that ends with {path}"),
        ),
        Err(error) => report.add(false, &format!("the webhooks cannot be read: {error}")),
    }
}
