//! The table `sessions`: all its SQL.

use std::net::IpAddr;

use jiff::Timestamp;
use perennial_domain::{ClientId, Id, Session, SessionId, TenantId, User, UserId};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use crate::db::{Connection, Engine, Error, Sql, Transaction, row::Reader};

/// The channel on which ended and changed sessions are named.
pub const CHANNEL: &str = "perennial_sessions";

/// A session as it stands, and whose it is.
#[derive(Debug)]
pub struct Found {
    /// The session.
    pub session: Session,
    /// Whose it is.
    pub user: User,
    /// The random part of its refresh tokens' keys.
    pub salt: [u8; 16],
    /// When this was true, by the clock of the database, which also says when it was refreshed: the clocks of two
    /// instances differ.
    pub asked_at: Timestamp,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT sessions.id, sessions.user_id, sessions.client_id, sessions.issuer, sessions.address, sessions.user_agent,
            sessions.salt, sessions.generation, sessions.confirmed_generation, sessions.refreshed_at,
            sessions.created_at, sessions.last_used_at, sessions.expires_at, sessions.ended_at,
            users.email, users.created_at AS user_created_at, now() AS asked_at
     FROM sessions
     JOIN users ON users.tenant_id = sessions.tenant_id AND users.id = sessions.user_id
     WHERE sessions.tenant_id = $1 AND users.erased_at IS NULL AND ",
            $rest
        )
    };
}

static FIND: Sql = Sql::new(select!("sessions.id = $2"));

/// A session, alive or not.
pub async fn find(
    engine: &Engine,
    tenant: TenantId,
    session: SessionId,
) -> Result<Option<Found>, Error> {
    let row = engine
        .read(&FIND, &[&tenant.uuid(), &session.uuid()])
        .await?;
    row.as_ref().map(found).transpose()
}

static LIST: Sql = Sql::new(select!(
    "sessions.user_id = $2 AND ended_at IS NULL AND expires_at > $3
     ORDER BY sessions.created_at DESC, sessions.id DESC LIMIT 1000"
));

/// A user's sessions that live at `now`, newest first; a thousand at most.
pub async fn list(
    connection: &Connection,
    tenant: TenantId,
    user: UserId,
    now: Timestamp,
) -> Result<Vec<Session>, Error> {
    let rows = connection
        .query(&LIST, &[&tenant.uuid(), &user.uuid(), &now])
        .await?;
    rows.iter().map(|row| Ok(found(row)?.session)).collect()
}

static LIST_ALL: Sql = Sql::new(select!(
    "sessions.user_id = $2 ORDER BY sessions.created_at DESC, sessions.id DESC LIMIT 1000"
));

/// The same, with those that have ended and are not removed yet.
pub async fn list_all(
    connection: &Connection,
    tenant: TenantId,
    user: UserId,
) -> Result<Vec<Session>, Error> {
    let rows = connection
        .query(&LIST_ALL, &[&tenant.uuid(), &user.uuid()])
        .await?;
    rows.iter().map(|row| Ok(found(row)?.session)).collect()
}

fn found(row: &Row) -> Result<Found, Error> {
    let row = Reader::of(row);
    let number = |column| -> Result<u32, Error> {
        let value: i32 = row.get(column)?;
        u32::try_from(value).map_err(|error| Error::Failed(error.to_string()))
    };
    let user = UserId::new(row.get("user_id")?);
    let salt: &[u8] = row.get("salt")?;
    Ok(Found {
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
            email: row.text("email")?,
            created_at: row.get("user_created_at")?,
        },
        salt: salt
            .try_into()
            .map_err(|_| Error::Failed("a salt has not 16 bytes".to_owned()))?,
        asked_at: row.get("asked_at")?,
    })
}

// Only of a user who is there, and stays there until this is committed: somebody may be erasing it just now.
static INSERT: Sql = Sql::new(
    "INSERT INTO sessions (tenant_id, id, user_id, client_id, issuer, address, user_agent, salt, generation,
        confirmed_generation, refreshed_at, created_at, last_used_at, expires_at)
     SELECT tenant_id, $2::uuid, id, $4::uuid, $5::text, $6::inet, $7::text, $8::bytea, $9::integer,
        $10::integer, $11::timestamptz, $12::timestamptz, $13::timestamptz, $14::timestamptz
     FROM users WHERE tenant_id = $1 AND id = $3 AND erased_at IS NULL FOR KEY SHARE",
);

/// Adds a session, unless its user is gone; whether it did.
pub async fn insert(
    tx: &Transaction<'_>,
    tenant: TenantId,
    session: &Session,
    salt: &[u8; 16],
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
        &stored(session.generation),
        &stored(session.confirmed),
        &session.refreshed_at,
        &session.created_at,
        &session.last_used_at,
        &session.expires_at,
    ];
    Ok(tx.execute(&INSERT, &params).await? > 0)
}

/// A generation of a session, as a refresh token names it.
#[derive(Debug, Clone, Copy)]
pub struct Named {
    /// The session.
    pub id: SessionId,
    /// The client that alone can refresh it.
    pub client: ClientId,
    /// Its salt.
    pub salt: [u8; 16],
    /// The generation.
    pub generation: u32,
}

// The generation decides which of several at once is first; the others change nothing.
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
            users.email, users.created_at AS user_created_at, now() AS asked_at",
);

/// Makes the next generation, if this one is the current one of a session that lives.
pub async fn rotate(
    connection: &Connection,
    tenant: TenantId,
    current: Named,
    now: Timestamp,
) -> Result<Option<Found>, Error> {
    let idle_until = now.saturating_add(Session::IDLE).unwrap_or(now);
    let params: [&(dyn ToSql + Sync); 8] = [
        &tenant.uuid(),
        &current.id.uuid(),
        &current.client.uuid(),
        &current.salt.as_slice(),
        &stored(current.generation),
        &now,
        &idle_until,
        &Session::TOTAL.as_secs_f64(),
    ];
    let rows = connection.query(&ROTATE, &params).await?;
    rows.first().map(found).transpose()
}

static NOTE_USE: Sql = Sql::new(
    "UPDATE sessions SET confirmed_generation = greatest(confirmed_generation, $3), last_used_at = greatest(last_used_at, $4)
     WHERE tenant_id = $1 AND id = $2 AND ended_at IS NULL
     RETURNING confirmed_generation, last_used_at",
);

/// Notes that a session was used, by a token of this generation; answers what is noted, unless it has ended.
pub(super) async fn note_use(
    connection: &Connection,
    tenant: TenantId,
    session: SessionId,
    generation: u32,
    now: Timestamp,
) -> Result<Option<(u32, Timestamp)>, Error> {
    let params: [&(dyn ToSql + Sync); 4] =
        [&tenant.uuid(), &session.uuid(), &stored(generation), &now];
    let rows = connection.query(&NOTE_USE, &params).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let confirmed: i32 = row.try_get("confirmed_generation")?;
    let confirmed = u32::try_from(confirmed).unwrap_or(0);
    Ok(Some((confirmed, row.try_get("last_used_at")?)))
}

static END: Sql = Sql::new(
    "UPDATE sessions SET ended_at = $3 WHERE tenant_id = $1 AND id = ANY ($2) AND ended_at IS NULL RETURNING id, user_id",
);

/// Ends sessions, and says so to all instances when the transaction commits; answers those that had not ended, and
/// whose they are.
pub(super) async fn end(
    tx: &Transaction<'_>,
    tenant: TenantId,
    sessions: &[SessionId],
    now: Timestamp,
) -> Result<Vec<(SessionId, UserId)>, Error> {
    let ids: Vec<Uuid> = sessions.iter().map(|session| session.uuid()).collect();
    let rows = tx.query(&END, &[&tenant.uuid(), &ids, &now]).await?;
    let ended: Result<Vec<_>, Error> = rows
        .iter()
        .map(|row| {
            Ok((
                SessionId::new(row.try_get(0)?),
                UserId::new(row.try_get(1)?),
            ))
        })
        .collect();
    let ended = ended?;
    tell(tx, ended.iter().map(|(session, _)| *session)).await?;
    Ok(ended)
}

static TELL: Sql =
    Sql::new("SELECT pg_notify('perennial_sessions', id::text) FROM unnest($1::uuid[]) AS id");

/// Says to all instances, when the transaction commits, that these sessions are not what they were.
async fn tell(
    tx: &Transaction<'_>,
    sessions: impl Iterator<Item = SessionId>,
) -> Result<(), Error> {
    let ids: Vec<Uuid> = sessions.map(Id::uuid).collect();
    tx.query(&TELL, &[&ids]).await?;
    Ok(())
}

static OF_USER: Sql = Sql::new(
    "SELECT id FROM sessions WHERE tenant_id = $1 AND user_id = $2 AND ended_at IS NULL
       AND ($3 OR expires_at > now())",
);

/// A user's sessions that have not been ended; also those that have run out, or only such that live.
pub async fn of_user(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
    also_expired: bool,
) -> Result<Vec<SessionId>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &user.uuid(), &also_expired];
    let rows = tx.query(&OF_USER, &params).await?;
    rows.iter()
        .map(|row| Ok(SessionId::new(row.try_get(0)?)))
        .collect()
}

/// Says to all instances that a user is not what it was; answers its sessions.
pub async fn tell_of_user(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
) -> Result<Vec<SessionId>, Error> {
    let sessions = of_user(tx, tenant, user, false).await?;
    tell(tx, sessions.iter().copied()).await?;
    Ok(sessions)
}

static FORGET_DEVICES: Sql = Sql::new(
    "UPDATE sessions SET address = '0.0.0.0', user_agent = NULL WHERE tenant_id = $1 AND user_id = $2",
);

/// Forgets where and with what a user's sessions were begun.
pub async fn forget_devices(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
) -> Result<(), Error> {
    tx.execute(&FORGET_DEVICES, &[&tenant.uuid(), &user.uuid()])
        .await?;
    Ok(())
}

// By their place in the table: joined by their key, the planner reads the whole table once more.
static REMOVE_ENDED: Sql = Sql::new(
    "DELETE FROM sessions
     WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM sessions
        WHERE ended_at < now() - interval '1 day' ORDER BY ended_at LIMIT $1 FOR UPDATE SKIP LOCKED))",
);
static REMOVE_OLD: Sql = Sql::new(
    "DELETE FROM sessions
     WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM sessions
        WHERE created_at < now() - $2 * interval '1 second' ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED))",
);

/// Removes up to `limit` sessions that were ended a day ago, and as many that are too old to live; answers how many.
pub async fn remove_dead(tx: &Transaction<'_>, limit: i64) -> Result<usize, Error> {
    let ended = tx.execute(&REMOVE_ENDED, &[&limit]).await?;
    let total = Session::TOTAL.as_secs_f64();
    let old = tx.execute(&REMOVE_OLD, &[&limit, &total]).await?;
    Ok(usize::try_from(ended + old).unwrap_or(usize::MAX))
}

/// A generation as the column holds it; a session ends long before it has that many.
fn stored(generation: u32) -> i32 {
    i32::try_from(generation).unwrap_or(i32::MAX)
}
