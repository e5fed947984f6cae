//! The tables `clients` and `client_values`: all their SQL.

use jiff::Timestamp;
use perennial_domain::{ClientId, ClientKind, Id, TenantId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::super::{Client, Tenant, tenants::table::tenant};
use crate::db::{Connection, Engine, Error, Sql, Transaction, row::Reader};

static FIND: Sql = Sql::new(
    "SELECT tenants.tenant_id, tenants.cell, tenants.default_currency, tenants.recent_sign_in, tenants.lifecycle,
            tenants.lifecycle_since, tenants.unpaid_after_days, tenants.expired_after_days,
            clients.id, clients.kind, clients.scopes, clients.allow_addresses, clients.allowed_origins
     FROM client_values
     JOIN clients ON clients.tenant_id = client_values.tenant_id AND clients.id = client_values.client_id
     JOIN tenants ON tenants.tenant_id = client_values.tenant_id
     WHERE client_values.value_hash = $1
       AND (client_values.expires_at IS NULL OR client_values.expires_at > $2)
       AND clients.disabled_at IS NULL",
);

/// Who has the header value with this hash, if it is live at `now`.
pub(in super::super) async fn find(
    home: &Engine,
    hash: &[u8; 32],
    now: Timestamp,
) -> Result<Option<(Tenant, Client)>, Error> {
    let Some(row) = home.read(&FIND, &[&hash.as_slice(), &now]).await? else {
        return Ok(None);
    };
    let columns = Reader::of(&row);
    let client = Client {
        id: ClientId::new(columns.get("id")?),
        kind: columns.text("kind")?,
        scopes: columns.texts("scopes")?,
        allow_addresses: columns.texts("allow_addresses")?,
        allowed_origins: columns.get("allowed_origins")?,
    };
    Ok(Some((tenant(&row)?, client)))
}

// Materialized, because otherwise the planner hopes to come across one soon, and reads all clients.
static IS_PAGE: Sql = Sql::new(
    "WITH pages AS MATERIALIZED (
        SELECT 1 FROM clients
        WHERE kind = 'publishable' AND disabled_at IS NULL AND allowed_origins @> ARRAY[$1]::text[])
     SELECT EXISTS (SELECT 1 FROM pages)",
);

/// Whether any publishable client, of whatever tenant, may be used by pages of this origin.
pub(in super::super) async fn is_page_of_a_client(
    home: &Engine,
    origin: &str,
) -> Result<bool, Error> {
    let row = home.read(&IS_PAGE, &[&origin]).await?;
    row.map_or(Ok(false), |row| Ok(row.try_get(0)?))
}

/// A client as it is shown in a list.
#[derive(Debug)]
pub struct Listed {
    /// Its identifier.
    pub id: ClientId,
    /// Where it runs.
    pub kind: String,
    /// What the operator calls it.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// From where it may call; empty for anywhere.
    pub allow_addresses: Vec<String>,
    /// Web pages that may use it.
    pub allowed_origins: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was switched off, if it was.
    pub disabled_at: Option<Timestamp>,
    /// How many header values it has now: two while it is being rotated.
    pub live_values: i64,
}

static LIST: Sql = Sql::new(
    "SELECT clients.id, kind, name, scopes, allow_addresses, allowed_origins, clients.created_at, disabled_at,
            (SELECT count(*) FROM client_values
             WHERE client_values.tenant_id = clients.tenant_id AND client_values.client_id = clients.id
               AND (expires_at IS NULL OR expires_at > $2)) AS live_values
     FROM clients WHERE clients.tenant_id = $1 ORDER BY clients.created_at, clients.id",
);

/// The clients of a tenant, oldest first.
pub async fn list(
    home: &Connection,
    tenant: TenantId,
    now: Timestamp,
) -> Result<Vec<Listed>, Error> {
    let rows = home.query(&LIST, &[&tenant.uuid(), &now]).await?;
    rows.iter()
        .map(|row| {
            Ok(Listed {
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

static LOCK: Sql = Sql::new(
    "SELECT kind, disabled_at IS NOT NULL AS disabled FROM clients WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE",
);

/// The kind of a client, and whether it is disabled; nobody else changes it until the end of the
/// transaction. `None` if there is no such client.
pub(super) async fn lock(
    tx: &Transaction<'_>,
    tenant: TenantId,
    client: ClientId,
) -> Result<Option<(ClientKind, bool)>, Error> {
    let rows = tx.query(&LOCK, &[&tenant.uuid(), &client.uuid()]).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    Ok(Some((
        Reader::of(row).text("kind")?,
        row.try_get("disabled")?,
    )))
}

// The value that has no end gets one; older ones, which have one already, end now: two live at most.
static EXPIRE_VALUES: Sql = Sql::new(
    "UPDATE client_values SET expires_at = CASE WHEN expires_at IS NULL THEN $3 ELSE least(expires_at, $4) END
     WHERE tenant_id = $1 AND client_id = $2",
);

pub(super) async fn expire_values(
    tx: &Transaction<'_>,
    tenant: TenantId,
    client: ClientId,
    current_ends: Timestamp,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(
        &EXPIRE_VALUES,
        &[&tenant.uuid(), &client.uuid(), &current_ends, &now],
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

// By their place in the table: joined by their key, the planner reads the whole table once more.
static REMOVE_EXPIRED: Sql = Sql::new(
    "DELETE FROM client_values
     WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM client_values
        WHERE expires_at <= now() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED))
     RETURNING tenant_id, client_id",
);

/// Removes up to `limit` values that have expired, skipping those that another worker has in hand.
pub(in super::super) async fn remove_expired(
    tx: &Transaction<'_>,
    limit: i64,
) -> Result<Vec<(TenantId, ClientId)>, Error> {
    let rows = tx.query(&REMOVE_EXPIRED, &[&limit]).await?;
    rows.iter()
        .map(|row| {
            let (tenant, client): (Uuid, Uuid) = (row.try_get(0)?, row.try_get(1)?);
            Ok((TenantId::new(tenant), ClientId::new(client)))
        })
        .collect()
}
