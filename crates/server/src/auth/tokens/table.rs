//! SQL of the table `signing_keys`.
//!
//! Only the home cell, the database that also stores the tenants, has rows in this table.

use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::{SealedSecret, SigningAlgorithm};
use crate::db::{CellDatabase, Error, PooledConnection, RowReader, Sql, Transaction};

/// When a key signs, and when its tokens are accepted.
#[derive(Debug, Clone, Copy)]
pub struct KeyValidity {
    /// When the key starts to sign tokens. It signs until a newer key starts.
    pub signs_from: Timestamp,
    /// When its tokens stop being accepted; `None` until a newer key replaces it.
    pub accepted_until: Option<Timestamp>,
}

impl KeyValidity {
    pub fn is_accepted(self, now: Timestamp) -> bool {
        self.accepted_until.is_none_or(|until| now < until)
    }

    pub fn can_sign(self, now: Timestamp) -> bool {
        self.signs_from <= now && self.is_accepted(now)
    }
}

/// A signing key without its key material.
#[derive(Debug)]
pub struct SigningKeyRow {
    /// The `kid` in the header of its tokens.
    pub id: Uuid,
    pub algorithm: SigningAlgorithm,
    pub created_at: Timestamp,
    pub validity: KeyValidity,
}

fn read_key(row: &Row) -> Result<SigningKeyRow, Error> {
    let row = RowReader::new(row);
    Ok(SigningKeyRow {
        id: row.get("id")?,
        algorithm: row.parse("algorithm")?,
        created_at: row.get("created_at")?,
        validity: KeyValidity {
            signs_from: row.get("signs_from")?,
            accepted_until: row.get("accepted_until")?,
        },
    })
}

static LIST_ACCEPTED: Sql = Sql::new(
    "SELECT id, algorithm, created_at, signs_from, accepted_until, private_key FROM signing_keys
     WHERE accepted_until IS NULL OR accepted_until > now() ORDER BY signs_from, id",
);

/// Returns the keys whose tokens are accepted, with their private keys, in the order in which they
/// start to sign. Includes keys that do not sign yet.
pub(super) async fn list_accepted(
    home: &CellDatabase,
) -> Result<Vec<(SigningKeyRow, SealedSecret)>, Error> {
    let rows = home.read_all(&LIST_ACCEPTED, &[]).await?;
    rows.iter()
        .map(|row| Ok((read_key(row)?, SealedSecret(row.try_get("private_key")?))))
        .collect()
}

static LIST: Sql = Sql::new(
    "SELECT id, algorithm, created_at, signs_from, accepted_until FROM signing_keys ORDER BY signs_from, id",
);

/// Returns all keys, in the order in which they start to sign.
pub async fn list(home: &PooledConnection) -> Result<Vec<SigningKeyRow>, Error> {
    let rows = home.query(&LIST, &[]).await?;
    rows.iter().map(read_key).collect()
}

static LOCK: Sql = Sql::new("LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE");
static COUNT: Sql = Sql::new("SELECT count(*) FROM signing_keys");

/// Locks the table against inserts and returns whether it is empty.
pub(super) async fn lock_and_check_empty(tx: &Transaction<'_>) -> Result<bool, Error> {
    tx.execute(&LOCK, &[]).await?;
    let rows = tx.query(&COUNT, &[]).await?;
    let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    Ok(count == 0)
}

static RETIRE_ALL: Sql = Sql::new(
    "UPDATE signing_keys SET accepted_until = $1 WHERE accepted_until IS NULL OR accepted_until > $1",
);

/// Stops accepting all keys at `until`, unless an earlier time is set.
pub(super) async fn retire_all(tx: &Transaction<'_>, until: Timestamp) -> Result<(), Error> {
    tx.execute(&RETIRE_ALL, &[&until]).await?;
    Ok(())
}

// Uses the database's time, as `LIST_ACCEPTED` does.
static REFUSE_ALL: Sql = Sql::new(
    "UPDATE signing_keys SET accepted_until = now() WHERE accepted_until IS NULL OR accepted_until > now()",
);

/// Stops accepting all keys immediately.
pub(super) async fn refuse_all(tx: &Transaction<'_>) -> Result<(), Error> {
    tx.execute(&REFUSE_ALL, &[]).await?;
    Ok(())
}

pub(super) struct NewSigningKey<'a> {
    pub id: Uuid,
    pub algorithm: SigningAlgorithm,
    pub public: &'a [u8],
    pub private: SealedSecret,
    pub created_at: Timestamp,
    pub signs_from: Timestamp,
}

static INSERT: Sql = Sql::new(
    "INSERT INTO signing_keys (id, algorithm, public_key, private_key, created_at, signs_from)
     VALUES ($1, $2, $3, $4, $5, $6)",
);

pub(super) async fn insert(tx: &Transaction<'_>, key: &NewSigningKey<'_>) -> Result<(), Error> {
    tx.execute(
        &INSERT,
        &[
            &key.id,
            &key.algorithm.as_str(),
            &key.public,
            &key.private.0,
            &key.created_at,
            &key.signs_from,
        ],
    )
    .await?;
    Ok(())
}

static DELETE_RETIRED: Sql = Sql::new(
    "DELETE FROM signing_keys WHERE id = ANY (ARRAY(
        SELECT id FROM signing_keys WHERE accepted_until < now() - interval '30 days' LIMIT $1 FOR UPDATE SKIP LOCKED))",
);

/// Deletes up to `limit` keys that have not been accepted for 30 days. Returns how many.
pub async fn delete_retired(tx: &Transaction<'_>, limit: i64) -> Result<usize, Error> {
    let deleted = tx.execute(&DELETE_RETIRED, &[&limit]).await?;
    Ok(usize::try_from(deleted).unwrap_or(usize::MAX))
}
