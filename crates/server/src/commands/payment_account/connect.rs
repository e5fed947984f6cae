//! `perennial payment-account connect`

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use perennial_domain::{AsciiToken, PaymentAccount, PaymentMode, PaymentProvider};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::{notification_path, print_result, settings::read_secret, webhook_setup::WebhookSetup};
use crate::{
    clock::Clock,
    commands::{
        bootstrap,
        request_fields::{RequestFields, into_error},
        tenant::TenantArg,
        terminal::print_wrapped,
    },
    config::{Config, Mode},
    db::Databases,
    http::outbound::ApiHttpClient,
    payment_accounts::{self, AccountApi, ConnectedAccount, NewPaymentAccount},
};

#[derive(Debug, Args)]
#[command(
    override_usage = "perennial payment-account connect <PROVIDER> [OPTIONS]\n           --api-key-file <FILE>"
)]
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

impl PaymentAccountConnectArgs {
    pub(super) async fn run(self, db: &Databases, mode: Mode) -> anyhow::Result<()> {
        let config = Config::from_env()?;
        let public_url = self.public_url(&config)?;
        let api_key = self.read_api_key()?;
        let client = ApiHttpClient::new()?;
        let api = AccountApi::new(self.provider, &client, &config.payment_apis, &api_key);
        let found = payment_accounts::find_account(&api).await;
        let found = found.context("the API key cannot be used")?;
        if (mode, found.mode) == (Mode::Sandbox, PaymentMode::Live) {
            bail!("the API key is for live mode; a sandbox takes only keys for test mode");
        }
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
        let account = if let Some(account) = existing {
            account
        } else {
            let new = self.parse_account(&api_key, &found, external_id, mode)?;
            let tx = connection.begin();
            let context = origin.context(origin.clock.now(), &tx);
            let account = payment_accounts::insert_account(&context, &keys, new).await;
            let account = account.map_err(into_error)?;
            tx.commit().await?;
            account
        };
        drop(connection);

        let url = format!("{public_url}{}", notification_path(account.id));
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
            print_next_steps(self.provider);
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
        let api_key = api_key.expose_secret().to_owned();
        let body = RequestFields::default()
            .with("provider", Some(self.provider.as_str()))
            .with("mode", Some(found.mode.as_str()))
            .with("api_key", Some(api_key))
            .with("external_account_id", external_id)
            .with("description", self.description.clone())
            .into_body()?;
        payment_accounts::parse_create(body, mode).map_err(into_error)
    }

    /// Returns the public URL of the service, without a slash at its end.
    fn public_url(&self, config: &Config) -> anyhow::Result<String> {
        let Some(text) = &self.url else {
            return Ok(config.http.public_url.clone());
        };
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        if !Url::parse(text).is_ok_and(|url| is_web(&url)) {
            bail!(
                "--url: {text:?} is not the URL of a web server; expected the public URL of this service, such as \
                 https://billing.example.com"
            );
        }
        Ok(text.trim_end_matches('/').to_owned())
    }

    fn read_api_key(&self) -> anyhow::Result<SecretString> {
        let key = read_secret("--api-key-file", Some(&self.api_key_file))?.unwrap_or_default();
        let prefixes = self.provider.api_key_prefixes();
        let has_prefix = prefixes.iter().any(|prefix| key.starts_with(prefix));
        if !has_prefix && !prefixes.is_empty() {
            bail!(
                "--api-key-file {}: is not an API key of {}; expected one that starts with {}",
                self.api_key_file.display(),
                self.provider,
                prefixes.join(", "),
            );
        }
        Ok(key.into())
    }

    /// Returns the account or store to follow.
    fn choose_external_id(&self, found: &ConnectedAccount) -> anyhow::Result<Option<String>> {
        let ids = &found.external_ids;
        match (&self.store, ids.as_slice()) {
            (Some(store), _) if ids.contains(store) => Ok(Some(store.clone())),
            (Some(store), _) => bail!(
                "--store {store}: the API key is not for it, but for {}",
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

fn print_next_steps(provider: PaymentProvider) {
    let guide = guide(provider);
    println!("next:");
    print_wrapped(&format!(
        "  add the prices of {provider} to the variants of your plans, and sell them with POST /checkouts; see {guide}"
    ));
    print_wrapped(&format!(
        "  take over existing customers: perennial import {provider} --dry-run"
    ));
}

pub(super) const fn guide(provider: PaymentProvider) -> &'static str {
    match provider {
        PaymentProvider::Stripe => "docs/how-to/sell-with-stripe",
        PaymentProvider::LemonSqueezy => "docs/how-to/sell-with-lemon-squeezy",
    }
}
