//! Making, rotating and disabling clients; what `perennial client` does.

pub mod table;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::SignedDuration;
use perennial_domain::{ClientId, ClientKind, EventKind, Id, Line, TenantId};
use secrecy::SecretString;
use serde_json::json;

use super::{Client, Operator, directory::hash};
use crate::{
    db::{Connection, Error},
    randomness::Randomness,
};

/// A value for the header `client-id` that nobody can guess.
fn new_value(kind: ClientKind) -> String {
    let random: [u8; 32] = Randomness.bytes();
    format!("{}{}", kind.prefix(), BASE64_URL_SAFE_NO_PAD.encode(random))
}

/// Makes a client. Answers the header's value, which is not kept anywhere: `given`, or a new one.
pub async fn create(
    home: &mut Connection,
    operator: Operator,
    tenant: TenantId,
    client: &Client,
    name: &Line<200>,
    given: Option<&str>,
) -> Result<SecretString, Error> {
    let Operator { now, .. } = operator;
    let value = given.map_or_else(|| new_value(client.kind), str::to_owned);
    let tx = home.begin();
    table::insert(&tx, tenant, client, name.as_str(), now).await?;
    table::insert_value(&tx, tenant, client.id, &hash(value.as_bytes()), now).await?;
    let data = json!({
        "kind": client.kind.as_str(),
        "name": name.as_str(),
        "scopes": client.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>(),
        "allow_addresses": client.allow_addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "allowed_origins": client.allowed_origins,
    });
    operator
        .record(
            &tx,
            tenant,
            client.id.uuid(),
            EventKind::ClientCreated,
            &data,
        )
        .await?;
    tx.commit().await?;
    Ok(value.into())
}

/// What became of a wish to change a client.
#[derive(Debug)]
pub enum Outcome<T> {
    /// Done.
    Done(T),
    /// There is no such client.
    NoSuchClient,
    /// It has been disabled.
    Disabled,
}

/// Gives a client a second value for its header; the current one goes on for `keep_old`.
pub async fn rotate(
    home: &mut Connection,
    operator: Operator,
    tenant: TenantId,
    client: ClientId,
    keep_old: SignedDuration,
) -> Result<Outcome<SecretString>, Error> {
    let Operator { now, .. } = operator;
    let tx = home.begin();
    let kind = match table::lock(&tx, tenant, client).await? {
        None => return Ok(Outcome::NoSuchClient),
        Some((_, true)) => return Ok(Outcome::Disabled),
        Some((kind, false)) => kind,
    };
    let old_ends = now.saturating_add(keep_old).unwrap_or(now);
    table::expire_values(&tx, tenant, client, old_ends, now).await?;
    let value = new_value(kind);
    table::insert_value(&tx, tenant, client, &hash(value.as_bytes()), now).await?;
    let data = json!({"old_value_expires_at": old_ends.to_string()});
    operator
        .record(&tx, tenant, client.uuid(), EventKind::ClientRotated, &data)
        .await?;
    tx.commit().await?;
    Ok(Outcome::Done(value.into()))
}

/// Switches a client off, for good.
pub async fn disable(
    home: &mut Connection,
    operator: Operator,
    tenant: TenantId,
    client: ClientId,
) -> Result<Outcome<()>, Error> {
    let tx = home.begin();
    match table::lock(&tx, tenant, client).await? {
        None => return Ok(Outcome::NoSuchClient),
        Some((_, true)) => return Ok(Outcome::Disabled),
        Some((_, false)) => {}
    }
    table::disable(&tx, tenant, client, operator.now).await?;
    operator
        .record(
            &tx,
            tenant,
            client.uuid(),
            EventKind::ClientDisabled,
            &json!({}),
        )
        .await?;
    tx.commit().await?;
    Ok(Outcome::Done(()))
}
