//! SQL of the table `webhook_retries`: events that failed, or that wait for an earlier event of their subject.

use std::collections::HashSet;

use jiff::Timestamp;
use perennial_domain::{Id, TenantId, WebhookEndpointId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::db::{Error, PooledConnection, Sql, Transaction};

/// The tenant and id of an endpoint: the first columns of the keys of its rows.
#[derive(Debug, Clone, Copy)]
pub struct EndpointKey {
    pub tenant: TenantId,
    pub endpoint: WebhookEndpointId,
}

/// An event to send again.
#[derive(Debug, Clone, Copy)]
pub struct ScheduledRetry {
    pub position: i64,
    pub failed_attempts: u32,
    /// When the first attempt failed. `None` if there was no attempt, or none since the endpoint was enabled.
    pub since: Option<Timestamp>,
    pub next_attempt_at: Timestamp,
}

static LIST: Sql = Sql::new(
    "SELECT position, failed_attempts, since, next_attempt_at FROM webhook_retries
     WHERE tenant_id = $1 AND endpoint_id = $2 AND next_attempt_at IS NOT NULL
     ORDER BY next_attempt_at LIMIT $3",
);

/// Returns up to `limit` retries of an endpoint, the earliest first.
pub async fn list(
    connection: &PooledConnection,
    key: EndpointKey,
    limit: i64,
) -> Result<Vec<ScheduledRetry>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&key.tenant.uuid(), &key.endpoint.uuid(), &limit];
    let rows = connection.query(&LIST, &params).await?;
    rows.iter()
        .map(|row| {
            let failed_attempts: i32 = row.try_get(1)?;
            let since = row.try_get(2)?;
            Ok(ScheduledRetry {
                position: row.try_get(0)?,
                failed_attempts: u32::try_from(failed_attempts).unwrap_or(0),
                since: (failed_attempts > 0).then_some(since),
                next_attempt_at: row.try_get(3)?,
            })
        })
        .collect()
}

static BLOCKED_SUBJECTS: Sql = Sql::new(
    "SELECT DISTINCT subject_id FROM webhook_retries
     WHERE tenant_id = $1 AND endpoint_id = $2 AND given_up_at IS NULL",
);

/// Returns the subjects whose later events must wait.
pub async fn blocked_subjects(
    connection: &PooledConnection,
    key: EndpointKey,
) -> Result<HashSet<Uuid>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&key.tenant.uuid(), &key.endpoint.uuid()];
    let rows = connection.query(&BLOCKED_SUBJECTS, &params).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// A failed attempt, and what follows.
#[derive(Debug, Clone, Copy)]
pub struct FailedEvent {
    pub position: i64,
    pub subject: Uuid,
    pub failed_attempts: u32,
    /// When the event is sent again. `None` gives it up.
    pub next_attempt_at: Option<Timestamp>,
}

static SAVE: Sql = Sql::new(
    "INSERT INTO webhook_retries (tenant_id, endpoint_id, position, subject_id, failed_attempts, since, next_attempt_at, given_up_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7::timestamptz, CASE WHEN $7::timestamptz IS NULL THEN $6::timestamptz END)
     ON CONFLICT (tenant_id, endpoint_id, position) DO UPDATE
     SET failed_attempts = excluded.failed_attempts, next_attempt_at = excluded.next_attempt_at,
         since = CASE webhook_retries.failed_attempts WHEN 0 THEN excluded.since ELSE webhook_retries.since END,
         given_up_at = excluded.given_up_at",
);

/// Stores a failed attempt.
pub async fn save(
    tx: &Transaction<'_>,
    key: EndpointKey,
    failed: &FailedEvent,
    now: Timestamp,
) -> Result<(), Error> {
    let failed_attempts = i32::try_from(failed.failed_attempts).unwrap_or(i32::MAX);
    let params: [&(dyn ToSql + Sync); 7] = [
        &key.tenant.uuid(),
        &key.endpoint.uuid(),
        &failed.position,
        &failed.subject,
        &failed_attempts,
        &now,
        &failed.next_attempt_at,
    ];
    tx.enqueue(&SAVE, &params).await
}

static BLOCK: Sql = Sql::new(
    "INSERT INTO webhook_retries (tenant_id, endpoint_id, position, subject_id, failed_attempts, since)
     SELECT $1, $2, event.position, event.subject_id, 0, $5
     FROM unnest($3::bigint[], $4::uuid[]) AS event (position, subject_id)
     ON CONFLICT DO NOTHING",
);

/// Stores events that wait for an earlier event of their subject.
pub async fn block(
    connection: &PooledConnection,
    key: EndpointKey,
    (positions, subjects): (&[i64], &[Uuid]),
    now: Timestamp,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 5] = [
        &key.tenant.uuid(),
        &key.endpoint.uuid(),
        &positions,
        &subjects,
        &now,
    ];
    connection.query(&BLOCK, &params).await?;
    Ok(())
}

static REMOVE: Sql = Sql::new(
    "DELETE FROM webhook_retries WHERE tenant_id = $1 AND endpoint_id = $2 AND position = $3",
);

/// Removes a delivered event.
pub async fn remove(tx: &Transaction<'_>, key: EndpointKey, position: i64) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&key.tenant.uuid(), &key.endpoint.uuid(), &position];
    tx.enqueue(&REMOVE, &params).await
}

// If an earlier event of the subject is still scheduled, the first row is that one, and nothing changes.
static UNBLOCK: Sql = Sql::new(
    "WITH first AS (
        SELECT position FROM webhook_retries
        WHERE tenant_id = $1 AND endpoint_id = $2 AND subject_id = $3 AND given_up_at IS NULL
        ORDER BY position LIMIT 1),
     unblocked AS (
        UPDATE webhook_retries SET next_attempt_at = $4
        WHERE tenant_id = $1 AND endpoint_id = $2 AND position = (SELECT position FROM first)
          AND next_attempt_at IS NULL)
     SELECT position FROM first",
);

/// Schedules the next waiting event of a subject. Returns whether the subject has events that wait or are
/// scheduled.
pub async fn unblock(
    tx: &Transaction<'_>,
    key: EndpointKey,
    subject: Uuid,
    now: Timestamp,
) -> Result<bool, Error> {
    let params: [&(dyn ToSql + Sync); 4] =
        [&key.tenant.uuid(), &key.endpoint.uuid(), &subject, &now];
    Ok(!tx.query(&UNBLOCK, &params).await?.is_empty())
}

static UNBLOCK_ALL: Sql = Sql::new(
    "UPDATE webhook_retries SET next_attempt_at = $3
     WHERE tenant_id = $1 AND endpoint_id = $2 AND next_attempt_at IS NULL AND given_up_at IS NULL",
);

/// Schedules all waiting events of an endpoint, after its order was changed.
pub async fn unblock_all(
    connection: &PooledConnection,
    key: EndpointKey,
    now: Timestamp,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&key.tenant.uuid(), &key.endpoint.uuid(), &now];
    connection.query(&UNBLOCK_ALL, &params).await?;
    Ok(())
}

// Spread over a minute, so that an endpoint that has just recovered is not overloaded.
static HASTEN: Sql = Sql::new(
    "UPDATE webhook_retries SET next_attempt_at = $3::timestamptz + random() * interval '1 minute'
     WHERE tenant_id = $1 AND endpoint_id = $2 AND next_attempt_at > $3::timestamptz + interval '1 minute'",
);

/// Moves all retries of an endpoint to the next minute, after it has recovered.
pub async fn hasten(tx: &Transaction<'_>, key: EndpointKey, now: Timestamp) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&key.tenant.uuid(), &key.endpoint.uuid(), &now];
    tx.enqueue(&HASTEN, &params).await
}

static RESTART: Sql = Sql::new(
    "UPDATE webhook_retries SET failed_attempts = 0, next_attempt_at = CASE WHEN next_attempt_at IS NOT NULL
         THEN least(next_attempt_at, $3::timestamptz + random() * interval '1 minute') END
     WHERE tenant_id = $1 AND endpoint_id = $2 AND given_up_at IS NULL",
);

/// Starts the retry schedules of all events of an endpoint again, within the next minute.
pub async fn restart(tx: &Transaction<'_>, key: EndpointKey, now: Timestamp) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&key.tenant.uuid(), &key.endpoint.uuid(), &now];
    tx.enqueue(&RESTART, &params).await
}

static LIST_GIVEN_UP: Sql = Sql::new(
    "SELECT position FROM webhook_retries
     WHERE tenant_id = $1 AND endpoint_id = $2 AND position > $3 AND position <= $4 AND given_up_at IS NOT NULL
     ORDER BY position LIMIT $5",
);

/// Returns up to `limit` positions after `after` and up to `last` whose events were given up.
pub async fn list_given_up(
    connection: &PooledConnection,
    key: EndpointKey,
    (after, last): (i64, i64),
    limit: i64,
) -> Result<Vec<i64>, Error> {
    let params: [&(dyn ToSql + Sync); 5] = [
        &key.tenant.uuid(),
        &key.endpoint.uuid(),
        &after,
        &last,
        &limit,
    ];
    let rows = connection.query(&LIST_GIVEN_UP, &params).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

static POSITIONS: Sql = Sql::new(
    "SELECT position FROM webhook_retries
     WHERE tenant_id = $1 AND endpoint_id = $2 AND position > $3 AND position <= $4",
);

/// Returns the positions after `after` and up to `last` whose events have failed or wait.
pub async fn positions(
    connection: &PooledConnection,
    key: EndpointKey,
    (after, last): (i64, i64),
) -> Result<Vec<i64>, Error> {
    let params: [&(dyn ToSql + Sync); 4] =
        [&key.tenant.uuid(), &key.endpoint.uuid(), &after, &last];
    let rows = connection.query(&POSITIONS, &params).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

static DELETE_GIVEN_UP: Sql = Sql::new(
    "DELETE FROM webhook_retries WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM webhook_retries
        WHERE given_up_at < now() - $1 * interval '1 day' LIMIT $2 FOR UPDATE SKIP LOCKED))",
);

/// Deletes up to `limit` events of all tenants that were given up more than `days` ago, and returns their
/// number.
pub async fn delete_given_up(tx: &Transaction<'_>, days: f64, limit: i64) -> Result<u64, Error> {
    tx.execute(&DELETE_GIVEN_UP, &[&days, &limit]).await
}
