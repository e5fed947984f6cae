//! SQL of the leases and cursors of webhook endpoints.
//!
//! A process that holds an endpoint's lease delivers to it. It saves the cursor and renews the lease in one
//! statement for all its endpoints. `claim_sql.rs` acquires leases.

use std::time::Duration;

use jiff::Timestamp;
use perennial_domain::{Id, TenantId, WebhookEndpointId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::db::{Error, PooledConnection, Sql, Transaction};

/// A lease: who holds it, and for how long it is valid after it was acquired or renewed.
#[derive(Debug, Clone, Copy)]
pub struct EndpointLease {
    pub holder: Uuid,
    pub ttl_seconds: f64,
}

/// The cursors of several endpoints.
#[derive(Debug, Default)]
pub struct Cursors {
    tenants: Vec<Uuid>,
    ids: Vec<Uuid>,
    positions: Vec<i64>,
    are_renewed: Vec<bool>,
}

impl Cursors {
    /// Adds a cursor, and whether the lease is renewed too.
    pub fn push(
        &mut self,
        tenant: TenantId,
        id: WebhookEndpointId,
        position: i64,
        is_renewed: bool,
    ) {
        self.tenants.push(tenant.uuid());
        self.ids.push(id.uuid());
        self.positions.push(position);
        self.are_renewed.push(is_renewed);
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

// An unchanged lease leaves the index of leases as it is, so most cursors are saved without changing any index.
static RENEW: Sql = Sql::new(
    "UPDATE webhook_endpoints AS endpoint
     SET position = greatest(endpoint.position, held.position),
         leased_until = CASE WHEN is_renewed THEN now() + $6 * interval '1 second' ELSE leased_until END
     FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::boolean[]) AS held (tenant_id, id, position, is_renewed)
     WHERE endpoint.tenant_id = held.tenant_id AND endpoint.id = held.id AND endpoint.lease_holder = $5
       AND status = 'enabled' AND deleted_at IS NULL
     RETURNING endpoint.id, endpoint.updated_at",
);

/// Saves cursors and renews leases. Returns the endpoints whose lease is still held, and when each was changed. A cursor
/// never moves back.
pub async fn renew(
    connection: &PooledConnection,
    lease: EndpointLease,
    cursors: &Cursors,
) -> Result<Vec<(WebhookEndpointId, Timestamp)>, Error> {
    let Cursors {
        tenants,
        ids,
        positions,
        are_renewed,
    } = cursors;
    let params: [&(dyn ToSql + Sync); 6] = [
        tenants,
        ids,
        positions,
        are_renewed,
        &lease.holder,
        &lease.ttl_seconds,
    ];
    let rows = connection.query(&RENEW, &params).await?;
    rows.iter()
        .map(|row| Ok((WebhookEndpointId::new(row.try_get(0)?), row.try_get(1)?)))
        .collect()
}

// A replay that is created at the same time is visible to the next statement.
static LOCK_LEASE: Sql = Sql::new(
    "SELECT id FROM webhook_endpoints WHERE tenant_id = $1 AND id = $2 AND lease_holder = $3 FOR NO KEY UPDATE",
);

// The earliest retry decides when the endpoint is claimed again. An unfinished replay and events after the cursor are
// due at once, but not before the end of a pause.
static RELEASE: Sql = Sql::new(
    "UPDATE webhook_endpoints AS endpoint
     SET position = greatest(position, $4), lease_holder = NULL, leased_until = NULL,
         due_at = CASE WHEN next.due_at IS NOT NULL THEN greatest(next.due_at, paused_until) END
     FROM (SELECT least(
            (SELECT min(next_attempt_at) FROM webhook_retries
             WHERE webhook_retries.tenant_id = $1 AND endpoint_id = $2 AND next_attempt_at IS NOT NULL),
            (SELECT min(created_at) FROM webhook_replays
             WHERE webhook_replays.tenant_id = $1 AND endpoint_id = $2 AND finished_at IS NULL),
            (SELECT now() FROM event_log_tenants
             WHERE event_log_tenants.tenant_id = $1 AND last_position > $4)) AS due_at) AS next
     WHERE tenant_id = $1 AND id = $2 AND lease_holder = $3",
);

/// Saves the cursor of an endpoint and releases its lease.
pub async fn release(
    tx: &Transaction<'_>,
    holder: Uuid,
    tenant: TenantId,
    id: WebhookEndpointId,
    position: i64,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 4] = [&tenant.uuid(), &id.uuid(), &holder, &position];
    let [tenant, id, holder, _] = params;
    tx.enqueue(&LOCK_LEASE, &[tenant, id, holder]).await?;
    tx.enqueue(&RELEASE, &params).await
}

static MARK_FAILING: Sql = Sql::new(
    "UPDATE webhook_endpoints SET failing_since = coalesce(failing_since, $3), failures_in_a_row = $4
     WHERE tenant_id = $1 AND id = $2 RETURNING failing_since",
);

/// Starts a failure streak, unless there is one, and returns its start.
pub async fn mark_failing(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: WebhookEndpointId,
    failures_in_a_row: u32,
    now: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    let failures_in_a_row = i32::try_from(failures_in_a_row).unwrap_or(i32::MAX);
    let params: [&(dyn ToSql + Sync); 4] = [&tenant.uuid(), &id.uuid(), &now, &failures_in_a_row];
    let rows = tx.query(&MARK_FAILING, &params).await?;
    rows.first().map_or(Ok(None), |row| Ok(row.try_get(0)?))
}

static PAUSE: Sql = Sql::new(
    "UPDATE webhook_endpoints SET paused_until = now() + $3 * interval '1 second'
     WHERE tenant_id = $1 AND id = $2",
);

/// Stores that no request may be sent for a time.
pub async fn pause(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: WebhookEndpointId,
    pause: Duration,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &id.uuid(), &pause.as_secs_f64()];
    tx.enqueue(&PAUSE, &params).await
}

static MARK_DELIVERING: Sql = Sql::new(
    "UPDATE webhook_endpoints SET failing_since = NULL, failures_in_a_row = 0, paused_until = NULL
     WHERE tenant_id = $1 AND id = $2 AND failing_since IS NOT NULL",
);

/// Ends a failure streak.
pub async fn mark_delivering(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: WebhookEndpointId,
) -> Result<(), Error> {
    tx.enqueue(&MARK_DELIVERING, &[&tenant.uuid(), &id.uuid()])
        .await
}

static MARK_DUE: Sql = Sql::new(
    "UPDATE webhook_endpoints SET due_at = least(due_at, $3) WHERE tenant_id = $1 AND id = $2",
);

/// Makes an endpoint due at `at`, unless it is due before.
pub async fn mark_due(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: WebhookEndpointId,
    at: Timestamp,
) -> Result<(), Error> {
    tx.enqueue(&MARK_DUE, &[&tenant.uuid(), &id.uuid(), &at])
        .await
}

static RESUME: Sql = Sql::new(
    "UPDATE webhook_endpoints SET failures_in_a_row = 0, paused_until = NULL, due_at = now()
     WHERE tenant_id = $1 AND id = $2",
);

/// Ends a pause and makes an endpoint due, after a request has enabled it or changed how it is delivered to.
pub async fn resume(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: WebhookEndpointId,
) -> Result<(), Error> {
    tx.enqueue(&RESUME, &[&tenant.uuid(), &id.uuid()]).await
}

// Positions have no gaps, so the first event that is not delivered is the one after the cursor.
static MEASURE_BACKLOG: Sql = Sql::new(
    "SELECT
        (SELECT count(*) FROM webhook_endpoints
         WHERE failing_since < now() - interval '1 hour' AND status = 'enabled' AND deleted_at IS NULL),
        (SELECT coalesce(extract(epoch FROM now() - min(entry.recorded_at)), 0)::float8
         FROM webhook_endpoints AS endpoint JOIN event_log_tenants AS log USING (tenant_id)
         JOIN event_log AS entry ON entry.tenant_id = endpoint.tenant_id AND entry.position = endpoint.position + 1
         WHERE endpoint.status = 'enabled' AND endpoint.deleted_at IS NULL AND endpoint.failing_since IS NULL
           AND endpoint.position < log.last_position)",
);

/// What the enabled endpoints of all tenants of a cell have not received.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryBacklog {
    /// Endpoints for which all attempts have failed for an hour.
    pub failing_endpoints: i64,
    /// For how long the oldest event has been waiting for its first attempt. Failing endpoints are left out.
    pub behind_seconds: f64,
}

/// Reads the backlog of a cell.
pub async fn measure_backlog(connection: &PooledConnection) -> Result<DeliveryBacklog, Error> {
    let row = connection.query_opt(&MEASURE_BACKLOG, &[]).await?;
    let row = row.ok_or_else(|| Error::Internal("no backlog was returned".to_owned()))?;
    Ok(DeliveryBacklog {
        failing_endpoints: row.try_get(0)?,
        behind_seconds: row.try_get(1)?,
    })
}
