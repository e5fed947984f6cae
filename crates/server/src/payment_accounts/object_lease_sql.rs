//! SQL of the leases of payment objects: claiming, renewing and releasing.

use std::time::Duration;

use jiff::Timestamp;
use perennial_domain::{FetchLease, Id, PaymentAccountId, TenantId};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::{provider_notification::PaymentObjectRef, sync_sql::ObjectKey};
use crate::db::{Error, PooledConnection, RowReader, Sql, Transaction};

/// Who acquires leases, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct ObjectLease {
    pub holder: Uuid,
    pub ttl: Duration,
}

/// An object whose lease a process holds.
#[derive(Debug, Clone)]
pub struct ClaimedObject {
    pub key: ObjectKey,
    pub lease: FetchLease,
    /// Failed attempts before this one.
    pub attempts: u32,
    pub has_record: bool,
    /// Notifications received later are not covered by the fetch.
    pub claimed_at: Timestamp,
}

/// Acquires the leases of up to `$3` objects that meet the condition, except those of the accounts `$4`.
macro_rules! claim {
    ($condition:literal, $order:literal) => {
        concat!(
            "UPDATE payment_objects
     SET lease_generation = lease_generation + 1, lease_holder = $1, leased_until = now() + $2 * interval '1 second'
     WHERE (tenant_id, account_id, kind, external_id) IN (
        SELECT tenant_id, account_id, kind, external_id FROM payment_objects
        WHERE ",
            $condition,
            " AND account_id <> ALL ($4)",
            $order,
            "
        LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED)
     RETURNING tenant_id, account_id, kind, external_id, wanted, lease_generation, attempts,
        record_id IS NOT NULL AS has_record, now() AS claimed_at"
        )
    };
}

static CLAIM_EXPIRED: Sql = Sql::new(claim!("leased_until < now()", ""));
static CLAIM_DUE: Sql = Sql::new(claim!(
    "due_at <= now() AND leased_until IS NULL",
    " ORDER BY due_at"
));

/// Acquires the leases of up to `limit` objects that are due or whose lease has expired, except those of paused accounts.
pub(super) async fn claim(
    tx: &Transaction<'_>,
    terms: ObjectLease,
    paused: &[Uuid],
    limit: i64,
) -> Result<Vec<ClaimedObject>, Error> {
    let mut claimed = Vec::new();
    for sql in [&CLAIM_EXPIRED, &CLAIM_DUE] {
        let rest = limit.saturating_sub(i64::try_from(claimed.len()).unwrap_or(limit));
        let ttl = terms.ttl.as_secs_f64();
        let params: [&(dyn ToSql + Sync); 4] = [&terms.holder, &ttl, &rest, &paused];
        let rows = tx.query(sql, &params).await?;
        claimed.extend(rows.iter().filter_map(|row| {
            let object = claimed_from_row(row);
            // One that a newer version has stored must not delay others: its lease expires, and it is claimed again.
            object
                .inspect_err(|error| tracing::error!(%error, "cannot read a payment object"))
                .ok()
        }));
    }
    Ok(claimed)
}

fn key_from_row(row: &RowReader<'_>) -> Result<ObjectKey, Error> {
    Ok(ObjectKey {
        tenant: TenantId::new(row.get("tenant_id")?),
        account: PaymentAccountId::new(row.get("account_id")?),
        object: PaymentObjectRef {
            kind: row.parse("kind")?,
            id: row.get("external_id")?,
        },
    })
}

fn claimed_from_row(row: &Row) -> Result<ClaimedObject, Error> {
    let row = RowReader::new(row);
    let attempts: i32 = row.get("attempts")?;
    Ok(ClaimedObject {
        key: key_from_row(&row)?,
        lease: FetchLease {
            generation: row.get("lease_generation")?,
            wanted: row.get("wanted")?,
        },
        attempts: u32::try_from(attempts).unwrap_or(0),
        has_record: row.get("has_record")?,
        claimed_at: row.get("claimed_at")?,
    })
}

static RENEW: Sql = Sql::new(
    "UPDATE payment_objects AS object SET leased_until = now() + $6 * interval '1 second'
     FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bigint[])
        AS held (tenant_id, account_id, kind, external_id, generation)
     WHERE object.tenant_id = held.tenant_id AND object.account_id = held.account_id AND object.kind = held.kind
       AND object.external_id = held.external_id AND object.lease_generation = held.generation
       AND object.leased_until IS NOT NULL
     RETURNING object.tenant_id, object.account_id, object.kind, object.external_id",
);

/// Renews leases and returns the objects whose lease is still held.
pub(super) async fn renew(
    connection: &PooledConnection,
    terms: ObjectLease,
    held: &[&ClaimedObject],
) -> Result<Vec<ObjectKey>, Error> {
    let tenants: Vec<Uuid> = held.iter().map(|item| item.key.tenant.uuid()).collect();
    let accounts: Vec<Uuid> = held.iter().map(|item| item.key.account.uuid()).collect();
    let kinds: Vec<&str> = { held.iter() }
        .map(|item| item.key.object.kind.as_str())
        .collect();
    let ids: Vec<&str> = { held.iter() }
        .map(|item| item.key.object.id.as_str())
        .collect();
    let generations: Vec<i64> = held.iter().map(|item| item.lease.generation).collect();
    let ttl = terms.ttl.as_secs_f64();
    let params: [&(dyn ToSql + Sync); 6] = [&tenants, &accounts, &kinds, &ids, &generations, &ttl];
    let rows = connection.query(&RENEW, &params).await?;
    { rows.iter() }
        .map(|row| key_from_row(&RowReader::new(row)))
        .collect()
}

static RELEASE: Sql = Sql::new(
    "UPDATE payment_objects SET lease_holder = NULL, leased_until = NULL
     WHERE tenant_id = $1 AND account_id = $2 AND kind = $3 AND external_id = $4 AND lease_generation = $5
       AND leased_until IS NOT NULL",
);

/// Releases a lease without a result.
pub(super) async fn release(
    connection: &PooledConnection,
    item: &ClaimedObject,
) -> Result<(), Error> {
    let key = item.key.columns();
    let [tenant, account, kind, id] = key.params();
    let params: [&(dyn ToSql + Sync); 5] = [tenant, account, kind, id, &item.lease.generation];
    connection.query(&RELEASE, &params).await?;
    Ok(())
}
