//! SQL that finds a client by its API key, and the origins that clients allow.

use jiff::Timestamp;
use perennial_domain::{ClientId, Id};

use super::{Client, Tenant, tenants::table::read_tenant};
use crate::db::{CellDatabase, Error, RowReader, Sql};

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
pub(super) async fn find(
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
pub(super) async fn is_allowed_origin(home: &CellDatabase, origin: &str) -> Result<bool, Error> {
    let row = home.read(&IS_ALLOWED_ORIGIN, &[&origin]).await?;
    row.map_or(Ok(false), |row| Ok(row.try_get(0)?))
}
