//! SQL of the leases and cursors of webhook endpoints.
//!
//! A process that holds an endpoint's lease delivers to it. It saves the cursor and renews the lease in one
//! statement for all its endpoints.

use jiff::Timestamp;
use perennial_domain::{Id, TenantId, WebhookEndpoint, WebhookEndpointId};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::{
    secrets::SealedSecrets,
    table::{columns, from_row, secrets_from_row},
};
use crate::db::{Error, PooledConnection, Sql, Transaction};

/// An endpoint and its delivery state, as read when the lease is acquired and after each change.
#[derive(Debug, Clone)]
pub struct EndpointState {
    pub tenant: TenantId,
    pub endpoint: WebhookEndpoint,
    pub secrets: SealedSecrets,
    /// All events up to it are delivered or have a row in `webhook_retries`.
    pub position: i64,
}

macro_rules! state_columns {
    () => {
        concat!(
            "tenant_id, id, ",
            columns!(),
            ", secret, previous_secret, previous_secret_expires_at, position"
        )
    };
}

fn state_from_row(row: &Row) -> Result<EndpointState, Error> {
    Ok(EndpointState {
        tenant: TenantId::new(row.try_get("tenant_id")?),
        endpoint: from_row(row)?,
        secrets: secrets_from_row(row)?,
        position: row.try_get("position")?,
    })
}

// The row is locked before the lease is read again, so two processes cannot acquire it.
static CLAIM: Sql = Sql::new(concat!(
    "UPDATE webhook_endpoints SET lease_holder = $1, leased_until = now() + $2 * interval '1 second'
     WHERE (tenant_id, id) IN (
        SELECT tenant_id, id FROM webhook_endpoints
        WHERE status = 'enabled' AND deleted_at IS NULL AND (leased_until IS NULL OR leased_until < now())
          AND (due_at <= now() OR position < (
            SELECT last_position FROM event_log_tenants WHERE event_log_tenants.tenant_id = webhook_endpoints.tenant_id))
        LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED)
     RETURNING ",
    state_columns!()
));

/// Acquires the leases of up to `limit` endpoints that have something to send.
pub async fn claim(
    tx: &Transaction<'_>,
    holder: Uuid,
    ttl_seconds: f64,
    limit: i64,
) -> Result<Vec<EndpointState>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&holder, &ttl_seconds, &limit];
    let rows = tx.query(&CLAIM, &params).await?;
    rows.iter().map(state_from_row).collect()
}

static FIND_STATE: Sql = Sql::new(concat!(
    "SELECT ",
    state_columns!(),
    " FROM webhook_endpoints
     WHERE tenant_id = $1 AND id = $2 AND status = 'enabled' AND deleted_at IS NULL"
));

/// Returns the state of an enabled endpoint.
pub async fn find_state(
    connection: &PooledConnection,
    tenant: TenantId,
    id: WebhookEndpointId,
) -> Result<Option<EndpointState>, Error> {
    let row = connection
        .query_opt(&FIND_STATE, &[&tenant.uuid(), &id.uuid()])
        .await?;
    row.as_ref().map(state_from_row).transpose()
}

/// The cursors of several endpoints.
#[derive(Debug, Default)]
pub struct Cursors {
    tenants: Vec<Uuid>,
    ids: Vec<Uuid>,
    positions: Vec<i64>,
}

impl Cursors {
    pub fn push(&mut self, tenant: TenantId, id: WebhookEndpointId, position: i64) {
        self.tenants.push(tenant.uuid());
        self.ids.push(id.uuid());
        self.positions.push(position);
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

static RENEW: Sql = Sql::new(
    "UPDATE webhook_endpoints AS endpoint
     SET position = greatest(endpoint.position, held.position), leased_until = now() + $5 * interval '1 second'
     FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) AS held (tenant_id, id, position)
     WHERE endpoint.tenant_id = held.tenant_id AND endpoint.id = held.id AND endpoint.lease_holder = $4
       AND status = 'enabled' AND deleted_at IS NULL
     RETURNING endpoint.id, endpoint.updated_at",
);

/// Saves cursors and renews leases. Returns the endpoints whose lease is still held, and when each was changed.
/// A cursor never moves back.
pub async fn renew(
    connection: &PooledConnection,
    holder: Uuid,
    ttl_seconds: f64,
    cursors: &Cursors,
) -> Result<Vec<(WebhookEndpointId, Timestamp)>, Error> {
    let Cursors {
        tenants,
        ids,
        positions,
    } = cursors;
    let params: [&(dyn ToSql + Sync); 5] = [tenants, ids, positions, &holder, &ttl_seconds];
    let rows = connection.query(&RENEW, &params).await?;
    rows.iter()
        .map(|row| Ok((WebhookEndpointId::new(row.try_get(0)?), row.try_get(1)?)))
        .collect()
}

// The earliest retry decides when the endpoint is claimed again. An unfinished replay is due at once.
static RELEASE: Sql = Sql::new(
    "UPDATE webhook_endpoints AS endpoint
     SET position = greatest(position, $4), lease_holder = NULL, leased_until = NULL, due_at = (
        SELECT least(
            (SELECT min(next_attempt_at) FROM webhook_retries
             WHERE webhook_retries.tenant_id = $1 AND endpoint_id = $2 AND next_attempt_at IS NOT NULL),
            (SELECT min(created_at) FROM webhook_replays
             WHERE webhook_replays.tenant_id = $1 AND endpoint_id = $2 AND finished_at IS NULL)))
     WHERE tenant_id = $1 AND id = $2 AND lease_holder = $3",
);

/// Saves the cursor of an endpoint and releases its lease.
pub async fn release(
    connection: &PooledConnection,
    holder: Uuid,
    tenant: TenantId,
    id: WebhookEndpointId,
    position: i64,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 4] = [&tenant.uuid(), &id.uuid(), &holder, &position];
    connection.query(&RELEASE, &params).await?;
    Ok(())
}

static MARK_FAILING: Sql = Sql::new(
    "UPDATE webhook_endpoints SET failing_since = coalesce(failing_since, $3), due_at = least(due_at, $4)
     WHERE tenant_id = $1 AND id = $2 RETURNING failing_since",
);

/// Starts a failure streak, unless there is one, and returns its start. `due_at` is the time of the next retry.
pub async fn mark_failing(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: WebhookEndpointId,
    now: Timestamp,
    due_at: Option<Timestamp>,
) -> Result<Option<Timestamp>, Error> {
    let params: [&(dyn ToSql + Sync); 4] = [&tenant.uuid(), &id.uuid(), &now, &due_at];
    let rows = tx.query(&MARK_FAILING, &params).await?;
    rows.first().map_or(Ok(None), |row| Ok(row.try_get(0)?))
}

static MARK_DELIVERING: Sql = Sql::new(
    "UPDATE webhook_endpoints SET failing_since = NULL WHERE tenant_id = $1 AND id = $2 AND failing_since IS NOT NULL",
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

static COUNT_FAILING: Sql = Sql::new(
    "SELECT count(*) FROM webhook_endpoints
     WHERE failing_since < now() - interval '1 hour' AND status = 'enabled' AND deleted_at IS NULL",
);

/// Returns the number of enabled endpoints of all tenants for which all attempts have failed for an hour.
pub async fn count_failing(connection: &PooledConnection) -> Result<i64, Error> {
    let row = connection.query_opt(&COUNT_FAILING, &[]).await?;
    row.map_or(Ok(0), |row| Ok(row.try_get(0)?))
}
