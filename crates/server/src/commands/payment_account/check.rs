//! `perennial payment-account check`

use anyhow::bail;
use clap::Args;
use perennial_domain::{AsciiToken, NotificationState, PaymentAccount};

use super::{PaymentAccountArg, notification_path};
use crate::{
    commands::{bootstrap, explain::date, terminal::print_wrapped},
    config::{Config, Mode},
    db::Databases,
    http::outbound::ApiHttpClient,
    payment_accounts::{self, AccountApi, notifications_sql},
};

#[derive(Debug, Args)]
pub struct PaymentAccountCheckArgs {
    #[command(flatten)]
    account: PaymentAccountArg,
}

/// The results of `check`, printed as they come.
#[derive(Default)]
struct CheckReport {
    problems: usize,
}

impl CheckReport {
    fn add(&mut self, is_ok: bool, text: &str) {
        self.problems += usize::from(!is_ok);
        let state = if is_ok { "ok     " } else { "problem" };
        print_wrapped(&format!("{state}  {text}"));
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
                "no API key: records follow notifications only, and the provider receives no cancellations; add one with \
                 `perennial payment-account update`",
            ),
        }
        let text = if account.has_secret {
            "a secret of notifications is stored".to_owned()
        } else {
            let id = account.id;
            format!(
                "no secret of notifications; set it with `perennial payment-account rotate {id}`"
            )
        };
        report.add(account.has_secret, &text);
        let heard = account.last_heard_at;
        let heard = heard.map_or_else(|| "never".to_owned(), date);
        report.add(true, &format!("last notification: {heard}"));
        let connection = database.connection().await?;
        let counts = notifications_sql::count_unresolved(&connection, tenant, account.id).await?;
        for state in [NotificationState::Waiting, NotificationState::Failed] {
            let count = counts.iter().find(|(other, _)| *other == state);
            let count = count.map_or(0, |(_, number)| *number);
            let text = if count == 0 {
                format!("notifications {state}: 0")
            } else {
                format!(
                    "notifications {state}: {count}; see `perennial payment-account notifications --state {state}`"
                )
            };
            report.add(count == 0, &text);
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
        Err(error) => {
            let id = account.id;
            let text = format!(
                "the API key cannot be used: {error}; replace it with `perennial payment-account update {id} --api-key-file FILE`"
            );
            return report.add(false, &text);
        }
    }
    let (path, provider) = (notification_path(account.id), account.provider);
    match payment_accounts::find_webhook(api, &path).await {
        Ok(Some(webhook)) => {
            let disabled = if webhook.is_enabled { "" } else { ", disabled" };
            let text = format!("webhook {}{disabled}", webhook.url);
            report.add(webhook.is_enabled, &text);
            if !webhook.missing_events.is_empty() {
                let missing = webhook.missing_events.join(", ");
                let text = format!("the webhook lacks events; add them at {provider}: {missing}");
                report.add(false, &text);
            }
            if !webhook.harmful_events.is_empty() {
                let harmful = webhook.harmful_events.join(", ");
                let text = format!("the webhook has events that delay renewals; remove them at {provider}: {harmful}");
                report.add(false, &text);
            }
        }
        Ok(None) => report.add(
            false,
            &format!(
                "no webhook has a URL that ends with {path}; create one at {provider}, and set its secret with \
                 `perennial payment-account rotate`"
            ),
        ),
        Err(error) => report.add(false, &format!("the webhooks cannot be read: {error}")),
    }
}
