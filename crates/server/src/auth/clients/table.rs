//! SQL of the tables `clients` and `client_values`.

use jiff::Timestamp;
use perennial_domain::{ClientId, ClientKind, Id, TenantId};
use serde::Serialize;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::super::{Client, Tenant, tenants::table::read_tenant};
use crate::db::{CellDatabase, Error, PooledConnection, RowReader, Sql, Transaction};

static FIND: Sql = Sql::new(
    "SELECT tenants.tenant_id, tenants.cell, tenants.default_currency, tenants.recent_sign_in,
            tenants.session_idle_timeout, tenants.session_absolute_timeout, tenants.lifecycle,
            tenants.lifecycle_since, tenants.unpaid_after_days, tenants.expired_after_days,
            tenants.self_service,
            clients.id, clients.kind, clients.scopes, clients.allow_addresses, clients.allowed_origins,
            client_values.expires_at
     FROM client_values
     JOIN clients ON clients.tenant_id = client_values.tenant_id AND clients.id = client_values.client_id
     JOIN tenants ON tenants.tenant_id = client_values.tenant_id
     WHERE client_values.value_hash = $1
       AND (client_values.expires_at IS NULL OR client_values.expires_at > $2)
       AND clients.disabled_at IS NULL",
);

/// Returns the enabled client whose API key has this hash and has not expired, with the key's expiry.
pub(in crate::auth) async fn find(
    home: &CellDatabase,
    hash: &[u8; 32],
    now: Timestamp,
) -> Result<Option<(Tenant, Client, Option<Timestamp>)>, Error> {
    let Some(row) = home.read(&FIND, &[&hash.as_slice(), &now]).await? else {
        return Ok(None);
    };
    let columns = RowReader::new(&row);
    let client = Client {
        id: ClientId::new(columns.get("id")?),
        kind: columns.parse("kind")?,
        scopes: columns.parse_list("scopes")?,
        allow_addresses: columns.parse_list("allow_addresses")?,
        allowed_origins: columns.get("allowed_origins")?,
    };
    Ok(Some((
        read_tenant(&row)?,
        client,
        columns.get("expires_at")?,
    )))
}

// Materialized: otherwise the planner scans all clients, expecting an early match.
static IS_ALLOWED_ORIGIN: Sql = Sql::new(
    "WITH allowing AS MATERIALIZED (
        SELECT 1 FROM clients
        WHERE kind = 'publishable' AND disabled_at IS NULL AND allowed_origins @> ARRAY[$1]::text[])
     SELECT EXISTS (SELECT 1 FROM allowing)",
);

/// Returns whether a publishable client of any tenant allows this origin.
pub(in crate::auth) async fn is_allowed_origin(
    home: &CellDatabase,
    origin: &str,
) -> Result<bool, Error> {
    let row = home.read(&IS_ALLOWED_ORIGIN, &[&origin]).await?;
    row.map_or(Ok(false), |row| Ok(row.try_get(0)?))
}

/// A client with its settings, as listed for operators.
#[derive(Debug)]
pub struct ClientRow {
    pub id: ClientId,
    pub kind: String,
    pub name: String,
    pub scopes: Vec<String>,
    /// Networks that requests must come from; empty for any.
    pub allow_addresses: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub created_at: Timestamp,
    pub disabled_at: Option<Timestamp>,
    /// Number of valid API keys; two during a rotation.
    pub live_values: i64,
}

static LIST: Sql = Sql::new(
    "SELECT clients.id, kind, name, scopes, allow_addresses, allowed_origins, clients.created_at, disabled_at,
            (SELECT count(*) FROM client_values
             WHERE client_values.tenant_id = clients.tenant_id AND client_values.client_id = clients.id
               AND (expires_at IS NULL OR expires_at > $2)) AS live_values
     FROM clients WHERE clients.tenant_id = $1 ORDER BY clients.created_at, clients.id",
);

/// Returns the clients of a tenant, oldest first.
pub async fn list(
    home: &PooledConnection,
    tenant: TenantId,
    now: Timestamp,
) -> Result<Vec<ClientRow>, Error> {
    let rows = home.query(&LIST, &[&tenant.uuid(), &now]).await?;
    rows.iter()
        .map(|row| {
            Ok(ClientRow {
                id: ClientId::new(row.try_get("id")?),
                kind: row.try_get("kind")?,
                name: row.try_get("name")?,
                scopes: row.try_get("scopes")?,
                allow_addresses: row.try_get("allow_addresses")?,
                allowed_origins: row.try_get("allowed_origins")?,
                created_at: row.try_get("created_at")?,
                disabled_at: row.try_get("disabled_at")?,
                live_values: row.try_get("live_values")?,
            })
        })
        .collect()
}

static NAMES: Sql = Sql::new("SELECT id, name FROM clients WHERE tenant_id = $1 AND id = ANY ($2)");

/// Returns the names of these clients, disabled ones included.
pub async fn names(
    home: &PooledConnection,
    tenant: TenantId,
    clients: &[ClientId],
) -> Result<Vec<(ClientId, String)>, Error> {
    let ids: Vec<Uuid> = clients.iter().map(|client| client.uuid()).collect();
    let rows = home.query(&NAMES, &[&tenant.uuid(), &ids]).await?;
    rows.iter()
        .map(|row| Ok((ClientId::new(row.try_get("id")?), row.try_get("name")?)))
        .collect()
}

static INSERT: Sql = Sql::new(
    "INSERT INTO clients (tenant_id, id, kind, name, scopes, allow_addresses, allowed_origins, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
);

pub(super) async fn insert(
    tx: &Transaction<'_>,
    tenant: TenantId,
    client: &Client,
    name: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let scopes: Vec<&str> = client.scopes.iter().map(|scope| scope.as_str()).collect();
    let addresses: Vec<String> = client
        .allow_addresses
        .iter()
        .map(ToString::to_string)
        .collect();
    let kind = client.kind.as_str();
    let origins = &client.allowed_origins;
    let params: [&(dyn ToSql + Sync); 8] = [
        &tenant.uuid(),
        &client.id.uuid(),
        &kind,
        &name,
        &scopes,
        &addresses,
        origins,
        &now,
    ];
    tx.execute(&INSERT, &params).await?;
    Ok(())
}

static INSERT_VALUE: Sql = Sql::new(
    "INSERT INTO client_values (tenant_id, client_id, value_hash, created_at) VALUES ($1, $2, $3, $4)",
);

pub(super) async fn insert_value(
    tx: &Transaction<'_>,
    tenant: TenantId,
    client: ClientId,
    hash: &[u8; 32],
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(
        &INSERT_VALUE,
        &[&tenant.uuid(), &client.uuid(), &hash.as_slice(), &now],
    )
    .await?;
    Ok(())
}

/// The settings of a client that can change, as stored and as recorded in events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClientSettings {
    pub name: String,
    pub scopes: Vec<String>,
    /// Networks that requests must come from; empty for any.
    pub allow_addresses: Vec<String>,
    pub allowed_origins: Vec<String>,
}

/// A client locked until the end of the transaction.
#[derive(Debug)]
pub(super) struct LockedClient {
    pub kind: ClientKind,
    pub is_disabled: bool,
    /// Whether the key that the client was created with is still valid. The operator may have chosen it.
    pub has_first_key: bool,
    pub settings: ClientSettings,
}

static LOCK: Sql = Sql::new(
    "SELECT kind, disabled_at IS NOT NULL AS is_disabled, name, scopes, allow_addresses, allowed_origins,
        EXISTS (SELECT FROM client_values
                WHERE client_values.tenant_id = $1 AND client_id = $2 AND client_values.created_at = clients.created_at
                  AND (expires_at IS NULL OR expires_at > $3)) AS has_first_key
     FROM clients WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE",
);

/// Locks a client and returns its settings.
pub(super) async fn lock(
    tx: &Transaction<'_>,
    tenant: TenantId,
    client: ClientId,
    now: Timestamp,
) -> Result<Option<LockedClient>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &client.uuid(), &now];
    let rows = tx.query(&LOCK, &params).await?;
    let Some(row) = rows.first().map(RowReader::new) else {
        return Ok(None);
    };
    Ok(Some(LockedClient {
        kind: row.parse("kind")?,
        is_disabled: row.get("is_disabled")?,
        has_first_key: row.get("has_first_key")?,
        settings: ClientSettings {
            name: row.get("name")?,
            scopes: row.get("scopes")?,
            allow_addresses: row.get("allow_addresses")?,
            allowed_origins: row.get("allowed_origins")?,
        },
    }))
}

static UPDATE: Sql = Sql::new(
    "UPDATE clients SET name = $3, scopes = $4, allow_addresses = $5, allowed_origins = $6
     WHERE tenant_id = $1 AND id = $2",
);

/// Updates the settings of a locked client.
pub(super) async fn update(
    tx: &Transaction<'_>,
    tenant: TenantId,
    client: ClientId,
    settings: &ClientSettings,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 6] = [
        &tenant.uuid(),
        &client.uuid(),
        &settings.name,
        &settings.scopes,
        &settings.allow_addresses,
        &settings.allowed_origins,
    ];
    tx.execute(&UPDATE, &params).await?;
    Ok(())
}

// The current key gets an expiry; older keys, which have one already, expire now. So at most two
// keys are valid.
static EXPIRE_VALUES: Sql = Sql::new(
    "UPDATE client_values SET expires_at = CASE WHEN expires_at IS NULL THEN $3 ELSE least(expires_at, $4) END
     WHERE tenant_id = $1 AND client_id = $2",
);

pub(super) async fn expire_values(
    tx: &Transaction<'_>,
    tenant: TenantId,
    client: ClientId,
    current_expires_at: Timestamp,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(
        &EXPIRE_VALUES,
        &[&tenant.uuid(), &client.uuid(), &current_expires_at, &now],
    )
    .await?;
    Ok(())
}

static DISABLE: Sql =
    Sql::new("UPDATE clients SET disabled_at = $3 WHERE tenant_id = $1 AND id = $2");

pub(super) async fn disable(
    tx: &Transaction<'_>,
    tenant: TenantId,
    client: ClientId,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(&DISABLE, &[&tenant.uuid(), &client.uuid(), &now])
        .await?;
    Ok(())
}

// Selects rows by ctid: with a join by key, the planner would scan the table a second time.
static DELETE_EXPIRED: Sql = Sql::new(
    "DELETE FROM client_values
     WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM client_values
        WHERE expires_at <= now() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED))
     RETURNING tenant_id, client_id",
);

/// Deletes up to `limit` expired API keys, skipping rows that another worker has locked.
pub(in crate::auth) async fn delete_expired(
    tx: &Transaction<'_>,
    limit: i64,
) -> Result<Vec<(TenantId, ClientId)>, Error> {
    let rows = tx.query(&DELETE_EXPIRED, &[&limit]).await?;
    rows.iter()
        .map(|row| {
            let (tenant, client): (Uuid, Uuid) = (row.try_get(0)?, row.try_get(1)?);
            Ok((TenantId::new(tenant), ClientId::new(client)))
        })
        .collect()
}
