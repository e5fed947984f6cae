//! SQL that stores uses of sessions.

use jiff::Timestamp;
use perennial_domain::{Id, Session, SessionId, TenantId};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::table::{SessionKey, to_column};
use crate::db::{Error, PooledConnection, Sql};

/// A use of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SessionUse {
    pub key: SessionKey,
    /// The generation that the use confirms; 0 if it only changes the time of last use.
    pub generation: u32,
    pub at: Timestamp,
}

/// What is stored after a use.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredUse {
    pub confirmed: u32,
    pub last_used_at: Timestamp,
}

impl StoredUse {
    fn read(row: &Row) -> Result<Self, Error> {
        let confirmed: i32 = row.try_get("confirmed_generation")?;
        Ok(Self {
            confirmed: u32::try_from(confirmed).unwrap_or(0),
            last_used_at: row.try_get("last_used_at")?,
        })
    }
}

// Skips rows that another transaction has locked. The statement never waits for a lock, so it cannot be part of a
// deadlock, and the order of its rows does not matter.
static TOUCH_MANY: Sql = Sql::new(
    "WITH uses AS (
        SELECT sessions.tenant_id, sessions.id, given.generation, given.used_at
        FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::timestamptz[])
            AS given (tenant_id, id, generation, used_at)
        JOIN sessions ON sessions.tenant_id = given.tenant_id AND sessions.id = given.id
        WHERE sessions.ended_at IS NULL
          AND (given.generation > sessions.confirmed_generation
            OR given.used_at >= sessions.last_used_at + $5 * interval '1 second')
        FOR NO KEY UPDATE OF sessions SKIP LOCKED)
     UPDATE sessions SET
        confirmed_generation = greatest(sessions.confirmed_generation, least(uses.generation, sessions.generation)),
        last_used_at = greatest(sessions.last_used_at, uses.used_at)
     FROM uses WHERE sessions.tenant_id = uses.tenant_id AND sessions.id = uses.id
     RETURNING sessions.tenant_id, sessions.id, sessions.confirmed_generation, sessions.last_used_at",
);

/// Stores uses of sessions; of several uses of one session, any. Returns those that were stored.
///
/// The others belong to a session that has ended, whose row is locked, or whose row needs no change:
/// its generation is confirmed, and its last use was stored less than [`Session::TOUCH_INTERVAL`]
/// before, maybe by another instance.
pub(super) async fn touch_many(
    connection: &PooledConnection,
    uses: &[SessionUse],
) -> Result<Vec<(SessionKey, StoredUse)>, Error> {
    let column = |value: fn(&SessionUse) -> Uuid| uses.iter().map(value).collect::<Vec<_>>();
    let tenants = column(|one| one.key.0.uuid());
    let sessions = column(|one| one.key.1.uuid());
    let generations: Vec<i32> = uses.iter().map(|one| to_column(one.generation)).collect();
    let times: Vec<Timestamp> = uses.iter().map(|one| one.at).collect();
    let interval = Session::TOUCH_INTERVAL.as_secs_f64();
    let params: [&(dyn ToSql + Sync); 5] = [&tenants, &sessions, &generations, &times, &interval];
    let rows = connection.query(&TOUCH_MANY, &params).await?;
    let read = |row: &Row| {
        let key = (
            TenantId::new(row.try_get("tenant_id")?),
            SessionId::new(row.try_get("id")?),
        );
        Ok((key, StoredUse::read(row)?))
    };
    rows.iter().map(read).collect()
}

static TOUCH: Sql = Sql::new(
    "UPDATE sessions SET confirmed_generation = greatest(confirmed_generation, least($3, generation)),
        last_used_at = greatest(last_used_at, $4)
     WHERE tenant_id = $1 AND id = $2 AND ended_at IS NULL
     RETURNING confirmed_generation, last_used_at",
);

/// Stores a use, after waiting for the lock of the session's row. Returns `None` if the session has
/// ended.
pub(super) async fn touch(
    connection: &PooledConnection,
    one: &SessionUse,
) -> Result<Option<StoredUse>, Error> {
    let (tenant, session) = one.key;
    let params: [&(dyn ToSql + Sync); 4] = [
        &tenant.uuid(),
        &session.uuid(),
        &to_column(one.generation),
        &one.at,
    ];
    let row = connection.query_opt(&TOUCH, &params).await?;
    row.as_ref().map(StoredUse::read).transpose()
}
