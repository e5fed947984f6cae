//! Removes header values that have expired after a rotation.
//!
//! They are refused from the moment of their expiry; this only takes them out of the table, and
//! writes down that it did.

use jiff::Timestamp;
use perennial_domain::EventKind;
use serde_json::json;

use super::{clients, table};
use crate::{
    clock::Ids,
    db::{Error, Transaction},
};

/// Removes up to `limit` expired values in this transaction; answers how many it was.
pub async fn remove_expired_values(
    tx: &Transaction<'_>,
    ids: Ids,
    now: Timestamp,
    limit: i64,
) -> Result<usize, Error> {
    let removed = table::remove_expired(tx, limit).await?;
    for (tenant, client) in &removed {
        let kind = EventKind::ClientValueExpired;
        clients::record(tx, ids, now, *tenant, *client, kind, &json!({})).await?;
    }
    Ok(removed.len())
}
