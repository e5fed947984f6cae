//! SQL of the table `payment_notifications`, as far as processing an object changes the notifications about it.

use jiff::Timestamp;
use perennial_domain::{Id, NotificationState, PaymentNotificationId};
use tokio_postgres::types::ToSql;

use super::{provider_notification::PaymentObjectRef, sync_sql::ObjectKey};
use crate::{
    crypto::SealedSecret,
    db::{CellDatabase, Error, Sql, Transaction},
};

/// What processing an object says about the notifications of it.
#[derive(Debug, Clone)]
pub struct NotificationOutcome {
    pub state: NotificationState,
    pub reason: Option<String>,
    pub attempts: u32,
    pub next_attempt_at: Option<Timestamp>,
}

// A failed notification is done when its object was applied later.
static SET_OUTCOME: Sql = Sql::new(
    "UPDATE payment_notifications SET state = $5, reason = $6, attempts = $7, next_attempt_at = $8
     WHERE tenant_id = $1 AND account_id = $2 AND object_id = $3 AND object_kind = $4 AND created_at <= $9
       AND state IN ('new', 'waiting', 'failed')",
);

/// Sets the state of the notifications about an object that were received up to `received_to`.
pub(super) async fn set_outcome(
    tx: &Transaction<'_>,
    key: &ObjectKey,
    outcome: &NotificationOutcome,
    received_to: Timestamp,
) -> Result<(), Error> {
    let attempts = i32::try_from(outcome.attempts).unwrap_or(i32::MAX);
    let params: [&(dyn ToSql + Sync); 9] = [
        &key.tenant.uuid(),
        &key.account.uuid(),
        &key.object.id,
        &key.object.kind.as_str(),
        &outcome.state.as_str(),
        &outcome.reason,
        &attempts,
        &outcome.next_attempt_at,
        &received_to,
    ];
    tx.enqueue(&SET_OUTCOME, &params).await
}

static MOVE: Sql = Sql::new(
    "UPDATE payment_notifications SET object_kind = $5, object_id = $6, state = 'new', reason = NULL
     WHERE tenant_id = $1 AND account_id = $2 AND object_id = $3 AND object_kind = $4
       AND state IN ('new', 'waiting', 'failed')",
);

/// Moves the notifications about an object to the object that it leads to. Their outcome is that of the latter.
pub(super) async fn move_to(
    tx: &Transaction<'_>,
    key: &ObjectKey,
    target: &PaymentObjectRef,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 6] = [
        &key.tenant.uuid(),
        &key.account.uuid(),
        &key.object.id,
        &key.object.kind.as_str(),
        &target.kind.as_str(),
        &target.id,
    ];
    tx.enqueue(&MOVE, &params).await
}

/// How many of the latest notifications about an object are read.
const MAX_BODIES: i64 = 20;

static BODIES: Sql = Sql::new(
    "SELECT id, body FROM payment_notifications
     WHERE tenant_id = $1 AND account_id = $2 AND object_id = $3 AND object_kind = $4 AND state <> 'refused'
     ORDER BY created_at DESC LIMIT $5",
);

/// Returns the sealed bodies of the latest notifications about an object, newest first.
pub(super) async fn list_bodies(
    database: &CellDatabase,
    key: &ObjectKey,
) -> Result<Vec<(PaymentNotificationId, SealedSecret)>, Error> {
    let params: [&(dyn ToSql + Sync); 5] = [
        &key.tenant.uuid(),
        &key.account.uuid(),
        &key.object.id,
        &key.object.kind.as_str(),
        &MAX_BODIES,
    ];
    let rows = database.read_all(&BODIES, &params).await?;
    { rows.iter() }
        .map(|row| {
            let id = PaymentNotificationId::new(row.try_get("id")?);
            Ok((id, SealedSecret(row.try_get("body")?)))
        })
        .collect()
}
