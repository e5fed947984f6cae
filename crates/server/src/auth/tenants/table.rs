//! SQL of the table `tenants`.

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{Currency, Dunning, Id, Lifecycle, SessionLifetimes, SingleLine, TenantId};
use tokio_postgres::{Row, types::ToSql};

use super::{LifecycleSettings, Tenant, TenantSettings};
use crate::db::{CellDatabase, Error, PooledConnection, RowReader, Sql, Transaction};

/// The channel of changed clients and tenants. The payload is the tenant's id, or empty for all
/// tenants, or [`STAFF_PAYLOAD`] if no client has changed.
pub(in crate::auth) const CHANNEL: &str = "perennial_clients";

/// The payload of changed staff members and sessions.
pub(in crate::auth) const STAFF_PAYLOAD: &str = "staff";

static NOTIFY: Sql = Sql::new("SELECT pg_notify('perennial_clients', $1)");

/// Tells all instances, on commit, to drop the clients of a tenant, or of all tenants, from their
/// caches. Every change of what a lookup by API key returns must call this.
pub async fn notify_clients_changed(
    tx: &Transaction<'_>,
    tenant: Option<TenantId>,
) -> Result<(), Error> {
    let payload = tenant.map_or_else(String::new, |tenant| tenant.uuid().to_string());
    tx.query(&NOTIFY, &[&payload]).await?;
    Ok(())
}

/// Tells all instances, on commit, to drop the cached sessions of staff members. Every change of what a lookup by cookie
/// returns must call this.
pub(in crate::auth) async fn notify_staff_changed(tx: &Transaction<'_>) -> Result<(), Error> {
    tx.query(&NOTIFY, &[&STAFF_PAYLOAD]).await?;
    Ok(())
}

pub(in crate::auth) fn read_tenant(row: &Row) -> Result<Tenant, Error> {
    let row = RowReader::new(row);
    Ok(Tenant {
        id: TenantId::new(row.get("tenant_id")?),
        cell: row.get("cell")?,
        default_currency: row.parse("default_currency")?,
        recent_sign_in: row.get("recent_sign_in")?,
        session_lifetimes: SessionLifetimes {
            idle_timeout: read_seconds(&row, "session_idle_timeout")?,
            absolute_timeout: read_seconds(&row, "session_absolute_timeout")?,
        },
        lifecycle: read_lifecycle(&row)?,
        self_service: row.get("self_service")?,
    })
}

fn read_seconds(row: &RowReader<'_>, column: &str) -> Result<SignedDuration, Error> {
    let seconds: i32 = row.get(column)?;
    Ok(SignedDuration::from_secs(i64::from(seconds)))
}

fn read_lifecycle(row: &RowReader<'_>) -> Result<Lifecycle, Error> {
    let managed = row.get::<&str>("lifecycle")? == "managed";
    Ok(if managed {
        Lifecycle::Managed(Dunning {
            since: row.get("lifecycle_since")?,
            unpaid_after: row.integer("unpaid_after_days")?,
            expired_after: row.integer("expired_after_days")?,
        })
    } else {
        Lifecycle::Recorded
    })
}

static LIST: Sql = Sql::new(
    "SELECT tenant_id, name, cell, default_currency, recent_sign_in, session_idle_timeout, session_absolute_timeout,
            lifecycle, lifecycle_since, unpaid_after_days, expired_after_days, self_service, created_at
     FROM tenants ORDER BY created_at, tenant_id",
);

/// Returns all tenants with their names, oldest first.
pub async fn list(home: &PooledConnection) -> Result<Vec<(Tenant, String)>, Error> {
    let rows = home.query(&LIST, &[]).await?;
    rows.iter()
        .map(|row| Ok((read_tenant(row)?, row.try_get("name")?)))
        .collect()
}

static LIST_IDS: Sql = Sql::new("SELECT tenant_id FROM tenants ORDER BY created_at, tenant_id");

/// Returns the ids of all tenants, oldest first.
pub(in crate::auth) async fn list_ids(tx: &Transaction<'_>) -> Result<Vec<TenantId>, Error> {
    let rows = tx.query(&LIST_IDS, &[]).await?;
    rows.iter()
        .map(|row| Ok(TenantId::new(row.try_get(0)?)))
        .collect()
}

static LOCK: Sql = Sql::new("LOCK TABLE tenants IN SHARE ROW EXCLUSIVE MODE");
static COUNT: Sql = Sql::new("SELECT count(*) FROM tenants");

/// Locks the table against inserts and returns whether it is empty.
pub(super) async fn lock_and_check_empty(tx: &Transaction<'_>) -> Result<bool, Error> {
    tx.execute(&LOCK, &[]).await?;
    let rows = tx.query(&COUNT, &[]).await?;
    let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    Ok(count == 0)
}

static INSERT: Sql = Sql::new(
    "INSERT INTO tenants (tenant_id, name, cell, default_currency, created_at) VALUES ($1, $2, $3, $4, $5)",
);

pub(super) async fn insert(
    tx: &Transaction<'_>,
    tenant: &Tenant,
    name: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let currency = tenant.default_currency.code();
    tx.execute(
        &INSERT,
        &[&tenant.id.uuid(), &name, &tenant.cell, &currency, &now],
    )
    .await?;
    Ok(())
}

/// What refers to a tenant in the home cell.
#[derive(Debug)]
pub(super) struct TenantReferences {
    /// The number of all tenants.
    pub tenants: i64,
    pub enabled_clients: i64,
    pub providers: i64,
}

static COUNT_REFERENCES: Sql = Sql::new(
    "SELECT (SELECT count(*) FROM tenants) AS tenants,
        (SELECT count(*) FROM clients WHERE tenant_id = $1 AND disabled_at IS NULL) AS enabled_clients,
        (SELECT count(*) FROM identity_providers WHERE tenant_id = $1) AS providers",
);

static LOCK_ROW: Sql = Sql::new("SELECT 1 FROM tenants WHERE tenant_id = $1 FOR UPDATE");

/// Locks the table of tenants, so that two deletions cannot remove the last two tenants, and the
/// tenant's row, so that no client or identity provider can be added. Counts what refers to the tenant.
pub(super) async fn lock_for_delete(
    tx: &Transaction<'_>,
    tenant: TenantId,
) -> Result<TenantReferences, Error> {
    tx.execute(&LOCK, &[]).await?;
    tx.query(&LOCK_ROW, &[&tenant.uuid()]).await?;
    let rows = tx.query(&COUNT_REFERENCES, &[&tenant.uuid()]).await?;
    let row = rows.first();
    let row = row.ok_or_else(|| Error::Internal("counted no rows".to_owned()))?;
    Ok(TenantReferences {
        tenants: row.try_get("tenants")?,
        enabled_clients: row.try_get("enabled_clients")?,
        providers: row.try_get("providers")?,
    })
}

static DELETE_CLIENT_VALUES: Sql = Sql::new("DELETE FROM client_values WHERE tenant_id = $1");
static DELETE_CLIENTS: Sql = Sql::new("DELETE FROM clients WHERE tenant_id = $1");
static DELETE_STAFF: Sql = Sql::new("DELETE FROM staff_members WHERE tenant_id = $1");
static DELETE: Sql = Sql::new("DELETE FROM tenants WHERE tenant_id = $1");

/// Deletes a locked tenant, its clients and its staff members.
pub(super) async fn delete(tx: &Transaction<'_>, tenant: TenantId) -> Result<(), Error> {
    let statements = [
        &DELETE_CLIENT_VALUES,
        &DELETE_CLIENTS,
        &DELETE_STAFF,
        &DELETE,
    ];
    for sql in statements {
        tx.execute(sql, &[&tenant.uuid()]).await?;
    }
    Ok(())
}

static UPDATE: Sql = Sql::new(
    "UPDATE tenants SET default_currency = coalesce($2, default_currency), name = coalesce($3, name),
        recent_sign_in = coalesce($4, recent_sign_in),
        session_idle_timeout = coalesce($5, session_idle_timeout),
        session_absolute_timeout = coalesce($6, session_absolute_timeout), self_service = coalesce($7, self_service)
     WHERE tenant_id = $1",
);

/// Changes the settings other than those of the lifecycle.
pub(super) async fn update(
    tx: &Transaction<'_>,
    tenant: TenantId,
    settings: &TenantSettings,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 7] = [
        &tenant.uuid(),
        &settings.default_currency.map(Currency::code),
        &settings.name.as_ref().map(SingleLine::as_str),
        &settings.recent_sign_in,
        &settings.session_idle_timeout,
        &settings.session_absolute_timeout,
        &settings.self_service,
    ];
    tx.execute(&UPDATE, &params).await?;
    Ok(())
}

static UPDATE_LIFECYCLE: Sql = Sql::new(
    "UPDATE tenants SET lifecycle = coalesce($2, lifecycle), unpaid_after_days = coalesce($3, unpaid_after_days),
        expired_after_days = coalesce($4, expired_after_days),
        lifecycle_since = CASE WHEN $2 = 'managed' AND lifecycle <> 'managed' THEN $5 ELSE lifecycle_since END
     WHERE tenant_id = $1",
);

/// Changes the lifecycle settings. `lifecycle_since` changes only at a switch from recorded to managed,
/// because a change of it makes the service start to manage every subscription again.
pub(super) async fn update_lifecycle(
    tx: &Transaction<'_>,
    tenant: TenantId,
    settings: &LifecycleSettings,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 5] = [
        &tenant.uuid(),
        &settings.mode(),
        &settings.unpaid_after,
        &settings.expired_after,
        &settings.since,
    ];
    tx.execute(&UPDATE_LIFECYCLE, &params).await?;
    Ok(())
}

static CAP_LIFECYCLE_SINCE: Sql =
    Sql::new("UPDATE tenants SET lifecycle_since = $1 WHERE lifecycle_since > $1");

/// Sets every `lifecycle_since` after `now` to `now`.
pub(super) async fn cap_lifecycle_since(tx: &Transaction<'_>, now: Timestamp) -> Result<(), Error> {
    tx.execute(&CAP_LIFECYCLE_SINCE, &[&now]).await?;
    Ok(())
}

static LIST_MANAGED: Sql = Sql::new(
    "SELECT tenant_id, lifecycle, lifecycle_since, unpaid_after_days, expired_after_days FROM tenants
     WHERE lifecycle = 'managed'",
);

/// Returns the tenants with a managed lifecycle, and its settings.
pub async fn list_managed(home: &CellDatabase) -> Result<Vec<(TenantId, Lifecycle)>, Error> {
    let rows = home.read_all(&LIST_MANAGED, &[]).await?;
    rows.iter()
        .map(|row| {
            Ok((
                TenantId::new(row.try_get("tenant_id")?),
                read_lifecycle(&RowReader::new(row))?,
            ))
        })
        .collect()
}

static FIND_LIFECYCLE: Sql = Sql::new(
    "SELECT lifecycle, lifecycle_since, unpaid_after_days, expired_after_days FROM tenants WHERE tenant_id = $1",
);

/// Returns the lifecycle of a tenant's subscriptions.
pub async fn find_lifecycle(home: &CellDatabase, tenant: TenantId) -> Result<Lifecycle, Error> {
    let row = home.read(&FIND_LIFECYCLE, &[&tenant.uuid()]).await?;
    row.map_or(Ok(Lifecycle::Recorded), |row| {
        read_lifecycle(&RowReader::new(&row))
    })
}

static MAX_SESSION_LIFETIME: Sql =
    Sql::new("SELECT max(session_absolute_timeout)::float8 FROM tenants");

/// Returns the longest absolute timeout of sessions, in seconds. No session is older.
pub async fn max_session_lifetime(home: &CellDatabase) -> Result<f64, Error> {
    let row = home.read(&MAX_SESSION_LIFETIME, &[]).await?;
    let max = row.map_or(Ok(None), |row| row.try_get(0))?;
    Ok(max.unwrap_or(SessionLifetimes::DEFAULT.absolute_timeout.as_secs_f64()))
}
