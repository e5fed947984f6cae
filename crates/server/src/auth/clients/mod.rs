//! Creates, updates, rotates and disables clients and their API keys.
//!
//! An API key is the value of the `client-id` header. Only its hash is stored, in `client_values`.
//! During a rotation a client has two valid keys.

pub mod table;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use ipnet::IpNet;
use jiff::SignedDuration;
use perennial_domain::{ClientId, ClientKind, EventKind, Id, Scope, SingleLine, TenantId};
use secrecy::SecretString;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Client, SystemContext, tenants::table::notify_clients_changed};
use crate::{
    config::Mode,
    db::{Error, PooledConnection, Transaction},
    events,
    randomness::Randomness,
};
use table::ClientSettings;

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
        "scopes": to_texts(&client.scopes),
        "allow_addresses": to_texts(&client.allow_addresses),
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

fn to_texts(values: &[impl ToString]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

/// The result of changing a client.
#[derive(Debug)]
pub enum ClientChange<T> {
    Applied(T),
    NotFound,
    /// The client is disabled and cannot be changed.
    Disabled,
    /// The change violates a rule, which the message states.
    Refused(String),
}

/// Checks that a client of this kind can have these scopes and origins.
pub fn check_settings(
    kind: ClientKind,
    scopes: &[Scope],
    allowed_origins: &[String],
) -> Result<(), String> {
    if kind == ClientKind::Secret && !allowed_origins.is_empty() {
        let message =
            "allowed origins require a publishable client; browsers must not see a secret";
        return Err(message.to_owned());
    }
    let possible = kind.allowed_scopes();
    match scopes.iter().find(|scope| !possible.contains(scope)) {
        Some(scope) => Err(format!("a {kind} client cannot have the scope {scope}")),
        None => Ok(()),
    }
}

/// Settings to change; `None` keeps the current value. A list replaces the current one.
#[derive(Debug, Default)]
pub struct ClientChanges {
    pub name: Option<SingleLine<200>>,
    pub scopes: Option<Vec<Scope>>,
    /// An empty list allows any address.
    pub allow_addresses: Option<Vec<IpNet>>,
    pub allowed_origins: Option<Vec<String>>,
}

impl ClientChanges {
    /// Returns whether no setting changes.
    pub fn is_empty(&self) -> bool {
        self.name.is_none()
            && self.scopes.is_none()
            && self.allow_addresses.is_none()
            && self.allowed_origins.is_none()
    }
}

/// Updates the settings of a client. Records nothing if no setting changes.
pub async fn update(
    home: &mut PooledConnection,
    context: SystemContext,
    mode: Mode,
    (tenant, client): (TenantId, ClientId),
    changes: &ClientChanges,
) -> Result<ClientChange<()>, Error> {
    let tx = home.begin();
    let locked = match table::lock(&tx, tenant, client, context.now).await? {
        None => return Ok(ClientChange::NotFound),
        Some(locked) if locked.is_disabled => return Ok(ClientChange::Disabled),
        Some(locked) => locked,
    };
    let scopes = changes.scopes.as_deref().unwrap_or_default();
    let origins = changes.allowed_origins.as_deref().unwrap_or_default();
    if let Err(message) = check_settings(locked.kind, scopes, origins) {
        return Ok(ClientChange::Refused(message));
    }
    let before = locked.settings;
    let after = ClientSettings {
        name: { changes.name.as_ref() }.map_or_else(|| before.name.clone(), ToString::to_string),
        scopes: { changes.scopes.as_deref() }.map_or_else(|| before.scopes.clone(), to_texts),
        allow_addresses: { changes.allow_addresses.as_deref() }
            .map_or_else(|| before.allow_addresses.clone(), to_texts),
        allowed_origins: { changes.allowed_origins.clone() }
            .unwrap_or_else(|| before.allowed_origins.clone()),
    };
    let opens_addresses = after.allow_addresses.is_empty() && !before.allow_addresses.is_empty();
    if opens_addresses && mode == Mode::Live && locked.has_first_key {
        return Ok(ClientChange::Refused(format!(
            "cannot allow any address: the client still has its first key, which can be guessed if it was chosen with --id; run \
             `perennial client rotate {client}` and let the old key expire first"
        )));
    }
    if after != before {
        table::update(&tx, tenant, client, &after).await?;
        notify_clients_changed(&tx, Some(tenant)).await?;
        let data = events::diff(&before, &after)?;
        let kind = EventKind::ClientUpdated;
        context
            .record(&tx, tenant, client.uuid(), kind, &data)
            .await?;
        tx.commit().await?;
    }
    Ok(ClientChange::Applied(()))
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
    let kind = match table::lock(&tx, tenant, client, now).await? {
        None => return Ok(ClientChange::NotFound),
        Some(locked) if locked.is_disabled => return Ok(ClientChange::Disabled),
        Some(locked) => locked.kind,
    };
    let old_expires_at = now.saturating_add(grace_period).unwrap_or(now);
    table::expire_values(&tx, tenant, client, old_expires_at, now).await?;
    notify_clients_changed(&tx, Some(tenant)).await?;
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
    match table::lock(&tx, tenant, client, context.now).await? {
        None => return Ok(ClientChange::NotFound),
        Some(locked) if locked.is_disabled => return Ok(ClientChange::Disabled),
        Some(_) => {}
    }
    table::disable(&tx, tenant, client, context.now).await?;
    notify_clients_changed(&tx, Some(tenant)).await?;
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
/// are rejected even before they are deleted, so this sends no notification.
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
