//! SQL of the table `payment_commands`: storing commands. `payment_accounts/commands_sql.rs` has the sending.

use jiff::Timestamp;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::db::{Error, Sql, Transaction};

/// Stores a command for each selected object whose account has an API key. A command that was not acknowledged yet is
/// replaced.
macro_rules! enqueue {
    ($($objects:tt)*) => {
        concat!(
            "INSERT INTO payment_commands (tenant_id, account_id, external_id, command, ends_at, next_attempt_at, created_at)
     SELECT object.tenant_id, object.account_id, object.external_id, $3, $4, now(), now()
     FROM payment_objects AS object
     JOIN payment_accounts AS account ON account.tenant_id = object.tenant_id AND account.id = object.account_id
     WHERE object.tenant_id = $1 AND object.kind = 'subscription' AND account.deleted_at IS NULL
       AND account.api_key IS NOT NULL AND ",
            $($objects)*,
            "
     ON CONFLICT (tenant_id, account_id, external_id) DO UPDATE SET
         command = excluded.command, ends_at = excluded.ends_at, version = payment_commands.version + 1, attempts = 0, reason = NULL,
         next_attempt_at = now(), acknowledged_at = NULL, created_at = now()"
        )
    };
}

static ENQUEUE: Sql = Sql::new(enqueue!("object.record_id = $2"));

/// Stores a command about a subscription. Stores nothing if no payment account with an API key runs it.
pub(super) async fn enqueue(
    tx: &Transaction<'_>,
    tenant: Uuid,
    subscription: Uuid,
    (command, ends_at): (&str, Option<Timestamp>),
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 4] = [&tenant, &subscription, &command, &ends_at];
    tx.enqueue(&ENQUEUE, &params).await
}

// The provider's latest report decides, because a subscription that expired here may still be charged there. A deleted
// record was a mistake and may be of another user.
static ENQUEUE_FOR_USER: Sql = Sql::new(enqueue!(
    "coalesce(object.fact ->> 'status', '') <> 'expired' AND object.record_id IN (
         SELECT id FROM subscriptions WHERE tenant_id = $1 AND user_id = $2 AND deleted_at IS NULL)"
));

/// Stores a command about each subscription of a user that the provider has not reported as expired, if its account has
/// an API key.
pub(super) async fn enqueue_for_user(
    tx: &Transaction<'_>,
    tenant: Uuid,
    user: Uuid,
    command: &str,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 4] = [&tenant, &user, &command, &None::<Timestamp>];
    tx.enqueue(&ENQUEUE_FOR_USER, &params).await
}

static IS_RUN_BY_ACCOUNT: Sql = Sql::new(
    "SELECT 1 FROM payment_objects AS object
     JOIN payment_accounts AS account ON account.tenant_id = object.tenant_id AND account.id = object.account_id
     WHERE object.tenant_id = $1 AND object.record_id = $2 AND object.kind = 'subscription'
       AND account.deleted_at IS NULL AND account.api_key IS NOT NULL LIMIT 1",
);

/// Returns whether a payment account with an API key runs a subscription, so that its provider can be told of changes.
pub async fn is_run_by_account(
    tx: &Transaction<'_>,
    tenant: Uuid,
    subscription: Uuid,
) -> Result<bool, Error> {
    let rows = tx
        .query(&IS_RUN_BY_ACCOUNT, &[&tenant, &subscription])
        .await?;
    Ok(!rows.is_empty())
}

static ABANDON: Sql = Sql::new(
    "UPDATE payment_commands
     SET acknowledged_at = now(), next_attempt_at = NULL, reason = 'the payment account was deleted'
     WHERE tenant_id = $1 AND account_id = $2 AND acknowledged_at IS NULL",
);

/// Gives up the commands of an account that is deleted: without its API key they cannot be sent.
pub async fn abandon(tx: &Transaction<'_>, tenant: Uuid, account: Uuid) -> Result<(), Error> {
    tx.enqueue(&ABANDON, &[&tenant, &account]).await
}
