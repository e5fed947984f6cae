//! The queue task that sends commands to payment providers, such as cancellations.
//!
//! A command stays in the table until the provider acknowledges it, or has no such subscription. A provider that is down
//! gets it within a minute of its return. An API that fails pauses the account ([`AccountPauses`]), so that a revoked key
//! or an outage does not cost a request per command. A command that the provider rejects is sent again less often, and its
//! reason is shown, because a person must look at it.

use std::{sync::Arc, time::Duration};

use perennial_domain::{PaymentObjectKind, SubscriptionStatus};
use tokio_util::sync::CancellationToken;

use super::{
    account_api::{AccountApi, is_purchase, open_api_key},
    account_pauses::{AccountPauses, MAX_RETRY_INTERVAL, retry_interval},
    commands_sql::{self, ClaimedCommand},
    fetched_object::{FetchError, FetchedObject},
    provider_notification::PaymentObjectRef,
    table,
};
use crate::{
    app::App,
    db::{CellDatabase, Error},
    http::outbound::ApiHttpError,
    payment_commands::PaymentProviderCommand,
    randomness::jitter,
};

/// How often due commands are searched.
const CLAIM_INTERVAL: Duration = Duration::from_millis(500);
/// The longest pause after the provider has rejected a command.
const MAX_REJECTED_INTERVAL: Duration = Duration::from_mins(10);

/// The sending of commands of this process for one cell.
pub struct PaymentCommandWorker {
    app: Arc<App>,
    cell: String,
    pauses: AccountPauses,
}

/// The result of an attempt.
enum CommandOutcome {
    /// The provider has followed the command, or there is nothing to do, and why.
    Acknowledged(Option<&'static str>),
    /// The command is sent again after a pause.
    Postponed { pause: Duration, reason: String },
}

impl PaymentCommandWorker {
    pub fn new(app: Arc<App>, cell: &str) -> Self {
        Self {
            app,
            cell: cell.to_owned(),
            pauses: AccountPauses::default(),
        }
    }

    fn database(&self) -> Result<&CellDatabase, Error> {
        self.app.db.cell(&self.cell)
    }

    /// Waits until commands may be due.
    pub async fn wait(&self) {
        tokio::time::sleep(jitter(CLAIM_INTERVAL)).await;
    }

    /// Acquires the leases of up to `limit` commands that are due, except those of paused accounts.
    pub async fn claim(&self, ttl: Duration, limit: i64) -> Result<Vec<ClaimedCommand>, Error> {
        let paused = self.pauses.paused_accounts();
        let connection = self.database()?.connection().await?;
        commands_sql::claim(&connection, ttl, &paused, limit).await
    }

    /// Renews leases. Returns for each command whether its lease is held.
    pub async fn renew(
        &self,
        ttl: Duration,
        held: &[Arc<ClaimedCommand>],
    ) -> Result<Vec<bool>, Error> {
        let mut is_held = Vec::with_capacity(held.len());
        if held.is_empty() {
            return Ok(is_held);
        }
        let connection = self.database()?.connection().await?;
        for item in held {
            is_held.push(commands_sql::renew(&connection, item, ttl).await?);
        }
        Ok(is_held)
    }

    /// Releases the lease of a command without a result.
    pub async fn release(&self, item: &ClaimedCommand) -> Result<(), Error> {
        let connection = self.database()?.connection().await?;
        commands_sql::release(&connection, item).await
    }

    /// Sends a command and stores the outcome.
    async fn process(&self, item: &ClaimedCommand) -> Result<(), Error> {
        match self.send(item).await? {
            CommandOutcome::Acknowledged(reason) => {
                let connection = self.database()?.connection().await?;
                commands_sql::acknowledge(&connection, item, reason).await
            }
            CommandOutcome::Postponed { pause, reason } => {
                tracing::warn!(account = %item.account, command = item.command, reason, "a payment command was not acknowledged");
                self.postpone(item, pause, &reason).await
            }
        }
    }

    async fn postpone(
        &self,
        item: &ClaimedCommand,
        pause: Duration,
        reason: &str,
    ) -> Result<(), Error> {
        let connection = self.database()?.connection().await?;
        commands_sql::postpone(&connection, item, pause, reason).await
    }

    async fn send(&self, item: &ClaimedCommand) -> Result<CommandOutcome, Error> {
        let database = self.database()?;
        let Some(command) = PaymentProviderCommand::from_name(&item.command) else {
            return Ok(rejected(item, "the command is unknown to this version"));
        };
        let Some(account) = table::find(database, item.tenant, item.account).await? else {
            let reason = "the payment account was deleted";
            return Ok(CommandOutcome::Acknowledged(Some(reason)));
        };
        let app = &self.app;
        let api_key = open_api_key(&app.keys, database, item.tenant, &account).await?;
        let Some(api_key) = api_key else {
            return Ok(rejected(item, "the payment account has no API key"));
        };
        if is_purchase(account.provider, &item.external_id) {
            let reason = "a one-time purchase is not charged again";
            return Ok(CommandOutcome::Acknowledged(Some(reason)));
        }
        let api = AccountApi::for_account(app, &account, &api_key);
        // A cancellation whose time has passed, while the provider was down, takes effect at once.
        let is_over = item.ends_at.is_some_and(|end| end <= app.clock.now());
        let command = match command {
            PaymentProviderCommand::Cancel if is_over => PaymentProviderCommand::End,
            command => command,
        };
        let sent = api.send_command(command, &item.external_id, item.ends_at);
        let error = match sent.await {
            Ok(()) => {
                self.pauses.resume(account.id);
                return Ok(CommandOutcome::Acknowledged(None));
            }
            Err(error) => error,
        };
        if error.is_temporary() {
            return Ok(CommandOutcome::Postponed {
                pause: self.pauses.pause(account.id, &error, app.clock.now()),
                reason: error.to_string(),
            });
        }
        self.pauses.resume(account.id);
        if let FetchError::Http(ApiHttpError::NotFound(_)) = error {
            let reason = "the payment provider has no such subscription";
            return Ok(CommandOutcome::Acknowledged(Some(reason)));
        }
        Ok(match find_no_effect_reason(&api, command, item).await {
            Some(reason) => CommandOutcome::Acknowledged(Some(reason)),
            None => rejected(item, &error.to_string()),
        })
    }
}

/// Returns why a rejected command needs no repetition: the subscription has ended, or is already as the command demands.
async fn find_no_effect_reason(
    api: &AccountApi<'_>,
    command: PaymentProviderCommand,
    item: &ClaimedCommand,
) -> Option<&'static str> {
    let object = PaymentObjectRef {
        kind: PaymentObjectKind::Subscription,
        id: item.external_id.clone(),
    };
    let Ok(FetchedObject::Subscription { reported, .. }) = api.fetch(&object).await else {
        return None;
    };
    let is_cancelled = reported.fact.status == SubscriptionStatus::Cancelled;
    let is_fulfilled = match command {
        PaymentProviderCommand::Cancel | PaymentProviderCommand::End => is_cancelled,
        PaymentProviderCommand::Resume => !is_cancelled,
    };
    match reported.fact.status {
        SubscriptionStatus::Expired => Some("the subscription has ended at the payment provider"),
        _ if is_fulfilled => Some("the subscription already has this state"),
        _ => None,
    }
}

fn rejected(item: &ClaimedCommand, reason: &str) -> CommandOutcome {
    CommandOutcome::Postponed {
        pause: retry_interval(item.attempts, MAX_REJECTED_INTERVAL),
        reason: reason.to_owned(),
    }
}

/// Sends a command, unless `stop` is cancelled first.
pub async fn send_payment_command(
    worker: Arc<PaymentCommandWorker>,
    item: Arc<ClaimedCommand>,
    stop: CancellationToken,
) {
    let result = tokio::select! {
        () = stop.cancelled() => return,
        result = worker.process(&item) => result,
    };
    let Err(error) = result else { return };
    tracing::error!(account = %item.account, %error, "cannot process a payment command");
    // A command that cannot be postponed either is sent again when its lease expires. Commands can be repeated.
    let pause = retry_interval(item.attempts, MAX_RETRY_INTERVAL);
    let reason = "internal error; see the log";
    if let Err(error) = worker.postpone(&item, pause, reason).await {
        tracing::debug!(%error, "cannot postpone a payment command");
    }
}
