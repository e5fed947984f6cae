//! SQL that reads and replaces the sealed secrets of the home cell: private signing keys, and client
//! secrets at identity providers.

use perennial_domain::{Id, TenantId};
use uuid::Uuid;

use crate::{
    crypto::SealedSecret,
    db::{Error, PooledConnection, Sql},
};

static LIST_SIGNING_KEYS: Sql = Sql::new("SELECT id, private_key FROM signing_keys ORDER BY id");

/// Returns all private signing keys.
pub(super) async fn list_signing_keys(
    home: &PooledConnection,
) -> Result<Vec<(Uuid, SealedSecret)>, Error> {
    let rows = home.query(&LIST_SIGNING_KEYS, &[]).await?;
    rows.iter()
        .map(|row| Ok((row.try_get(0)?, SealedSecret(row.try_get(1)?))))
        .collect()
}

static UPDATE_SIGNING_KEY: Sql =
    Sql::new("UPDATE signing_keys SET private_key = $3 WHERE id = $1 AND private_key = $2");

/// Replaces a sealed private key, unless it has changed.
pub(super) async fn update_signing_key(
    home: &PooledConnection,
    id: Uuid,
    old: &SealedSecret,
    new: &SealedSecret,
) -> Result<(), Error> {
    home.query(&UPDATE_SIGNING_KEY, &[&id, &old.0, &new.0])
        .await?;
    Ok(())
}

static LIST_CLIENT_SECRETS: Sql = Sql::new(
    "SELECT issuer, client_secret FROM identity_providers
     WHERE tenant_id = $1 AND client_secret IS NOT NULL ORDER BY issuer",
);

/// Returns the issuers and client secrets of a tenant's identity providers.
pub(super) async fn list_client_secrets(
    home: &PooledConnection,
    tenant: TenantId,
) -> Result<Vec<(String, SealedSecret)>, Error> {
    let rows = home.query(&LIST_CLIENT_SECRETS, &[&tenant.uuid()]).await?;
    rows.iter()
        .map(|row| Ok((row.try_get(0)?, SealedSecret(row.try_get(1)?))))
        .collect()
}

static UPDATE_CLIENT_SECRET: Sql = Sql::new(
    "UPDATE identity_providers SET client_secret = $4 WHERE tenant_id = $1 AND issuer = $2 AND client_secret = $3",
);

/// Replaces a sealed client secret, unless it has changed.
pub(super) async fn update_client_secret(
    home: &PooledConnection,
    tenant: TenantId,
    issuer: &str,
    old: &SealedSecret,
    new: &SealedSecret,
) -> Result<(), Error> {
    home.query(
        &UPDATE_CLIENT_SECRET,
        &[&tenant.uuid(), &issuer, &old.0, &new.0],
    )
    .await?;
    Ok(())
}
