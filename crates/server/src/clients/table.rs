//! SQL of the tables `clients` and `client_values`.

use jiff::Timestamp;
use perennial_domain::{ClientId, ClientKind, Id, TenantId};
use serde::Serialize;
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use crate::db::{
    AgeKey, AgeOrder, ByAgeSql, CellDatabase, Error, PooledConnection, RowReader, Sql, TimeRange,
    Transaction, by_age,
};

/// A client with its settings.
#[derive(Debug, Clone)]
pub struct ClientRow {
    pub id: ClientId,
    pub kind: ClientKind,
    pub settings: ClientSettings,
    pub created_at: Timestamp,
    pub disabled_at: Option<Timestamp>,
    /// Number of valid API keys; two during a rotation.
    pub live_values: i64,
    /// Whether the key that the client was created with is still valid. The operator may have chosen it.
    pub has_first_key: bool,
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

/// Selects a tenant's clients that meet the conditions.
macro_rules! select {
    ($($conditions:tt)*) => {
        concat!(
            "SELECT id, kind, name, scopes, allow_addresses, allowed_origins, created_at, disabled_at,
        (SELECT count(*) FROM client_values AS value
         WHERE value.tenant_id = clients.tenant_id AND value.client_id = clients.id
           AND (value.expires_at IS NULL OR value.expires_at > now())) AS live_values,
        EXISTS (SELECT FROM client_values AS value
         WHERE value.tenant_id = clients.tenant_id AND value.client_id = clients.id
           AND value.created_at = clients.created_at
           AND (value.expires_at IS NULL OR value.expires_at > now())) AS has_first_key
     FROM clients WHERE tenant_id = $1 AND ",
            $($conditions)*
        )
    };
}

fn from_row(row: &Row) -> Result<ClientRow, Error> {
    let row = RowReader::new(row);
    Ok(ClientRow {
        id: ClientId::new(row.get("id")?),
        kind: row.parse("kind")?,
        settings: ClientSettings {
            name: row.get("name")?,
            scopes: row.get("scopes")?,
            allow_addresses: row.get("allow_addresses")?,
            allowed_origins: row.get("allowed_origins")?,
        },
        created_at: row.get("created_at")?,
        disabled_at: row.get("disabled_at")?,
        live_values: row.get("live_values")?,
        has_first_key: row.get("has_first_key")?,
    })
}

static FIND: Sql = Sql::new(select!("id = $2"));

/// Returns the client with this id, also if it is disabled.
pub(super) async fn find(
    home: &CellDatabase,
    tenant: TenantId,
    id: ClientId,
) -> Result<Option<ClientRow>, Error> {
    let row = home.read(&FIND, &[&tenant.uuid(), &id.uuid()]).await?;
    row.as_ref().map(from_row).transpose()
}

static LOCK: Sql = Sql::new(select!("id = $2 FOR NO KEY UPDATE"));

/// Locks a client until the end of the transaction and returns it.
pub(super) async fn lock(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: ClientId,
) -> Result<Option<ClientRow>, Error> {
    let rows = tx.query(&LOCK, &[&tenant.uuid(), &id.uuid()]).await?;
    rows.first().map(from_row).transpose()
}

static PAGE: ByAgeSql = by_age!(select,);

/// Returns up to `limit` clients after a key, disabled ones included.
pub(super) async fn page(
    home: &PooledConnection,
    tenant: TenantId,
    (order, after): (AgeOrder, Option<AgeKey>),
    limit: i64,
) -> Result<Vec<ClientRow>, Error> {
    let AgeKey { created_at, id } = after.unwrap_or_else(|| order.start(TimeRange::default()));
    let params: [&(dyn ToSql + Sync); 4] = [&tenant.uuid(), &created_at, &id, &limit];
    let rows = home.query(PAGE.in_order(order), &params).await?;
    rows.iter().map(from_row).collect()
}

static LIST: Sql = Sql::new(select!("true ORDER BY created_at, id"));

/// Returns all clients of a tenant, oldest first.
pub async fn list(home: &PooledConnection, tenant: TenantId) -> Result<Vec<ClientRow>, Error> {
    let rows = home.query(&LIST, &[&tenant.uuid()]).await?;
    rows.iter().map(from_row).collect()
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
    client: &ClientRow,
) -> Result<(), Error> {
    let settings = &client.settings;
    let params: [&(dyn ToSql + Sync); 8] = [
        &tenant.uuid(),
        &client.id.uuid(),
        &client.kind.as_str(),
        &settings.name,
        &settings.scopes,
        &settings.allow_addresses,
        &settings.allowed_origins,
        &client.created_at,
    ];
    tx.execute(&INSERT, &params).await?;
    Ok(())
}

static INSERT_VALUE: Sql = Sql::new(
    "INSERT INTO client_values (tenant_id, client_id, value_hash, created_at) VALUES ($1, $2, $3, $4)",
);

/// Inserts the hash of an API key. Fails with the constraint `client_values_hash` if a client has this key.
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

pub(super) static DISABLE: Sql =
    Sql::new("UPDATE clients SET disabled_at = $3 WHERE tenant_id = $1 AND id = $2");

// Selects rows by ctid: with a join by key, the planner would scan the table a second time.
static DELETE_EXPIRED: Sql = Sql::new(
    "DELETE FROM client_values
     WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM client_values
        WHERE expires_at <= now() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED))
     RETURNING tenant_id, client_id",
);

/// Deletes up to `limit` expired API keys, skipping rows that another worker has locked.
pub(super) async fn delete_expired(
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
