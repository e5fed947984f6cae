//! SQL that acquires the leases of webhook endpoints.
//!
//! An endpoint is claimed if it is due, if its lease has expired, or if the log of its tenant has grown. The first two have
//! an index each, so that endpoints without anything to send are not read.

use std::time::Duration;

use perennial_domain::{Id, TenantId, WebhookEndpoint, WebhookEndpointId};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::{
    lease_sql::EndpointLease,
    secrets::SealedSecrets,
    table::{columns, from_row, secrets_from_row},
};
use crate::{
    db::{Error, PooledConnection, Sql, Transaction},
    events::log::GrownLogs,
};

/// An endpoint and its delivery state, as read when the lease is acquired and after each change.
#[derive(Debug, Clone)]
pub struct EndpointState {
    pub tenant: TenantId,
    pub endpoint: WebhookEndpoint,
    pub secrets: SealedSecrets,
    /// All events up to it are delivered or have a row in `webhook_retries`.
    pub position: i64,
    /// Failed attempts since the last success.
    pub failures_in_a_row: u32,
    /// How long no request may be sent. 0 if the endpoint is not paused.
    pub pause: Duration,
}

macro_rules! state_columns {
    () => {
        concat!(
            "tenant_id, id, ",
            columns!(),
            ", secret, previous_secret, previous_secret_expires_at, position, failures_in_a_row,
             extract(epoch FROM paused_until - now())::float8 AS pause_seconds"
        )
    };
}

fn state_from_row(row: &Row) -> Result<EndpointState, Error> {
    let failures_in_a_row: i32 = row.try_get("failures_in_a_row")?;
    let pause_seconds: Option<f64> = row.try_get("pause_seconds")?;
    Ok(EndpointState {
        tenant: TenantId::new(row.try_get("tenant_id")?),
        endpoint: from_row(row)?,
        secrets: secrets_from_row(row)?,
        position: row.try_get("position")?,
        failures_in_a_row: u32::try_from(failures_in_a_row).unwrap_or(0),
        // A pause that has passed is negative.
        pause: Duration::try_from_secs_f64(pause_seconds.unwrap_or(0.0)).unwrap_or_default(),
    })
}

/// Reads claimed endpoints. One that cannot be read, for example because of a newer version, must not delay others: its
/// lease expires, and it is claimed again.
fn claimed_states(rows: &[Row]) -> Vec<EndpointState> {
    let states = rows.iter().filter_map(|row| {
        let state = state_from_row(row);
        let state = state.inspect_err(|error| {
            let id: Option<Uuid> = row.try_get("id").ok();
            tracing::error!(endpoint = ?id, %error, "cannot read a webhook endpoint");
        });
        state.ok()
    });
    states.collect()
}

/// Acquires the leases of up to `$3` enabled endpoints. The rows are locked before the leases are read again, so two
/// processes cannot acquire one.
macro_rules! claim {
    ($source:literal, $condition:literal) => {
        concat!(
            "UPDATE webhook_endpoints SET lease_holder = $1, leased_until = now() + $2 * interval '1 second'
     WHERE (tenant_id, id) IN (
        SELECT endpoint.tenant_id, endpoint.id FROM ",
            $source,
            "
        WHERE endpoint.status = 'enabled' AND endpoint.deleted_at IS NULL AND ",
            $condition,
            "
        LIMIT $3 FOR NO KEY UPDATE OF endpoint SKIP LOCKED)
     RETURNING ",
            state_columns!()
        )
    };
}

static CLAIM_DUE: Sql = Sql::new(claim!(
    "webhook_endpoints AS endpoint",
    "(leased_until < now() OR leased_until IS NULL AND due_at <= now())"
));

static CLAIM_BEHIND: Sql = Sql::new(claim!(
    "webhook_endpoints AS endpoint JOIN event_log_tenants AS log ON log.tenant_id = endpoint.tenant_id",
    "endpoint.tenant_id = ANY ($4) AND position < last_position
          AND leased_until IS NULL AND (paused_until IS NULL OR paused_until <= now())"
));

static CLAIM_ALL_BEHIND: Sql = Sql::new(claim!(
    "webhook_endpoints AS endpoint JOIN event_log_tenants AS log ON log.tenant_id = endpoint.tenant_id",
    "position < last_position
          AND leased_until IS NULL AND (paused_until IS NULL OR paused_until <= now())"
));

/// Acquires the leases of up to `limit` endpoints that are due, or whose lease has expired.
pub async fn claim_due(
    tx: &Transaction<'_>,
    lease: EndpointLease,
    limit: i64,
) -> Result<Vec<EndpointState>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&lease.holder, &lease.ttl_seconds, &limit];
    let rows = tx.query(&CLAIM_DUE, &params).await?;
    Ok(claimed_states(&rows))
}

/// Acquires the leases of up to `limit` endpoints whose cursor is not at the end of the log. Reads all endpoints if
/// `grown` is [`GrownLogs::All`].
pub async fn claim_behind(
    tx: &Transaction<'_>,
    lease: EndpointLease,
    grown: &GrownLogs,
    limit: i64,
) -> Result<Vec<EndpointState>, Error> {
    let EndpointLease {
        holder,
        ttl_seconds,
    } = &lease;
    let rows = match grown {
        GrownLogs::All => {
            tx.query(&CLAIM_ALL_BEHIND, &[holder, ttl_seconds, &limit])
                .await?
        }
        GrownLogs::Of(tenants) if tenants.is_empty() => return Ok(Vec::new()),
        GrownLogs::Of(tenants) => {
            let tenants: Vec<Uuid> = tenants.iter().map(|tenant| tenant.uuid()).collect();
            let params: [&(dyn ToSql + Sync); 4] = [holder, ttl_seconds, &limit, &tenants];
            tx.query(&CLAIM_BEHIND, &params).await?
        }
    };
    Ok(claimed_states(&rows))
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
