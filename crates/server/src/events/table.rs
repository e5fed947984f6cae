//! The SQL of the table `events`. `subjects_sql.rs` has the reads of some records.

use jiff::Timestamp;
use perennial_domain::{ClientId, EventKind, Id, PaymentAccountId, StaffId, TenantId, UserId};
use serde::Serialize;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::{Actor, BulkEvent, Event, RecordedActor};
use crate::db::{Error, PooledConnection, RowReader, Sql, Transaction};

fn to_json<T: Serialize>(data: &T) -> Result<String, Error> {
    serde_json::to_string(data).map_err(|error| Error::Internal(error.to_string()))
}

/// Reads the columns of the actor.
pub(super) fn read_actor(row: &RowReader<'_>) -> Result<RecordedActor, Error> {
    let id = |column| row.get::<Option<Uuid>>(column);
    Ok(RecordedActor {
        client: id("client_id")?.map(ClientId::new),
        user: id("user_id")?.map(UserId::new),
        staff: id("staff_id")?.map(StaffId::new),
        operator: row.get("operator")?,
        payment_account: id("payment_account_id")?.map(PaymentAccountId::new),
    })
}

static INSERT: Sql = Sql::new(
    "INSERT INTO events (tenant_id, at, id, kind, subject_id, client_id, user_id, staff_id, request_id, operator, payment_account_id,
        data, revenue_state)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::jsonb, $13)",
);

/// Records an event in the transaction of its change.
pub async fn record<T: Serialize>(tx: &Transaction<'_>, event: &Event<'_, T>) -> Result<(), Error> {
    record_with_state(tx, event, None).await
}

/// Records an event of a subscription and its revenue state after the event.
pub async fn record_with_state<T: Serialize>(
    tx: &Transaction<'_>,
    event: &Event<'_, T>,
    revenue_state: Option<String>,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 13] = [
        &event.tenant.uuid(),
        &event.at,
        &event.id.uuid(),
        &event.kind.as_str(),
        &event.subject,
        &event.actor.client.map(Id::uuid),
        &event.actor.user.map(Id::uuid),
        &event.actor.staff.map(Id::uuid),
        &event.actor.request_id,
        &event.actor.operator,
        &event.actor.payment_account.map(Id::uuid),
        &to_json(event.data)?,
        &revenue_state,
    ];
    tx.enqueue(&INSERT, &params).await
}

static INSERT_ALL: Sql = Sql::new(
    "INSERT INTO events (tenant_id, at, id, kind, subject_id, client_id, user_id, staff_id, request_id, operator, data)
     SELECT $1::uuid, $2::timestamptz, event.id, $3::text, event.subject, $4::uuid, $5::uuid, $6::uuid, $7::text, $8::text,
        event.data::jsonb
     FROM unnest($9::uuid[], $10::uuid[], $11::text[]) AS event (id, subject, data)",
);

/// Records events of the same kind, time and actor, in one statement.
pub async fn record_all(
    tx: &Transaction<'_>,
    tenant: TenantId,
    kind: EventKind,
    actor: &Actor,
    at: Timestamp,
    events: &[BulkEvent],
) -> Result<(), Error> {
    if events.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = events.iter().map(|event| event.id.uuid()).collect();
    let subjects: Vec<Uuid> = events.iter().map(|event| event.subject).collect();
    let data: Vec<String> = events.iter().map(|event| event.data.to_string()).collect();
    let params: [&(dyn ToSql + Sync); 11] = [
        &tenant.uuid(),
        &at,
        &kind.as_str(),
        &actor.client.map(Id::uuid),
        &actor.user.map(Id::uuid),
        &actor.staff.map(Id::uuid),
        &actor.request_id,
        &actor.operator,
        &ids,
        &subjects,
        &data,
    ];
    tx.enqueue(&INSERT_ALL, &params).await
}

static INSERT_SYSTEM_EVENTS: Sql = Sql::new(
    "INSERT INTO events (tenant_id, at, id, kind, subject_id, data)
     SELECT tenant_id, at, id, kind, subject_id, data::jsonb
     FROM unnest($1::uuid[], $2::timestamptz[], $3::uuid[], $4::text[], $5::uuid[], $6::text[])
        AS event (tenant_id, at, id, kind, subject_id, data)",
);

/// Records events without an actor, of any tenants, in one statement.
pub async fn record_system_events<T: Serialize>(
    tx: &Transaction<'_>,
    events: &[Event<'_, T>],
) -> Result<(), Error> {
    if events.is_empty() {
        return Ok(());
    }
    let tenants: Vec<Uuid> = events.iter().map(|event| event.tenant.uuid()).collect();
    let times: Vec<Timestamp> = events.iter().map(|event| event.at).collect();
    let ids: Vec<Uuid> = events.iter().map(|event| event.id.uuid()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    let subjects: Vec<Uuid> = events.iter().map(|event| event.subject).collect();
    let data = { events.iter() }
        .map(|event| to_json(event.data))
        .collect::<Result<Vec<String>, Error>>()?;
    let params: [&(dyn ToSql + Sync); 6] = [&tenants, &times, &ids, &kinds, &subjects, &data];
    tx.enqueue(&INSERT_SYSTEM_EVENTS, &params).await
}

static COUNT_BY_KIND: Sql = Sql::new(
    "SELECT kind, count(*) FROM events WHERE tenant_id = ANY ($1) AND at > $2 AND at <= $3 GROUP BY kind",
);

/// Counts the events of these tenants by kind, after `from` and up to `to`.
pub async fn count_by_kind(
    connection: &PooledConnection,
    tenants: &[TenantId],
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<(String, i64)>, Error> {
    let tenants: Vec<Uuid> = tenants.iter().map(|tenant| tenant.uuid()).collect();
    let rows = connection
        .query(&COUNT_BY_KIND, &[&tenants, &from, &to])
        .await?;
    rows.iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect()
}

// Moving many rows out of the default partition may take long.
static DISABLE_STATEMENT_TIMEOUT: Sql = Sql::new("SET LOCAL statement_timeout = 0");
static CREATE_PARTITIONS: Sql = Sql::new("SELECT create_partitions('events')");

/// Creates the partitions of this month, the next two, and each month with rows in the default
/// partition.
pub(super) async fn create_partitions(tx: &Transaction<'_>) -> Result<(), Error> {
    tx.execute(&DISABLE_STATEMENT_TIMEOUT, &[]).await?;
    tx.query(&CREATE_PARTITIONS, &[]).await?;
    Ok(())
}

// Dropping a partition waits for all readers of the log, and new events wait behind it. So the wait
// is short, and the task retries later.
static SHORTEN_LOCK_TIMEOUT: Sql = Sql::new("SET LOCAL lock_timeout = '100ms'");
// PostgreSQL drops no partition that the same statement reads, so this is not a condition of the next one.
static OLD_UNREAD_STATE: Sql = Sql::new(
    "SELECT seq FROM all_pending_revenue_changes
     WHERE at < partitions_kept_from('events', make_interval(months => $1)) LIMIT 1",
);
static DROP_PARTITIONS: Sql =
    Sql::new("SELECT drop_partitions('events', make_interval(months => $1))");

/// Drops the partitions of all months before the last `keep_months` whole months and returns their
/// names. Drops none while the reports have not read all states of these months.
pub(super) async fn drop_partitions(
    tx: &Transaction<'_>,
    keep_months: i32,
) -> Result<Vec<String>, Error> {
    tx.execute(&SHORTEN_LOCK_TIMEOUT, &[]).await?;
    // The roll-up of the reports has stopped, or is about to read a state in the past.
    let unread = tx.query(&OLD_UNREAD_STATE, &[&keep_months]).await?;
    if !unread.is_empty() {
        tracing::warn!("old events are kept until the reports have read their states");
        return Ok(Vec::new());
    }
    let rows = tx.query(&DROP_PARTITIONS, &[&keep_months]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}
