//! SQL of the table `sessions`.

use std::net::IpAddr;

use jiff::Timestamp;
use perennial_domain::{
    ClientId, Id, Session, SessionId, SessionLifetimes, SessionUser, TenantId, UserId,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::super::{
    Tenant,
    tokens::{KeyId, ParsedRefreshToken, Salt},
};
use crate::db::{CellDatabase, Error, RowReader, Sql, Transaction};

/// Notification channel; the payload is the id of a changed or revoked session, or a watermark.
pub const CHANNEL: &str = "perennial_sessions";

#[derive(Debug, Clone)]
pub struct SessionRow {
    pub session: Session,
    pub user: SessionUser,
    /// The order of sign-ins and watermarks in a cell.
    pub number: i64,
    /// Salt and master key of the session's current refresh token.
    pub salt: Salt,
    /// The database's time of the read. Compare it with `refreshed_at`, which is also the
    /// database's time: the clocks of instances differ.
    pub read_at: Timestamp,
}

impl SessionRow {
    /// Returns whether a verified refresh token can be one of this session. A leaked master key without
    /// the session's salt is not enough to create such a token.
    pub fn has_issued(&self, token: &ParsedRefreshToken) -> bool {
        let is_current = token.generation == self.session.generation;
        token.salt.bytes == self.salt.bytes && (!is_current || token.salt.key == self.salt.key)
    }
}

/// The time of the latest (`"max"`) or earliest (`"min"`) watermark that ends a session; null if there
/// is none.
macro_rules! watermark {
    ($aggregate:literal) => {
        concat!(
            "(SELECT ",
            $aggregate,
            "(set_at) FROM session_watermarks AS watermark
             WHERE watermark.tenant_id = ANY (ARRAY[sessions.tenant_id, '00000000-0000-0000-0000-000000000000'::uuid])
               AND watermark.scope = ANY (ARRAY['installation', 'tenant', 'issuer:' || sessions.issuer, 'user:' || sessions.user_id])
               AND watermark.sessions_valid_from > sessions.number
               AND watermark.except_session IS DISTINCT FROM sessions.id)"
        )
    };
}

/// The columns of a session and its user. A session that a watermark has ended has its time in
/// `ended_at`, before housekeeping stores it there.
macro_rules! columns {
    () => {
        concat!(
            "sessions.id, sessions.user_id, sessions.client_id, sessions.issuer, sessions.address, sessions.user_agent,
            sessions.salt, sessions.refresh_key_id, sessions.generation, sessions.confirmed_generation, sessions.refreshed_at,
            sessions.created_at, sessions.last_used_at, sessions.expires_at, coalesce(sessions.ended_at, ",
            watermark!("max"),
            ") AS ended_at, sessions.number,
            sessions.authenticated_at,
            users.external_id AS external_user_id, users.email, users.created_at AS user_created_at, now() AS read_at"
        )
    };
}

/// Builds a query for sessions with their users; sessions of erased users are left out.
macro_rules! select {
    ($($condition:tt)*) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM sessions
     JOIN users ON users.tenant_id = sessions.tenant_id AND users.id = sessions.user_id
     WHERE sessions.tenant_id = $1 AND users.erased_at IS NULL AND ",
            $($condition)*
        )
    };
}

pub(super) use {columns, select, watermark};

static FIND: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    ", sessions.tenant_id
     FROM unnest($1::uuid[], $2::uuid[]) AS keys (tenant_id, id)
     JOIN sessions ON sessions.tenant_id = keys.tenant_id AND sessions.id = keys.id
     JOIN users ON users.tenant_id = sessions.tenant_id AND users.id = sessions.user_id
     WHERE users.erased_at IS NULL"
));

/// The tenant and the id of a session.
pub type SessionKey = (TenantId, SessionId);

/// Returns sessions, active or not, except those of erased users. Their expiry is the stored one.
pub(super) async fn find_stored(
    database: &CellDatabase,
    keys: &[SessionKey],
) -> Result<Vec<(SessionKey, SessionRow)>, Error> {
    let tenants: Vec<Uuid> = keys.iter().map(|(tenant, _)| tenant.uuid()).collect();
    let sessions: Vec<Uuid> = keys.iter().map(|(_, session)| session.uuid()).collect();
    let rows = database.read_all(&FIND, &[&tenants, &sessions]).await?;
    let read = |row: &Row| {
        let tenant = TenantId::new(row.try_get("tenant_id")?);
        let row = read_stored(row)?;
        Ok(((tenant, row.session.id), row))
    };
    rows.iter().map(read).collect()
}

/// Returns a session, active or not, unless its user was erased.
pub async fn find(
    database: &CellDatabase,
    tenant: &Tenant,
    session: SessionId,
) -> Result<Option<SessionRow>, Error> {
    let found = find_stored(database, &[(tenant.id, session)]).await?.pop();
    Ok(found.map(|(_, mut row)| {
        row.session.cap_expiry(&tenant.session_lifetimes);
        row
    }))
}

pub(super) fn read_ids(rows: &[Row]) -> Result<Vec<SessionId>, Error> {
    rows.iter()
        .map(|row| Ok(SessionId::new(row.try_get(0)?)))
        .collect()
}

pub(super) fn read_session(row: &Row, lifetimes: &SessionLifetimes) -> Result<SessionRow, Error> {
    let mut row = read_stored(row)?;
    row.session.cap_expiry(lifetimes);
    Ok(row)
}

fn read_stored(row: &Row) -> Result<SessionRow, Error> {
    let row = RowReader::new(row);
    let number = |column| -> Result<u32, Error> {
        let value: i32 = row.get(column)?;
        u32::try_from(value).map_err(|error| Error::Internal(error.to_string()))
    };
    let user = UserId::new(row.get("user_id")?);
    let salt: &[u8] = row.get("salt")?;
    let session = Session {
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
        authenticated_at: row.get("authenticated_at")?,
        generation: number("generation")?,
        confirmed: number("confirmed_generation")?,
        refreshed_at: row.get("refreshed_at")?,
    };
    Ok(SessionRow {
        session,
        user: SessionUser {
            id: user,
            external_id: row.parse_optional("external_user_id")?,
            email: row.email()?,
            created_at: row.get("user_created_at")?,
        },
        number: row.get("number")?,
        salt: Salt {
            bytes: salt
                .try_into()
                .map_err(|_| Error::Internal("sessions.salt must have 16 bytes".to_owned()))?,
            key: KeyId::from_column(row.get("refresh_key_id")?),
        },
        read_at: row.get("read_at")?,
    })
}

// Selects from `users` with a lock, so that a session is never created for a user who is being erased,
// and sign-ins of a user count its sessions one after the other.
static INSERT: Sql = Sql::new(
    "INSERT INTO sessions (tenant_id, id, user_id, client_id, issuer, address, user_agent, salt, generation,
        confirmed_generation, refreshed_at, created_at, last_used_at, expires_at, authenticated_at, refresh_key_id, number)
     SELECT tenant_id, $2::uuid, id, $4::uuid, $5::text, $6::inet, $7::text, $8::bytea, $9::integer,
        $10::integer, $11::timestamptz, $12::timestamptz, $13::timestamptz, $14::timestamptz,
        $15::timestamptz, $16::integer, nextval('session_numbers')
     FROM users WHERE tenant_id = $1 AND id = $3 AND erased_at IS NULL FOR NO KEY UPDATE",
);

/// Inserts a session. Returns false if its user does not exist or was erased.
pub async fn insert(
    tx: &Transaction<'_>,
    tenant: TenantId,
    session: &Session,
    salt: &Salt,
) -> Result<bool, Error> {
    let params: [&(dyn ToSql + Sync); 16] = [
        &tenant.uuid(),
        &session.id.uuid(),
        &session.user.uuid(),
        &session.client.uuid(),
        &session.issuer,
        &session.address,
        &session.user_agent,
        &salt.bytes.as_slice(),
        &to_column(session.generation),
        &to_column(session.confirmed),
        &session.refreshed_at,
        &session.created_at,
        &session.last_used_at,
        &session.expires_at,
        &session.authenticated_at,
        &salt.key.to_column(),
    ];
    Ok(tx.execute(&INSERT, &params).await? > 0)
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
    "SELECT id FROM sessions WHERE tenant_id = $1 AND user_id = $2 AND ended_at IS NULL AND expires_at > now()",
);

/// Notifies all instances that a user changed, and returns the user's active sessions.
pub async fn notify_user_changed(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
) -> Result<Vec<SessionId>, Error> {
    let rows = tx.query(&LIST_IDS, &[&tenant.uuid(), &user.uuid()]).await?;
    let sessions = read_ids(&rows)?;
    notify(tx, sessions.iter().copied()).await?;
    Ok(sessions)
}

static DELETE_FOR_USER: Sql =
    Sql::new("DELETE FROM sessions WHERE tenant_id = $1 AND user_id = $2");

/// Deletes the sessions of a user, with their IP addresses and user agents.
pub async fn delete_for_user(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &user.uuid()];
    tx.enqueue(&DELETE_FOR_USER, &params).await
}

/// Converts a generation to its column's type. Saturates at `i32::MAX`, which no session reaches in
/// its lifetime.
pub(super) fn to_column(generation: u32) -> i32 {
    i32::try_from(generation).unwrap_or(i32::MAX)
}
