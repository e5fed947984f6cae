//! SQL of the tables `payment_notifications` and `payment_event_ids`.

use jiff::Timestamp;
use perennial_domain::{Id, PaymentAccountId, PaymentNotificationId, PaymentObjectKind, TenantId};
use tokio_postgres::{Row, types::ToSql};

use super::notification::{ClassifiedNotification, PaymentObjectRef};
use crate::{
    crypto::SealedSecret,
    db::{CellDatabase, Error, RowReader, Sql, Transaction},
};

/// How many days notifications are kept. A month is deleted when its last notification is older.
pub const KEPT_DAYS: i32 = 90;

/// A received notification, without its body.
#[derive(Debug, Clone)]
pub struct PaymentNotification {
    pub id: PaymentNotificationId,
    pub account: PaymentAccountId,
    pub created_at: Timestamp,
    pub attempts: i32,
    pub next_attempt_at: Option<Timestamp>,
    pub content: ClassifiedNotification,
}

macro_rules! columns {
    () => {
        "id, created_at, account_id, event_id, event_type, object_kind, object_id, state, reason, attempts, next_attempt_at"
    };
}

pub(super) fn from_row(row: &Row) -> Result<PaymentNotification, Error> {
    let row = RowReader::new(row);
    let kind: Option<PaymentObjectKind> = row.parse_optional("object_kind")?;
    let object_id: Option<String> = row.get("object_id")?;
    Ok(PaymentNotification {
        id: PaymentNotificationId::new(row.get("id")?),
        account: PaymentAccountId::new(row.get("account_id")?),
        created_at: row.get("created_at")?,
        attempts: row.get("attempts")?,
        next_attempt_at: row.get("next_attempt_at")?,
        content: ClassifiedNotification {
            event_id: row.get("event_id")?,
            event_type: row.get("event_type")?,
            object: { kind.zip(object_id) }.map(|(kind, id)| PaymentObjectRef { kind, id }),
            state: row.parse("state")?,
            reason: row.get("reason")?,
        },
    })
}

/// Selects a tenant's notifications that meet the conditions.
macro_rules! select {
    ($($conditions:tt)*) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM payment_notifications
     WHERE tenant_id = $1 AND ",
            $($conditions)*
        )
    };
}

pub(super) use {columns, select};

static FIND: Sql = Sql::new(select!("id = $2"));

/// Returns the notification with this id.
pub async fn find(
    database: &CellDatabase,
    tenant: TenantId,
    id: PaymentNotificationId,
) -> Result<Option<PaymentNotification>, Error> {
    let row = database.read(&FIND, &[&tenant.uuid(), &id.uuid()]).await?;
    row.as_ref().map(from_row).transpose()
}

static LOCK: Sql = Sql::new(concat!(
    "SELECT body, ",
    columns!(),
    " FROM payment_notifications WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE"
));

/// Locks a notification until the end of the transaction, and returns it with its body.
pub(super) async fn lock(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: PaymentNotificationId,
) -> Result<Option<(PaymentNotification, SealedSecret)>, Error> {
    let rows = tx.query(&LOCK, &[&tenant.uuid(), &id.uuid()]).await?;
    let read = |row: &Row| Ok((from_row(row)?, SealedSecret(row.try_get("body")?)));
    rows.first().map(read).transpose()
}

static INSERT_EVENT_ID: Sql = Sql::new(
    "INSERT INTO payment_event_ids (tenant_id, account_id, event_id, notification_id, created_at)
     VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
);

/// Stores the event id of a notification. Returns false if another notification has it. Waits for a concurrent transaction
/// that stores the same id.
pub(super) async fn insert_event_id(
    tx: &Transaction<'_>,
    tenant: TenantId,
    notification: &PaymentNotification,
) -> Result<bool, Error> {
    let params: [&(dyn ToSql + Sync); 5] = [
        &tenant.uuid(),
        &notification.account.uuid(),
        &notification.content.event_id,
        &notification.id.uuid(),
        &notification.created_at,
    ];
    Ok(tx.execute(&INSERT_EVENT_ID, &params).await? > 0)
}

static FIND_DUPLICATE: Sql = Sql::new(
    "SELECT notification_id FROM payment_event_ids WHERE tenant_id = $1 AND account_id = $2 AND event_id = $3",
);

/// Returns the notification that has this event id.
pub(super) async fn find_by_event_id(
    tx: &Transaction<'_>,
    (tenant, account): (TenantId, PaymentAccountId),
    event_id: &str,
) -> Result<Option<PaymentNotificationId>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &account.uuid(), &event_id];
    let rows = tx.query(&FIND_DUPLICATE, &params).await?;
    let id = |row: &Row| Ok(PaymentNotificationId::new(row.try_get(0)?));
    rows.first().map(id).transpose()
}

static INSERT: Sql = Sql::new(concat!(
    "INSERT INTO payment_notifications (tenant_id, ",
    columns!(),
    ", body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
));

/// Inserts a notification.
pub(super) async fn insert(
    tx: &Transaction<'_>,
    tenant: TenantId,
    notification: &PaymentNotification,
    body: &SealedSecret,
) -> Result<(), Error> {
    let content = &notification.content;
    let object = content.object.as_ref();
    let params: [&(dyn ToSql + Sync); 13] = [
        &tenant.uuid(),
        &notification.id.uuid(),
        &notification.created_at,
        &notification.account.uuid(),
        &content.event_id,
        &content.event_type,
        &object.map(|object| object.kind.as_str()),
        &object.map(|object| object.id.as_str()),
        &content.state.as_str(),
        &content.reason,
        &notification.attempts,
        &notification.next_attempt_at,
        &body.0,
    ];
    tx.enqueue(&INSERT, &params).await
}

static RECLASSIFY: Sql = Sql::new(
    "UPDATE payment_notifications SET event_type = $4, object_kind = $5, object_id = $6, state = $7, reason = $8,
         attempts = 0, next_attempt_at = NULL
     WHERE tenant_id = $1 AND created_at = $2 AND id = $3",
);

/// Stores what a locked notification is read as now.
pub(super) async fn reclassify(
    tx: &Transaction<'_>,
    tenant: TenantId,
    notification: &PaymentNotification,
) -> Result<(), Error> {
    let content = &notification.content;
    let object = content.object.as_ref();
    let params: [&(dyn ToSql + Sync); 8] = [
        &tenant.uuid(),
        &notification.created_at,
        &notification.id.uuid(),
        &content.event_type,
        &object.map(|object| object.kind.as_str()),
        &object.map(|object| object.id.as_str()),
        &content.state.as_str(),
        &content.reason,
    ];
    tx.enqueue(&RECLASSIFY, &params).await
}

static DELETE_OLD_EVENT_IDS: Sql = Sql::new(
    "DELETE FROM payment_event_ids WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM payment_event_ids
        WHERE created_at < now() - $1 * interval '1 day' ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED))",
);

/// Deletes up to `limit` event ids of all tenants that are older than notifications are kept, and returns their number.
pub async fn delete_old_event_ids(tx: &Transaction<'_>, limit: i64) -> Result<usize, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&f64::from(KEPT_DAYS), &limit];
    let deleted = tx.execute(&DELETE_OLD_EVENT_IDS, &params).await?;
    usize::try_from(deleted).map_err(|error| Error::Internal(error.to_string()))
}

static CREATE_PARTITIONS: Sql = Sql::new("SELECT payment_notifications_make_months()");
static DROP_PARTITIONS: Sql = Sql::new("SELECT payment_notifications_drop_older_than($1)");

/// Creates the partitions of this month and the next two, and drops those of months that are no longer kept.
pub async fn maintain_partitions(database: &CellDatabase) -> Result<(), Error> {
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    tx.query(&CREATE_PARTITIONS, &[]).await?;
    tx.commit().await?;
    let tx = connection.begin();
    tx.query(&DROP_PARTITIONS, &[&KEPT_DAYS]).await?;
    tx.commit().await?;
    Ok(())
}
