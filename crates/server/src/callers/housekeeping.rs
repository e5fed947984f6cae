//! Removes header values that have expired after a rotation.
//!
//! They are refused from the moment of their expiry; this only takes them out of the table, and
//! writes down that it did.

use perennial_domain::{EventKind, Id};
use serde_json::json;

use super::{Operator, clients::table};
use crate::db::{Error, Transaction};

/// Removes up to `limit` expired values in this transaction; answers how many it was.
pub async fn remove_expired_values(
    tx: &Transaction<'_>,
    operator: Operator,
    limit: i64,
) -> Result<usize, Error> {
    let removed = table::remove_expired(tx, limit).await?;
    for (tenant, client) in &removed {
        let kind = EventKind::ClientValueExpired;
        operator
            .record(tx, *tenant, client.uuid(), kind, &json!({}))
            .await?;
    }
    Ok(removed.len())
}
