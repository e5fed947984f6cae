//! SQL of the table `idempotency_keys`.

use jiff::Timestamp;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::db::{Error, Sql, Transaction};

// The lock is released at the end of the transaction. The statement does not wait: a concurrent request
// gets 409.
static TRY_LOCK: Sql = Sql::new("SELECT pg_try_advisory_xact_lock($1)");

pub(super) struct StoredResponse {
    pub fingerprint: Vec<u8>,
    pub location: String,
    pub body: String,
}

static FIND: Sql = Sql::new(
    "SELECT fingerprint, location, body FROM idempotency_keys
     WHERE tenant_id = $1 AND scope_hash = $2 AND expires_at > $3",
);

/// Tries to acquire the lock and reads the stored response, in one round trip. Returns whether the lock
/// was acquired, and the response, if any.
pub(super) async fn lock_and_find(
    tx: &Transaction<'_>,
    lock_id: i64,
    tenant: Uuid,
    scope_hash: &[u8],
    now: Timestamp,
) -> Result<(bool, Option<StoredResponse>), Error> {
    let lock: (_, &[&(dyn ToSql + Sync)]) = (&TRY_LOCK, &[&lock_id]);
    let (locked, stored) = tx
        .query_pipelined([lock, (&FIND, &[&tenant, &scope_hash, &now])])
        .await?;
    let locked = locked.first().map_or(Ok(false), |row| row.try_get(0))?;
    let Some(row) = stored.first() else {
        return Ok((locked, None));
    };
    let stored = StoredResponse {
        fingerprint: row.try_get("fingerprint")?,
        location: row.try_get("location")?,
        body: row.try_get("body")?,
    };
    Ok((locked, Some(stored)))
}

// The lock is held and no valid row was found, so an existing row has expired.
static STORE: Sql = Sql::new(
    "INSERT INTO idempotency_keys (tenant_id, scope_hash, fingerprint, location, body, created_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (tenant_id, scope_hash) DO UPDATE
     SET fingerprint = excluded.fingerprint, location = excluded.location, body = excluded.body,
         created_at = excluded.created_at, expires_at = excluded.expires_at",
);

pub(super) async fn store(
    tx: &Transaction<'_>,
    tenant: Uuid,
    scope_hash: &[u8],
    response: &StoredResponse,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<(), Error> {
    let StoredResponse {
        fingerprint,
        location,
        body,
    } = response;
    tx.enqueue(
        &STORE,
        &[
            &tenant,
            &scope_hash,
            fingerprint,
            location,
            body,
            &now,
            &expires_at,
        ],
    )
    .await
}

// By ctid: with a join by key, the planner scans the whole table again.
static DELETE_EXPIRED: Sql = Sql::new(
    "DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM idempotency_keys
        WHERE expires_at <= now() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED))",
);

/// Deletes up to `limit` expired keys and returns their number.
pub(super) async fn delete_expired(tx: &Transaction<'_>, limit: i64) -> Result<u64, Error> {
    tx.execute(&DELETE_EXPIRED, &[&limit]).await
}
