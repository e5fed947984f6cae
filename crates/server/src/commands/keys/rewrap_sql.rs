//! SQL that reads and replaces sealed secrets: private signing keys and client secrets at identity providers in
//! the home cell, and secrets of webhook endpoints in the cell of their tenant.

use perennial_domain::{Id, TenantId, WebhookEndpointId};
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

/// The columns with a secret of a webhook endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WebhookSecretColumn {
    Present,
    Previous,
}

// The previous secret too: its column is overwritten by the next rotation, but not when it expires.
static LIST_WEBHOOK_SECRETS: Sql = Sql::new(
    "SELECT id, secret, previous_secret FROM webhook_endpoints WHERE tenant_id = $1 ORDER BY id",
);

/// Returns the secrets of a tenant's webhook endpoints, also of deleted ones.
pub(super) async fn list_webhook_secrets(
    connection: &PooledConnection,
    tenant: TenantId,
) -> Result<Vec<(WebhookEndpointId, WebhookSecretColumn, SealedSecret)>, Error> {
    let rows = connection
        .query(&LIST_WEBHOOK_SECRETS, &[&tenant.uuid()])
        .await?;
    let mut secrets = Vec::new();
    for row in rows {
        let id = WebhookEndpointId::new(row.try_get(0)?);
        let present = SealedSecret(row.try_get(1)?);
        secrets.push((id, WebhookSecretColumn::Present, present));
        if let Some(previous) = row.try_get(2)? {
            let previous = SealedSecret(previous);
            secrets.push((id, WebhookSecretColumn::Previous, previous));
        }
    }
    Ok(secrets)
}

static UPDATE_WEBHOOK_SECRET: Sql = Sql::new(
    "UPDATE webhook_endpoints SET secret = $4 WHERE tenant_id = $1 AND id = $2 AND secret = $3",
);
static UPDATE_PREVIOUS_WEBHOOK_SECRET: Sql = Sql::new(
    "UPDATE webhook_endpoints SET previous_secret = $4 WHERE tenant_id = $1 AND id = $2 AND previous_secret = $3",
);

/// Replaces a sealed secret of a webhook endpoint, unless it has changed.
pub(super) async fn update_webhook_secret(
    connection: &PooledConnection,
    (tenant, id): (TenantId, WebhookEndpointId),
    column: WebhookSecretColumn,
    old: &SealedSecret,
    new: &SealedSecret,
) -> Result<(), Error> {
    let sql = match column {
        WebhookSecretColumn::Present => &UPDATE_WEBHOOK_SECRET,
        WebhookSecretColumn::Previous => &UPDATE_PREVIOUS_WEBHOOK_SECRET,
    };
    connection
        .query(sql, &[&tenant.uuid(), &id.uuid(), &old.0, &new.0])
        .await?;
    Ok(())
}
