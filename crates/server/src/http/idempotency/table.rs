//! The table `idempotency_keys`: all its SQL.

use jiff::Timestamp;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::db::{Error, Sql, Transaction};

// Held until the end of the transaction. Asked for, not waited for: whoever comes second is told so.
static TRY_LOCK: Sql = Sql::new("SELECT pg_try_advisory_xact_lock($1)");

/// What was answered before.
pub(super) struct Kept {
    pub fingerprint: Vec<u8>,
    pub location: String,
    pub body: String,
}

static FIND: Sql = Sql::new(
    "SELECT fingerprint, location, body FROM idempotency_keys
     WHERE tenant_id = $1 AND scope_hash = $2 AND expires_at > $3",
);

/// Whether nobody else is at this number now; and then, what was answered before.
pub(super) async fn lock_and_find(
    tx: &Transaction<'_>,
    number: i64,
    tenant: Uuid,
    scope_hash: &[u8],
    now: Timestamp,
) -> Result<(bool, Option<Kept>), Error> {
    let lock: (_, &[&(dyn ToSql + Sync)]) = (&TRY_LOCK, &[&number]);
    let (locked, found) = tx
        .query_both([lock, (&FIND, &[&tenant, &scope_hash, &now])])
        .await?;
    let locked = locked.first().map_or(Ok(false), |row| row.try_get(0))?;
    let Some(row) = found.first() else {
        return Ok((locked, None));
    };
    let kept = Kept {
        fingerprint: row.try_get("fingerprint")?,
        location: row.try_get("location")?,
        body: row.try_get("body")?,
    };
    Ok((locked, Some(kept)))
}

// The lock is held and nothing live was found, so what is there has expired.
static KEEP: Sql = Sql::new(
    "INSERT INTO idempotency_keys (tenant_id, scope_hash, fingerprint, location, body, created_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (tenant_id, scope_hash) DO UPDATE
     SET fingerprint = excluded.fingerprint, location = excluded.location, body = excluded.body,
         created_at = excluded.created_at, expires_at = excluded.expires_at",
);

pub(super) async fn keep(
    tx: &Transaction<'_>,
    tenant: Uuid,
    scope_hash: &[u8],
    kept: &Kept,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<(), Error> {
    let Kept {
        fingerprint,
        location,
        body,
    } = kept;
    tx.write(
        &KEEP,
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

// By their place in the table: joined by their key, the planner reads the whole table once more.
static REMOVE_EXPIRED: Sql = Sql::new(
    "DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM idempotency_keys
        WHERE expires_at <= now() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED))",
);

/// Removes up to `limit` keys that have expired; answers how many.
pub(super) async fn remove_expired(tx: &Transaction<'_>, limit: i64) -> Result<u64, Error> {
    tx.execute(&REMOVE_EXPIRED, &[&limit]).await
}

static FORGET_USER: Sql = Sql::new(
    "DELETE FROM idempotency_keys WHERE tenant_id = $1 AND location = $2 AND location LIKE '/users/%'",
);

/// Removes the keys whose answers are about the user at this path.
pub(super) async fn forget_user(
    tx: &Transaction<'_>,
    tenant: Uuid,
    path: &str,
) -> Result<(), Error> {
    tx.execute(&FORGET_USER, &[&tenant, &path]).await?;
    Ok(())
}
