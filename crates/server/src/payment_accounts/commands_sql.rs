//! SQL of the table `payment_commands`: claiming, renewing and completing. `payment_commands/table.rs` has the storing.

use std::time::Duration;

use jiff::Timestamp;
use perennial_domain::{Id, PaymentAccountId, TenantId};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use crate::db::{Error, PooledConnection, RowReader, Sql};

/// A command whose lease a process holds.
#[derive(Debug, Clone)]
pub struct ClaimedCommand {
    pub tenant: TenantId,
    pub account: PaymentAccountId,
    /// The provider's id of the subscription.
    pub external_id: String,
    pub command: String,
    /// When a cancellation takes effect, if not at the end of the period.
    pub ends_at: Option<Timestamp>,
    /// Failed attempts before this one.
    pub attempts: u32,
    version: i64,
    generation: i64,
}

static CLAIM: Sql = Sql::new(
    "UPDATE payment_commands
     SET lease_generation = lease_generation + 1, leased_until = now() + $1 * interval '1 second'
     WHERE (tenant_id, account_id, external_id) IN (
        SELECT tenant_id, account_id, external_id FROM payment_commands
        WHERE next_attempt_at <= now() AND coalesce(leased_until < now(), true)
          AND account_id <> ALL ($3)
        ORDER BY next_attempt_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED)
     RETURNING tenant_id, account_id, external_id, command, ends_at, attempts, version, lease_generation",
);

/// Acquires the leases of up to `limit` commands that are due, except those of paused accounts.
pub(super) async fn claim(
    connection: &PooledConnection,
    ttl: Duration,
    paused: &[Uuid],
    limit: i64,
) -> Result<Vec<ClaimedCommand>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&ttl.as_secs_f64(), &limit, &paused];
    let rows = connection.query(&CLAIM, &params).await?;
    rows.iter().map(from_row).collect()
}

fn from_row(row: &Row) -> Result<ClaimedCommand, Error> {
    let row = RowReader::new(row);
    let attempts: i32 = row.get("attempts")?;
    Ok(ClaimedCommand {
        tenant: TenantId::new(row.get("tenant_id")?),
        account: PaymentAccountId::new(row.get("account_id")?),
        external_id: row.get("external_id")?,
        command: row.get("command")?,
        ends_at: row.get("ends_at")?,
        attempts: u32::try_from(attempts).unwrap_or(0),
        version: row.get("version")?,
        generation: row.get("lease_generation")?,
    })
}

static RENEW: Sql = Sql::new(
    "UPDATE payment_commands SET leased_until = now() + $5 * interval '1 second'
     WHERE tenant_id = $1 AND account_id = $2 AND external_id = $3 AND lease_generation = $4 AND leased_until IS NOT NULL
     RETURNING 1",
);

/// Renews a lease. Returns whether it is still held.
pub(super) async fn renew(
    connection: &PooledConnection,
    item: &ClaimedCommand,
    ttl: Duration,
) -> Result<bool, Error> {
    let (tenant, account) = item.key();
    let ttl = ttl.as_secs_f64();
    let params: [&(dyn ToSql + Sync); 5] =
        [&tenant, &account, &item.external_id, &item.generation, &ttl];
    let rows = connection.query(&RENEW, &params).await?;
    Ok(!rows.is_empty())
}

static RELEASE: Sql = Sql::new(
    "UPDATE payment_commands SET leased_until = NULL
     WHERE tenant_id = $1 AND account_id = $2 AND external_id = $3 AND lease_generation = $4",
);

/// Releases a lease without a result.
pub(super) async fn release(
    connection: &PooledConnection,
    item: &ClaimedCommand,
) -> Result<(), Error> {
    let (tenant, account) = item.key();
    let params: [&(dyn ToSql + Sync); 4] = [&tenant, &account, &item.external_id, &item.generation];
    connection.query(&RELEASE, &params).await?;
    Ok(())
}

// A command that replaced the sent one stays due.
static ACKNOWLEDGE: Sql = Sql::new(
    "UPDATE payment_commands
     SET leased_until = NULL,
         acknowledged_at = CASE WHEN version = $5 THEN now() END,
         next_attempt_at = CASE WHEN version = $5 THEN NULL ELSE next_attempt_at END,
         reason = $6
     WHERE tenant_id = $1 AND account_id = $2 AND external_id = $3 AND lease_generation = $4",
);

/// Stores that the provider has acknowledged a command. `reason` tells why if it did not change anything there.
pub(super) async fn acknowledge(
    connection: &PooledConnection,
    item: &ClaimedCommand,
    reason: Option<&str>,
) -> Result<(), Error> {
    let (tenant, account) = item.key();
    let params: [&(dyn ToSql + Sync); 6] = [
        &tenant,
        &account,
        &item.external_id,
        &item.generation,
        &item.version,
        &reason,
    ];
    connection.query(&ACKNOWLEDGE, &params).await?;
    Ok(())
}

static POSTPONE: Sql = Sql::new(
    "UPDATE payment_commands
     SET leased_until = NULL,
         attempts = CASE WHEN version = $5 THEN attempts + 1 ELSE attempts END,
         next_attempt_at = CASE WHEN version = $5 THEN now() + $6 * interval '1 second' ELSE next_attempt_at END,
         reason = CASE WHEN version = $5 THEN $7 ELSE reason END
     WHERE tenant_id = $1 AND account_id = $2 AND external_id = $3 AND lease_generation = $4
       AND acknowledged_at IS NULL",
);

/// Stores why a command was not acknowledged. It is sent again after a pause.
pub(super) async fn postpone(
    connection: &PooledConnection,
    item: &ClaimedCommand,
    pause: Duration,
    reason: &str,
) -> Result<(), Error> {
    let (tenant, account) = item.key();
    let pause = pause.as_secs_f64();
    let params: [&(dyn ToSql + Sync); 7] = [
        &tenant,
        &account,
        &item.external_id,
        &item.generation,
        &item.version,
        &pause,
        &reason,
    ];
    connection.query(&POSTPONE, &params).await?;
    Ok(())
}

impl ClaimedCommand {
    fn key(&self) -> (Uuid, Uuid) {
        (self.tenant.uuid(), self.account.uuid())
    }
}
