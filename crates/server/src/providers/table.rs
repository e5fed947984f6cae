//! The table `identity_providers`: all its SQL.

use jiff::Timestamp;
use perennial_domain::{Id, TenantId};
use tokio_postgres::Row;

use super::{Provider, Sealed, Verify};
use crate::db::{Connection, Error, Sql, Transaction};

static LIST: Sql = Sql::new(
    "SELECT issuer, audiences, verify, endpoint, client_id, client_secret FROM identity_providers
     WHERE tenant_id = $1 ORDER BY created_at, issuer",
);

/// The providers of a tenant, oldest first.
pub async fn list(home: &Connection, tenant: TenantId) -> Result<Vec<Provider>, Error> {
    let rows = home.query(&LIST, &[&tenant.uuid()]).await?;
    rows.iter()
        .map(|row| {
            Ok(Provider {
                issuer: row.try_get("issuer")?,
                audiences: row.try_get("audiences")?,
                verify: verify(row)?,
            })
        })
        .collect()
}

fn verify(row: &Row) -> Result<Verify, Error> {
    Ok(match row.try_get("verify")? {
        "jwt" => Verify::Jwt,
        "introspection" => Verify::Introspection {
            endpoint: row.try_get("endpoint")?,
            client_id: row.try_get("client_id")?,
            secret: Sealed(row.try_get("client_secret")?),
        },
        "tokeninfo" => Verify::Tokeninfo {
            endpoint: row.try_get("endpoint")?,
        },
        "userinfo" => Verify::Userinfo,
        other => return Err(Error::Failed(format!("no such way to verify: {other}"))),
    })
}

static INSERT: Sql = Sql::new(
    "INSERT INTO identity_providers (tenant_id, issuer, audiences, verify, endpoint, client_id, client_secret, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
);

pub(super) async fn insert(
    tx: &Transaction<'_>,
    tenant: TenantId,
    provider: &Provider,
    now: Timestamp,
) -> Result<(), Error> {
    let (endpoint, client_id, secret) = match &provider.verify {
        Verify::Jwt | Verify::Userinfo => (None, None, None),
        Verify::Tokeninfo { endpoint } => (Some(endpoint), None, None),
        Verify::Introspection {
            endpoint,
            client_id,
            secret,
        } => (endpoint.as_ref(), Some(client_id), Some(&secret.0)),
    };
    let (issuer, audiences) = (&provider.issuer, &provider.audiences);
    let word = provider.verify.as_str();
    tx.execute(
        &INSERT,
        &[
            &tenant.uuid(),
            issuer,
            audiences,
            &word,
            &endpoint,
            &client_id,
            &secret,
            &now,
        ],
    )
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
