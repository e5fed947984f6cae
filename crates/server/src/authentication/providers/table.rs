//! The table `identity_providers`: all its SQL.

use jiff::Timestamp;
use perennial_domain::{Id, TenantId};

use super::Provider;
use crate::db::{Connection, Error, Sql, Transaction};

static LIST: Sql = Sql::new(
    "SELECT issuer, audiences FROM identity_providers WHERE tenant_id = $1 ORDER BY created_at, issuer",
);

/// The providers of a tenant, oldest first.
pub async fn list(home: &Connection, tenant: TenantId) -> Result<Vec<Provider>, Error> {
    let rows = home.query(&LIST, &[&tenant.uuid()]).await?;
    rows.iter()
        .map(|row| {
            Ok(Provider {
                issuer: row.try_get("issuer")?,
                audiences: row.try_get("audiences")?,
            })
        })
        .collect()
}

static INSERT: Sql = Sql::new(
    "INSERT INTO identity_providers (tenant_id, issuer, audiences, created_at) VALUES ($1, $2, $3, $4)",
);

pub(super) async fn insert(
    tx: &Transaction<'_>,
    tenant: TenantId,
    provider: &Provider,
    now: Timestamp,
) -> Result<(), Error> {
    let Provider { issuer, audiences } = provider;
    tx.execute(&INSERT, &[&tenant.uuid(), issuer, audiences, &now])
        .await?;
    Ok(())
}

static REMOVE: Sql =
    Sql::new("DELETE FROM identity_providers WHERE tenant_id = $1 AND issuer = $2");

/// Whether there was such a provider.
pub(super) async fn remove(
    tx: &Transaction<'_>,
    tenant: TenantId,
    issuer: &str,
) -> Result<bool, Error> {
    Ok(tx.execute(&REMOVE, &[&tenant.uuid(), &issuer]).await? > 0)
}
