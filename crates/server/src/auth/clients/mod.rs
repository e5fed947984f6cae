//! Creates, rotates and disables clients and their API keys.
//!
//! An API key is the value of the `client-id` header. Only its hash is stored, in `client_values`.
//! During a rotation a client has two valid keys.

pub mod table;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::SignedDuration;
use perennial_domain::{ClientId, ClientKind, EventKind, Id, SingleLine, TenantId};
use secrecy::SecretString;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Client, SystemContext};
use crate::{
    db::{Error, PooledConnection, Transaction},
    randomness::Randomness,
};

/// Hashes an API key for storage. Keys have 256 random bits (or are not secret at all), so a
/// single round of SHA-256 is enough.
pub(super) fn hash(api_key: &[u8]) -> [u8; 32] {
    Sha256::digest(api_key).into()
}

fn generate_api_key(kind: ClientKind) -> String {
    let random: [u8; 32] = Randomness.bytes();
    format!("{}{}", kind.prefix(), BASE64_URL_SAFE_NO_PAD.encode(random))
}

/// Creates a client with `api_key`, or with a generated key if that is `None`. Returns the key, which
/// cannot be read again.
pub async fn create(
    home: &mut PooledConnection,
    context: SystemContext,
    tenant: TenantId,
    client: &Client,
    name: &SingleLine<200>,
    api_key: Option<&str>,
) -> Result<SecretString, Error> {
    let SystemContext { now, .. } = context;
    let api_key = api_key.map_or_else(|| generate_api_key(client.kind), str::to_owned);
    let tx = home.begin();
    table::insert(&tx, tenant, client, name.as_str(), now).await?;
    table::insert_value(&tx, tenant, client.id, &hash(api_key.as_bytes()), now).await?;
    let data = json!({
        "kind": client.kind.as_str(),
        "name": name.as_str(),
        "scopes": client.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>(),
        "allow_addresses": client.allow_addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "allowed_origins": client.allowed_origins,
    });
    context
        .record(
            &tx,
            tenant,
            client.id.uuid(),
            EventKind::ClientCreated,
            &data,
        )
        .await?;
    tx.commit().await?;
    Ok(api_key.into())
}

/// The result of changing a client.
#[derive(Debug)]
pub enum ClientChange<T> {
    Applied(T),
    NotFound,
    /// The client is disabled and cannot be changed.
    Disabled,
}

/// Gives a client a new API key; the current key works until `grace_period` has passed.
pub async fn rotate(
    home: &mut PooledConnection,
    context: SystemContext,
    tenant: TenantId,
    client: ClientId,
    grace_period: SignedDuration,
) -> Result<ClientChange<SecretString>, Error> {
    let SystemContext { now, .. } = context;
    let tx = home.begin();
    let kind = match table::lock(&tx, tenant, client).await? {
        None => return Ok(ClientChange::NotFound),
        Some((_, true)) => return Ok(ClientChange::Disabled),
        Some((kind, false)) => kind,
    };
    let old_expires_at = now.saturating_add(grace_period).unwrap_or(now);
    table::expire_values(&tx, tenant, client, old_expires_at, now).await?;
    let api_key = generate_api_key(kind);
    table::insert_value(&tx, tenant, client, &hash(api_key.as_bytes()), now).await?;
    let data = json!({"old_value_expires_at": old_expires_at.to_string()});
    context
        .record(&tx, tenant, client.uuid(), EventKind::ClientRotated, &data)
        .await?;
    tx.commit().await?;
    Ok(ClientChange::Applied(api_key.into()))
}

/// Disables a client permanently.
pub async fn disable(
    home: &mut PooledConnection,
    context: SystemContext,
    tenant: TenantId,
    client: ClientId,
) -> Result<ClientChange<()>, Error> {
    let tx = home.begin();
    match table::lock(&tx, tenant, client).await? {
        None => return Ok(ClientChange::NotFound),
        Some((_, true)) => return Ok(ClientChange::Disabled),
        Some((_, false)) => {}
    }
    table::disable(&tx, tenant, client, context.now).await?;
    context
        .record(
            &tx,
            tenant,
            client.uuid(),
            EventKind::ClientDisabled,
            &json!({}),
        )
        .await?;
    tx.commit().await?;
    Ok(ClientChange::Applied(()))
}

/// Deletes up to `limit` API keys that expired after a rotation, and returns how many. Expired keys
/// are rejected even before they are deleted.
pub async fn delete_expired_api_keys(
    tx: &Transaction<'_>,
    context: SystemContext,
    limit: i64,
) -> Result<usize, Error> {
    let deleted = table::delete_expired(tx, limit).await?;
    for (tenant, client) in &deleted {
        let kind = EventKind::ClientValueExpired;
        context
            .record(tx, *tenant, client.uuid(), kind, &json!({}))
            .await?;
    }
    Ok(deleted.len())
}
