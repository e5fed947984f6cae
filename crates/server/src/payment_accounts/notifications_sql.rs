//! SQL of the tables `payment_notifications` and `payment_event_ids`.
//!
//! The list without filters and that of one state have a statement each, with a cached generic plan. Any other combination
//! uses a statement that PostgreSQL plans with the actual values on every execution.

use jiff::Timestamp;
use perennial_domain::{
    Id, NotificationState, PaymentAccountId, PaymentNotificationId, PaymentObjectKind, TenantId,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::provider_notification::{ClassifiedNotification, PaymentObjectRef};
use crate::{
    crypto::SealedSecret,
    db::{
        AgeKey, AgeOrder, ByAgeSql, CellDatabase, Error, PooledConnection, RowReader, Sql,
        TimeRange, Transaction, by_age, by_value,
    },
};

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

fn from_row(row: &Row) -> Result<PaymentNotification, Error> {
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

static FIND_WITH_BODY: Sql = Sql::new(concat!(
    "SELECT body, ",
    columns!(),
    " FROM payment_notifications WHERE tenant_id = $1 AND id = $2"
));

/// Returns a notification with its body.
pub(super) async fn find_with_body(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: PaymentNotificationId,
) -> Result<Option<(PaymentNotification, SealedSecret)>, Error> {
    let rows = tx
        .query(&FIND_WITH_BODY, &[&tenant.uuid(), &id.uuid()])
        .await?;
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

/// Stores what a notification is read as now.
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

/// Conditions on the notifications of a list; `None` matches all.
#[derive(Debug, Default)]
pub struct NotificationFilter {
    pub accounts: Option<Vec<PaymentAccountId>>,
    pub states: Option<Vec<NotificationState>>,
    pub event_types: Option<Vec<String>>,
    /// The payment provider's ids of objects.
    pub object_ids: Option<Vec<String>>,
    pub created_at: TimeRange,
}

static ALL: ByAgeSql = by_age!(select, "created_at >= $5 AND created_at < $6 AND ",);
static BY_STATE: ByAgeSql = by_value!(select, "state", "$7",);
// The planner removes the conditions of null parameters from a custom plan.
static FILTERED: ByAgeSql = by_age!(
    select,
    "created_at >= $5 AND created_at < $6 AND ($7::uuid[] IS NULL OR account_id = ANY ($7))
       AND ($8::text[] IS NULL OR state = ANY ($8)) AND ($9::text[] IS NULL OR event_type = ANY ($9))
       AND ($10::text[] IS NULL OR object_id = ANY ($10)) AND ",
);

/// Returns up to `limit` notifications after a key.
pub async fn list(
    connection: &mut PooledConnection,
    tenant: TenantId,
    filter: &NotificationFilter,
    (order, after): (AgeOrder, Option<AgeKey>),
    limit: i64,
) -> Result<Vec<PaymentNotification>, Error> {
    let AgeKey { created_at, id } = after.unwrap_or_else(|| order.start(filter.created_at));
    let tenant = tenant.uuid();
    let (from, before) = filter.created_at.bounds();
    let mut params: Vec<&(dyn ToSql + Sync)> =
        vec![&tenant, &created_at, &id, &limit, &from, &before];
    let has_other_conditions =
        filter.accounts.is_some() || filter.event_types.is_some() || filter.object_ids.is_some();
    let rows = match (has_other_conditions, filter.states.as_deref()) {
        (false, None) => connection.query(ALL.in_order(order), &params).await?,
        (false, Some([state])) => {
            let state = state.as_str();
            params.push(&state);
            connection.query(BY_STATE.in_order(order), &params).await?
        }
        (_, states) => {
            let accounts: Option<Vec<Uuid>> = { filter.accounts.as_ref() }
                .map(|accounts| accounts.iter().map(|id| id.uuid()).collect());
            let states: Option<Vec<&str>> =
                states.map(|states| states.iter().map(|state| state.as_str()).collect());
            let others: [&(dyn ToSql + Sync); 4] =
                [&accounts, &states, &filter.event_types, &filter.object_ids];
            params.extend(others);
            let sql = FILTERED.in_order(order);
            connection.query_custom_plan(sql, &params).await?
        }
    };
    rows.iter().map(from_row).collect()
}

// The states are not a parameter, so that the planner knows that they are rare.
static COUNT_UNRESOLVED: Sql = Sql::new(
    "SELECT state, count(*) AS number FROM payment_notifications
     WHERE tenant_id = $1 AND state IN ('waiting', 'failed', 'refused') AND account_id = $2 GROUP BY state",
);

/// Returns how many notifications of an account are waiting, failed or refused. States without any are left out.
pub async fn count_unresolved(
    connection: &PooledConnection,
    tenant: TenantId,
    account: PaymentAccountId,
) -> Result<Vec<(NotificationState, i64)>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &account.uuid()];
    let rows = connection.query(&COUNT_UNRESOLVED, &params).await?;
    { rows.iter() }
        .map(|row| {
            let row = RowReader::new(row);
            Ok((row.parse("state")?, row.get("number")?))
        })
        .collect()
}
