//! SQL that lists and counts the sessions of a user.

use jiff::Timestamp;
use perennial_domain::{Id, Session, SessionId, UserId};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::{
    super::Tenant,
    table::{columns, read_ids, read_session, select, watermark},
};
use crate::db::{Error, PooledConnection, Sql, Transaction};

const MAX_LISTED: i64 = 1_000;

/// The condition that a session of the user `$2` is active at `$3`, with the tenant's timeouts in
/// seconds, idle `$4` and absolute `$5`.
macro_rules! active {
    () => {
        concat!(
            "sessions.tenant_id = $1 AND sessions.user_id = $2 AND sessions.ended_at IS NULL AND sessions.expires_at > $3
       AND sessions.refreshed_at + $4 * interval '1 second' > $3 AND sessions.created_at + $5 * interval '1 second' > $3
       AND ",
            watermark!("max"),
            " IS NULL"
        )
    };
}

/// The parameters `$1` to `$5` of [`active!`].
struct ActiveParams {
    tenant: Uuid,
    user: Uuid,
    now: Timestamp,
    idle_timeout: f64,
    absolute_timeout: f64,
}

impl ActiveParams {
    fn new(tenant: &Tenant, user: UserId, now: Timestamp) -> Self {
        let lifetimes = &tenant.session_lifetimes;
        Self {
            tenant: tenant.id.uuid(),
            user: user.uuid(),
            now,
            idle_timeout: lifetimes.idle_timeout.as_secs_f64(),
            absolute_timeout: lifetimes.absolute_timeout.as_secs_f64(),
        }
    }

    /// Returns the parameters, followed by `$6`.
    fn with<'a>(&'a self, last: &'a (dyn ToSql + Sync)) -> [&'a (dyn ToSql + Sync); 6] {
        [
            &self.tenant,
            &self.user,
            &self.now,
            &self.idle_timeout,
            &self.absolute_timeout,
            last,
        ]
    }
}

static LIST_ACTIVE: Sql = Sql::new(concat!(
    select!(active!()),
    " ORDER BY sessions.created_at DESC, sessions.id DESC LIMIT $6"
));

/// Returns up to 1,000 active sessions of a user, newest first.
pub async fn list_active(
    connection: &PooledConnection,
    tenant: &Tenant,
    user: UserId,
    now: Timestamp,
) -> Result<Vec<Session>, Error> {
    let params = ActiveParams::new(tenant, user, now);
    let rows = connection
        .query(&LIST_ACTIVE, &params.with(&MAX_LISTED))
        .await?;
    read_sessions(&rows, tenant)
}

static LIST_ALL: Sql = Sql::new(select!(
    "sessions.user_id = $2 ORDER BY sessions.created_at DESC, sessions.id DESC LIMIT 1000"
));

/// Returns up to 1,000 sessions of a user, newest first, including ended ones that have not been
/// deleted yet.
pub async fn list_all(
    connection: &PooledConnection,
    tenant: &Tenant,
    user: UserId,
) -> Result<Vec<Session>, Error> {
    let rows = connection
        .query(&LIST_ALL, &[&tenant.id.uuid(), &user.uuid()])
        .await?;
    read_sessions(&rows, tenant)
}

static COUNT_ACTIVE: Sql = Sql::new(concat!(
    "SELECT count(*) FROM sessions WHERE ",
    active!(),
    " AND sessions.id IS DISTINCT FROM $6"
));

/// Counts the active sessions of a user, without `except`.
pub(super) async fn count_active(
    tx: &Transaction<'_>,
    tenant: &Tenant,
    user: UserId,
    except: Option<SessionId>,
    now: Timestamp,
) -> Result<i64, Error> {
    let params = ActiveParams::new(tenant, user, now);
    let except = except.map(Id::uuid);
    let rows = tx.query(&COUNT_ACTIVE, &params.with(&except)).await?;
    Ok(rows.first().map_or(Ok(0), |row| row.try_get(0))?)
}

static IS_ACTIVE: Sql = Sql::new(concat!(
    "SELECT 1 FROM sessions WHERE ",
    active!(),
    " AND sessions.id = $6"
));

/// Returns whether a session of a user is active.
pub async fn is_active(
    tx: &Transaction<'_>,
    tenant: &Tenant,
    user: UserId,
    session: SessionId,
    now: Timestamp,
) -> Result<bool, Error> {
    let params = ActiveParams::new(tenant, user, now);
    let session = session.uuid();
    let rows = tx.query(&IS_ACTIVE, &params.with(&session)).await?;
    Ok(!rows.is_empty())
}

static LIST_EXCESS: Sql = Sql::new(concat!(
    "SELECT sessions.id FROM sessions WHERE ",
    active!(),
    " ORDER BY sessions.created_at DESC, sessions.id DESC OFFSET $6"
));

/// Returns the active sessions of a user beyond the newest [`Session::MAX_PER_USER`], oldest first.
pub async fn list_excess(
    tx: &Transaction<'_>,
    tenant: &Tenant,
    user: UserId,
    now: Timestamp,
) -> Result<Vec<SessionId>, Error> {
    let params = ActiveParams::new(tenant, user, now);
    let max = i64::from(Session::MAX_PER_USER);
    let rows = tx.query(&LIST_EXCESS, &params.with(&max)).await?;
    let mut excess = read_ids(&rows)?;
    excess.reverse();
    Ok(excess)
}

fn read_sessions(rows: &[Row], tenant: &Tenant) -> Result<Vec<Session>, Error> {
    rows.iter()
        .map(|row| Ok(read_session(row, &tenant.session_lifetimes)?.session))
        .collect()
}
