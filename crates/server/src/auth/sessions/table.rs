//! SQL of the table `sessions`.

use std::net::IpAddr;

use jiff::Timestamp;
use perennial_domain::{ClientId, Id, Session, SessionId, TenantId, User, UserId};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::super::tokens::Salt;
use crate::db::{CellDatabase, Error, PooledConnection, RowReader, Sql, Transaction};

/// Notification channel; the payload is the id of a changed or revoked session.
pub const CHANNEL: &str = "perennial_sessions";

#[derive(Debug)]
pub struct SessionRow {
    pub session: Session,
    pub user: User,
    /// Salt of the key that signs the session's refresh tokens.
    pub salt: Salt,
    /// The database's time of the read. Compare it with `refreshed_at`, which is also the
    /// database's time: the clocks of instances differ.
    pub read_at: Timestamp,
}

/// Builds a query for sessions with their users; sessions of erased users are left out.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT sessions.id, sessions.user_id, sessions.client_id, sessions.issuer, sessions.address, sessions.user_agent,
            sessions.salt, sessions.generation, sessions.confirmed_generation, sessions.refreshed_at,
            sessions.created_at, sessions.last_used_at, sessions.expires_at, sessions.ended_at,
            users.email, users.created_at AS user_created_at, now() AS read_at
     FROM sessions
     JOIN users ON users.tenant_id = sessions.tenant_id AND users.id = sessions.user_id
     WHERE sessions.tenant_id = $1 AND users.erased_at IS NULL AND ",
            $rest
        )
    };
}

static FIND: Sql = Sql::new(select!("sessions.id = $2"));

/// Returns a session, active or not, unless its user was erased.
pub async fn find(
    database: &CellDatabase,
    tenant: TenantId,
    session: SessionId,
) -> Result<Option<SessionRow>, Error> {
    let row = database
        .read(&FIND, &[&tenant.uuid(), &session.uuid()])
        .await?;
    row.as_ref().map(read_session).transpose()
}

static LIST_ACTIVE: Sql = Sql::new(select!(
    "sessions.user_id = $2 AND ended_at IS NULL AND expires_at > $3
     ORDER BY sessions.created_at DESC, sessions.id DESC LIMIT 1000"
));

/// Returns up to 1,000 active sessions of a user, newest first.
pub async fn list_active(
    connection: &PooledConnection,
    tenant: TenantId,
    user: UserId,
    now: Timestamp,
) -> Result<Vec<Session>, Error> {
    let rows = connection
        .query(&LIST_ACTIVE, &[&tenant.uuid(), &user.uuid(), &now])
        .await?;
    rows.iter()
        .map(|row| Ok(read_session(row)?.session))
        .collect()
}

static LIST_ALL: Sql = Sql::new(select!(
    "sessions.user_id = $2 ORDER BY sessions.created_at DESC, sessions.id DESC LIMIT 1000"
));

/// Returns up to 1,000 sessions of a user, newest first, including ended ones that have not been
/// deleted yet.
pub async fn list_all(
    connection: &PooledConnection,
    tenant: TenantId,
    user: UserId,
) -> Result<Vec<Session>, Error> {
    let rows = connection
        .query(&LIST_ALL, &[&tenant.uuid(), &user.uuid()])
        .await?;
    rows.iter()
        .map(|row| Ok(read_session(row)?.session))
        .collect()
}

fn read_session(row: &Row) -> Result<SessionRow, Error> {
    let row = RowReader::new(row);
    let number = |column| -> Result<u32, Error> {
        let value: i32 = row.get(column)?;
        u32::try_from(value).map_err(|error| Error::Internal(error.to_string()))
    };
    let user = UserId::new(row.get("user_id")?);
    let salt: &[u8] = row.get("salt")?;
    Ok(SessionRow {
        session: Session {
            id: SessionId::new(row.get("id")?),
            user,
            client: ClientId::new(row.get("client_id")?),
            issuer: row.get("issuer")?,
            address: row.get::<IpAddr>("address")?,
            user_agent: row.get("user_agent")?,
            created_at: row.get("created_at")?,
            last_used_at: row.get("last_used_at")?,
            expires_at: row.get("expires_at")?,
            ended_at: row.get("ended_at")?,
            generation: number("generation")?,
            confirmed: number("confirmed_generation")?,
            refreshed_at: row.get("refreshed_at")?,
        },
        user: User {
            id: user,
            email: row.parse("email")?,
            created_at: row.get("user_created_at")?,
        },
        salt: salt
            .try_into()
            .map_err(|_| Error::Internal("sessions.salt must have 16 bytes".to_owned()))?,
        read_at: row.get("read_at")?,
    })
}

// Selects from `users` with a lock, so that a session is never created for a user who is being erased.
static INSERT: Sql = Sql::new(
    "INSERT INTO sessions (tenant_id, id, user_id, client_id, issuer, address, user_agent, salt, generation,
        confirmed_generation, refreshed_at, created_at, last_used_at, expires_at)
     SELECT tenant_id, $2::uuid, id, $4::uuid, $5::text, $6::inet, $7::text, $8::bytea, $9::integer,
        $10::integer, $11::timestamptz, $12::timestamptz, $13::timestamptz, $14::timestamptz
     FROM users WHERE tenant_id = $1 AND id = $3 AND erased_at IS NULL FOR KEY SHARE",
);

/// Inserts a session. Returns false if its user does not exist or was erased.
pub async fn insert(
    tx: &Transaction<'_>,
    tenant: TenantId,
    session: &Session,
    salt: &Salt,
) -> Result<bool, Error> {
    let params: [&(dyn ToSql + Sync); 14] = [
        &tenant.uuid(),
        &session.id.uuid(),
        &session.user.uuid(),
        &session.client.uuid(),
        &session.issuer,
        &session.address,
        &session.user_agent,
        &salt.as_slice(),
        &to_column(session.generation),
        &to_column(session.confirmed),
        &session.refreshed_at,
        &session.created_at,
        &session.last_used_at,
        &session.expires_at,
    ];
    Ok(tx.execute(&INSERT, &params).await? > 0)
}

/// The session and generation that a refresh token was issued for.
#[derive(Debug, Clone, Copy)]
pub struct SessionGeneration {
    pub id: SessionId,
    /// The only client that can refresh the session.
    pub client: ClientId,
    pub salt: Salt,
    pub generation: u32,
}

// Compare-and-set on the generation: of concurrent requests, one succeeds.
static ROTATE: Sql = Sql::new(
    "UPDATE sessions SET generation = $5 + 1, confirmed_generation = $5, refreshed_at = now(), last_used_at = $6,
            expires_at = least($7, sessions.created_at + $8 * interval '1 second')
     FROM users
     WHERE sessions.tenant_id = $1 AND sessions.id = $2 AND client_id = $3 AND salt = $4 AND generation = $5
       AND ended_at IS NULL AND expires_at > $6
       AND users.tenant_id = $1 AND users.id = sessions.user_id AND users.erased_at IS NULL
     RETURNING sessions.id, sessions.user_id, sessions.client_id, sessions.issuer, sessions.address, sessions.user_agent,
            sessions.salt, sessions.generation, sessions.confirmed_generation, sessions.refreshed_at,
            sessions.created_at, sessions.last_used_at, sessions.expires_at, sessions.ended_at,
            users.email, users.created_at AS user_created_at, now() AS read_at",
);

/// Starts the next generation if `current` is the current one of an active session.
pub async fn rotate(
    connection: &PooledConnection,
    tenant: TenantId,
    current: SessionGeneration,
    now: Timestamp,
) -> Result<Option<SessionRow>, Error> {
    let idle_until = now.saturating_add(Session::IDLE_TIMEOUT).unwrap_or(now);
    let params: [&(dyn ToSql + Sync); 8] = [
        &tenant.uuid(),
        &current.id.uuid(),
        &current.client.uuid(),
        &current.salt.as_slice(),
        &to_column(current.generation),
        &now,
        &idle_until,
        &Session::MAX_LIFETIME.as_secs_f64(),
    ];
    let rows = connection.query(&ROTATE, &params).await?;
    rows.first().map(read_session).transpose()
}

static TOUCH: Sql = Sql::new(
    "UPDATE sessions SET confirmed_generation = greatest(confirmed_generation, $3), last_used_at = greatest(last_used_at, $4)
     WHERE tenant_id = $1 AND id = $2 AND ended_at IS NULL
     RETURNING confirmed_generation, last_used_at",
);

/// Writes that a token of this generation was used. Returns the confirmed generation and the time
/// of last use, or `None` if the session was revoked.
pub(super) async fn touch(
    connection: &PooledConnection,
    tenant: TenantId,
    session: SessionId,
    generation: u32,
    now: Timestamp,
) -> Result<Option<(u32, Timestamp)>, Error> {
    let params: [&(dyn ToSql + Sync); 4] = [
        &tenant.uuid(),
        &session.uuid(),
        &to_column(generation),
        &now,
    ];
    let rows = connection.query(&TOUCH, &params).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let confirmed: i32 = row.try_get("confirmed_generation")?;
    let confirmed = u32::try_from(confirmed).unwrap_or(0);
    Ok(Some((confirmed, row.try_get("last_used_at")?)))
}

static REVOKE: Sql = Sql::new(
    "UPDATE sessions SET ended_at = $3 WHERE tenant_id = $1 AND id = ANY ($2) AND ended_at IS NULL RETURNING id, user_id",
);

/// Revokes sessions and notifies all instances on commit. Returns the sessions that had not ended,
/// with their users.
pub(super) async fn revoke(
    tx: &Transaction<'_>,
    tenant: TenantId,
    sessions: &[SessionId],
    now: Timestamp,
) -> Result<Vec<(SessionId, UserId)>, Error> {
    let ids: Vec<Uuid> = sessions.iter().map(|session| session.uuid()).collect();
    let rows = tx.query(&REVOKE, &[&tenant.uuid(), &ids, &now]).await?;
    let revoked = rows
        .iter()
        .map(|row| {
            Ok((
                SessionId::new(row.try_get(0)?),
                UserId::new(row.try_get(1)?),
            ))
        })
        .collect::<Result<Vec<_>, Error>>()?;
    notify(tx, revoked.iter().map(|(session, _)| *session)).await?;
    Ok(revoked)
}

static NOTIFY: Sql =
    Sql::new("SELECT pg_notify('perennial_sessions', id::text) FROM unnest($1::uuid[]) AS id");

/// Tells all instances, on commit, to drop these sessions from their caches.
async fn notify(
    tx: &Transaction<'_>,
    sessions: impl Iterator<Item = SessionId>,
) -> Result<(), Error> {
    let ids: Vec<Uuid> = sessions.map(Id::uuid).collect();
    tx.query(&NOTIFY, &[&ids]).await?;
    Ok(())
}

static LIST_IDS: Sql = Sql::new(
    "SELECT id FROM sessions WHERE tenant_id = $1 AND user_id = $2 AND ended_at IS NULL
       AND ($3 OR expires_at > now())",
);

/// Returns a user's sessions that were not revoked, with or without expired ones.
pub async fn list_ids(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
    include_expired: bool,
) -> Result<Vec<SessionId>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &user.uuid(), &include_expired];
    let rows = tx.query(&LIST_IDS, &params).await?;
    rows.iter()
        .map(|row| Ok(SessionId::new(row.try_get(0)?)))
        .collect()
}

/// Notifies all instances that a user changed, and returns the user's active sessions.
pub async fn notify_user_changed(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
) -> Result<Vec<SessionId>, Error> {
    let sessions = list_ids(tx, tenant, user, false).await?;
    notify(tx, sessions.iter().copied()).await?;
    Ok(sessions)
}

static CLEAR_DEVICE_DATA: Sql = Sql::new(
    "UPDATE sessions SET address = '0.0.0.0', user_agent = NULL WHERE tenant_id = $1 AND user_id = $2",
);

/// Removes the IP address and user agent from a user's sessions.
pub async fn clear_device_data(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
) -> Result<(), Error> {
    tx.execute(&CLEAR_DEVICE_DATA, &[&tenant.uuid(), &user.uuid()])
        .await?;
    Ok(())
}

// By ctid: joined by key, the planner would scan the table a second time.
static DELETE_REVOKED: Sql = Sql::new(
    "DELETE FROM sessions
     WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM sessions
        WHERE ended_at < now() - interval '1 day' ORDER BY ended_at LIMIT $1 FOR UPDATE SKIP LOCKED))",
);
static DELETE_EXPIRED: Sql = Sql::new(
    "DELETE FROM sessions
     WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM sessions
        WHERE created_at < now() - $2 * interval '1 second' ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED))",
);

/// Deletes up to `limit` sessions that were revoked more than a day ago and up to `limit` that have
/// exceeded the maximum lifetime. Returns how many.
pub async fn delete_inactive(tx: &Transaction<'_>, limit: i64) -> Result<usize, Error> {
    let revoked = tx.execute(&DELETE_REVOKED, &[&limit]).await?;
    let max_lifetime = Session::MAX_LIFETIME.as_secs_f64();
    let expired = tx
        .execute(&DELETE_EXPIRED, &[&limit, &max_lifetime])
        .await?;
    Ok(usize::try_from(revoked + expired).unwrap_or(usize::MAX))
}

/// Converts a generation to its column's type. Saturates at `i32::MAX`, which no session reaches in
/// its lifetime.
fn to_column(generation: u32) -> i32 {
    i32::try_from(generation).unwrap_or(i32::MAX)
}
