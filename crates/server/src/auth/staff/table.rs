//! SQL of staff members, their links and their sessions, in the home cell.

use jiff::Timestamp;
use perennial_domain::{Email, Id, StaffId, StaffRole, TenantId};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::{
    super::{Tenant, tenants::table::read_tenant},
    SESSION_IDLE_TIMEOUT, StaffMember, StaffSession, TOUCH_INTERVAL,
};
use crate::db::{CellDatabase, Error, PooledConnection, RowReader, Sql, Transaction};

fn read_member(row: &Row) -> Result<StaffMember, Error> {
    let row = RowReader::new(row);
    Ok(StaffMember {
        id: StaffId::new(row.get("id")?),
        tenant: row
            .get::<Option<Uuid>>("staff_tenant_id")?
            .map(TenantId::new),
        email: row.get("email")?,
        role: row.parse("role")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        last_signed_in_at: row.get("last_signed_in_at")?,
    })
}

/// The columns that [`read_member`] reads.
macro_rules! columns {
    () => {
        "staff_members.id, staff_members.tenant_id AS staff_tenant_id, staff_members.email, staff_members.role,
            staff_members.created_at, staff_members.updated_at, staff_members.last_signed_in_at"
    };
}

static LIST: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM staff_members WHERE (tenant_id = $1 OR tenant_id IS NULL) AND removed_at IS NULL ORDER BY created_at, id"
));

/// Returns the members who may work with a tenant, those of all tenants included, oldest first.
pub async fn list(home: &PooledConnection, tenant: TenantId) -> Result<Vec<StaffMember>, Error> {
    let rows = home.query(&LIST, &[&tenant.uuid()]).await?;
    rows.iter().map(read_member).collect()
}

static LIST_ALL: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM staff_members WHERE removed_at IS NULL ORDER BY created_at, id"
));

/// Returns all members, oldest first.
pub async fn list_all(home: &PooledConnection) -> Result<Vec<StaffMember>, Error> {
    let rows = home.query(&LIST_ALL, &[]).await?;
    rows.iter().map(read_member).collect()
}

static EMAILS: Sql = Sql::new(
    "SELECT id, email FROM staff_members
     WHERE (tenant_id = $1 OR tenant_id IS NULL) AND id = ANY ($2) AND email IS NOT NULL",
);

/// Returns the email addresses of these members, removed ones included.
pub async fn emails(
    home: &PooledConnection,
    tenant: TenantId,
    staff: &[StaffId],
) -> Result<Vec<(StaffId, String)>, Error> {
    let ids: Vec<Uuid> = staff.iter().map(|staff| staff.uuid()).collect();
    let rows = home.query(&EMAILS, &[&tenant.uuid(), &ids]).await?;
    rows.iter()
        .map(|row| Ok((StaffId::new(row.try_get("id")?), row.try_get("email")?)))
        .collect()
}

async fn query_one(
    tx: &Transaction<'_>,
    sql: &'static Sql,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Option<StaffMember>, Error> {
    let rows = tx.query(sql, params).await?;
    rows.first().map(read_member).transpose()
}

static LOCK: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM staff_members WHERE id = $1 AND removed_at IS NULL FOR NO KEY UPDATE"
));

/// Locks a member who is not removed.
pub async fn lock(tx: &Transaction<'_>, staff: StaffId) -> Result<Option<StaffMember>, Error> {
    query_one(tx, &LOCK, &[&staff.uuid()]).await
}

static LOCK_BY_EMAIL: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM staff_members
     WHERE tenant_id IS NOT DISTINCT FROM $1 AND email_key = $2 AND removed_at IS NULL FOR NO KEY UPDATE"
));

/// Locks the member of a tenant, or of all tenants, with this email address.
pub async fn lock_by_email(
    tx: &Transaction<'_>,
    tenant: Option<TenantId>,
    email: &Email,
) -> Result<Option<StaffMember>, Error> {
    let tenant = tenant.map(Id::uuid);
    query_one(tx, &LOCK_BY_EMAIL, &[&tenant, &email.normalized()]).await
}

static LOCK_WITHOUT_EMAIL: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM staff_members
     WHERE tenant_id IS NOT DISTINCT FROM $1 AND role = $2 AND email_key IS NULL AND removed_at IS NULL FOR NO KEY UPDATE"
));

/// Locks the member of a tenant, or of all tenants, who has this role and no email address.
pub(super) async fn lock_without_email(
    tx: &Transaction<'_>,
    tenant: Option<TenantId>,
    role: StaffRole,
) -> Result<Option<StaffMember>, Error> {
    let tenant = tenant.map(Id::uuid);
    query_one(tx, &LOCK_WITHOUT_EMAIL, &[&tenant, &role.as_str()]).await
}

static INSERT: Sql = Sql::new(
    "INSERT INTO staff_members (id, tenant_id, email, email_key, role, is_by_group, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $7)",
);

pub(super) async fn insert(
    tx: &Transaction<'_>,
    member: &StaffMember,
    email: Option<&Email>,
    is_by_group: bool,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 7] = [
        &member.id.uuid(),
        &member.tenant.map(Id::uuid),
        &member.email,
        &email.map(Email::normalized),
        &member.role.as_str(),
        &is_by_group,
        &member.created_at,
    ];
    tx.execute(&INSERT, &params).await?;
    Ok(())
}

static SET_INVITED: Sql =
    Sql::new("UPDATE staff_members SET is_by_group = false WHERE id = $1 AND is_by_group");

/// Stores that a member was invited, and so needs no group.
pub(super) async fn set_invited(tx: &Transaction<'_>, staff: StaffId) -> Result<(), Error> {
    tx.execute(&SET_INVITED, &[&staff.uuid()]).await?;
    Ok(())
}

static FIND_INVITED: Sql = Sql::new(
    "SELECT id FROM staff_members WHERE removed_at IS NULL AND email_key = $1 AND NOT is_by_group
     ORDER BY tenant_id IS NULL DESC, created_at, id LIMIT 1",
);

/// Returns the member who was invited with this email address: of all tenants, or else of the first tenant.
pub async fn find_invited(tx: &Transaction<'_>, email: &Email) -> Result<Option<StaffId>, Error> {
    let rows = tx.query(&FIND_INVITED, &[&email.normalized()]).await?;
    let id = rows.first().map(|row| row.try_get(0)).transpose()?;
    Ok(id.map(StaffId::new))
}

static SET_ROLE: Sql =
    Sql::new("UPDATE staff_members SET role = $2, updated_at = $3 WHERE id = $1");

pub(super) async fn set_role(
    tx: &Transaction<'_>,
    staff: StaffId,
    role: StaffRole,
    now: Timestamp,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&staff.uuid(), &role.as_str(), &now];
    tx.execute(&SET_ROLE, &params).await?;
    Ok(())
}

static REMOVE: Sql = Sql::new(
    "WITH links AS (DELETE FROM staff_links WHERE staff_id = $1),
        sessions AS (DELETE FROM staff_sessions WHERE staff_id = $1)
     UPDATE staff_members SET removed_at = $2, updated_at = $2 WHERE id = $1",
);

/// Marks a member as removed, and deletes the member's links and sessions.
pub(super) async fn remove(
    tx: &Transaction<'_>,
    staff: StaffId,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(&REMOVE, &[&staff.uuid(), &now]).await?;
    Ok(())
}

static INSERT_LINK: Sql =
    Sql::new("INSERT INTO staff_links (token_hash, staff_id, expires_at) VALUES ($1, $2, $3)");

pub(super) async fn insert_link(
    tx: &Transaction<'_>,
    staff: StaffId,
    hash: &[u8; 32],
    expires_at: Timestamp,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&hash.as_slice(), &staff.uuid(), &expires_at];
    tx.execute(&INSERT_LINK, &params).await?;
    Ok(())
}

static TAKE_LINK: Sql =
    Sql::new("DELETE FROM staff_links WHERE token_hash = $1 RETURNING staff_id, expires_at > $2");

/// Deletes a link. Returns its member if it has not expired. Of two concurrent calls, one finds it.
pub(super) async fn take_link(
    tx: &Transaction<'_>,
    hash: &[u8; 32],
    now: Timestamp,
) -> Result<Option<StaffId>, Error> {
    let rows = tx.query(&TAKE_LINK, &[&hash.as_slice(), &now]).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let (staff, is_valid): (Uuid, bool) = (row.try_get(0)?, row.try_get(1)?);
    Ok(is_valid.then(|| StaffId::new(staff)))
}

static INSERT_SESSION: Sql = Sql::new(
    "WITH signed_in AS (UPDATE staff_members SET last_signed_in_at = $4 WHERE id = $2)
     INSERT INTO staff_sessions (tenant_id, token_hash, staff_id, created_at, last_used_at, expires_at)
     VALUES ($3, $1, $2, $4, $4, $5)",
);

/// Inserts a session and the member's time of sign-in.
pub(super) async fn insert_session(
    tx: &Transaction<'_>,
    session: &StaffSession,
    tenant: TenantId,
    now: Timestamp,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 5] = [
        &session.token_hash.as_slice(),
        &session.member.id.uuid(),
        &tenant.uuid(),
        &now,
        &session.expires_at,
    ];
    tx.execute(&INSERT_SESSION, &params).await?;
    Ok(())
}

static DELETE_EXPIRED: Sql = Sql::new(
    "WITH links AS (DELETE FROM staff_links WHERE expires_at <= $1)
     DELETE FROM staff_sessions WHERE expires_at <= $1 OR last_used_at <= $2",
);

/// Deletes the links and sessions that have expired.
pub(super) async fn delete_expired(tx: &Transaction<'_>, now: Timestamp) -> Result<(), Error> {
    let idle_since = now.saturating_sub(SESSION_IDLE_TIMEOUT).unwrap_or(now);
    tx.execute(&DELETE_EXPIRED, &[&now, &idle_since]).await?;
    Ok(())
}

static DELETE_SESSION: Sql = Sql::new("DELETE FROM staff_sessions WHERE token_hash = $1");

pub(super) async fn delete_session(tx: &Transaction<'_>, hash: &[u8; 32]) -> Result<(), Error> {
    tx.execute(&DELETE_SESSION, &[&hash.as_slice()]).await?;
    Ok(())
}

static REPLACE_SESSION: Sql = Sql::new(
    "UPDATE staff_sessions SET token_hash = $2, tenant_id = $3 WHERE token_hash = $1 RETURNING token_hash",
);

/// Gives a session another secret and tenant. Returns whether there is such a session.
pub(super) async fn replace_session(
    tx: &Transaction<'_>,
    old: &[u8; 32],
    new: &[u8; 32],
    tenant: TenantId,
) -> Result<bool, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&old.as_slice(), &new.as_slice(), &tenant.uuid()];
    Ok(!tx.query(&REPLACE_SESSION, &params).await?.is_empty())
}

static FIND_SESSION: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    ", tenants.tenant_id, tenants.cell, tenants.default_currency, tenants.recent_sign_in,
            tenants.session_idle_timeout, tenants.session_absolute_timeout, tenants.lifecycle,
            tenants.lifecycle_since, tenants.unpaid_after_days, tenants.expired_after_days,
            tenants.self_service, staff_sessions.last_used_at, staff_sessions.expires_at
     FROM staff_sessions
     JOIN staff_members ON staff_members.id = staff_sessions.staff_id
     JOIN tenants ON tenants.tenant_id = staff_sessions.tenant_id
     WHERE staff_sessions.token_hash = $1 AND staff_sessions.expires_at > $2 AND staff_sessions.last_used_at > $3
       AND staff_members.removed_at IS NULL"
));
static TOUCH: Sql = Sql::new(
    "UPDATE staff_sessions SET last_used_at = $2 WHERE token_hash = $1 AND last_used_at < $2",
);

/// Returns the session with this hash that has not expired, and its tenant, and stores that it is used.
pub(in crate::auth) async fn use_session(
    home: &CellDatabase,
    hash: &[u8; 32],
    now: Timestamp,
) -> Result<Option<(Tenant, StaffSession)>, Error> {
    let idle_since = now.saturating_sub(SESSION_IDLE_TIMEOUT).unwrap_or(now);
    let params: [&(dyn ToSql + Sync); 3] = [&hash.as_slice(), &now, &idle_since];
    let Some(row) = home.read(&FIND_SESSION, &params).await? else {
        return Ok(None);
    };
    let columns = RowReader::new(&row);
    let last_used_at: Timestamp = columns.get("last_used_at")?;
    if now.duration_since(last_used_at) >= TOUCH_INTERVAL {
        let mut connection = home.connection().await?;
        let tx = connection.begin();
        tx.execute(&TOUCH, &[&hash.as_slice(), &now]).await?;
        tx.commit().await?;
    }
    let session = StaffSession {
        member: read_member(&row)?,
        token_hash: *hash,
        expires_at: columns.get("expires_at")?,
    };
    Ok(Some((read_tenant(&row)?, session)))
}
