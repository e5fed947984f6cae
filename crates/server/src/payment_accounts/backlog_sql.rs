//! SQL of what the payment accounts of all tenants of a cell have not processed.

use crate::db::{Error, PooledConnection, RowReader, Sql};

// A failed object that nothing repairs must not raise an alert forever.
static MEASURE_BACKLOG: Sql = Sql::new(
    "SELECT
        (SELECT count(*) FROM payment_objects WHERE waits_for IS NOT NULL) AS waiting_objects,
        (SELECT count(*) FROM payment_objects
         WHERE reason IS NOT NULL AND due_at IS NULL AND updated_at > now() - interval '7 days') AS failed_objects,
        (SELECT coalesce(extract(epoch FROM now() - min(dirty_since)), 0)::float8
         FROM payment_objects WHERE dirty_since IS NOT NULL AND waits_for IS NULL) AS objects_behind,
        (SELECT count(*) FROM payment_commands WHERE acknowledged_at IS NULL) AS pending_commands,
        (SELECT coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8
         FROM payment_commands WHERE acknowledged_at IS NULL) AS commands_behind,
        (SELECT coalesce(extract(epoch FROM now() - min(coalesce(last_reconciled_at, created_at))), 0)::float8
         FROM payment_accounts WHERE deleted_at IS NULL AND api_key IS NOT NULL) AS reconcile_behind",
);

/// What is not processed yet, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct PaymentBacklog {
    /// Objects that wait for a subscription, a plan or a user.
    pub waiting_objects: i64,
    /// Objects that failed in the last 7 days and that a person must look at.
    pub failed_objects: i64,
    /// For how many seconds the oldest object has been dirty. Objects that wait for a record are left out.
    pub objects_behind: f64,
    /// Commands that payment providers have not acknowledged.
    pub pending_commands: i64,
    /// For how many seconds the oldest command has not been acknowledged.
    pub commands_behind: f64,
    /// Seconds since the reconcile of the account that was reconciled the longest ago, of those with an API key.
    pub reconcile_behind: f64,
}

/// Reads the backlog of a cell.
pub async fn measure_backlog(connection: &PooledConnection) -> Result<PaymentBacklog, Error> {
    let row = connection.query_opt(&MEASURE_BACKLOG, &[]).await?;
    let row = row.ok_or_else(|| Error::Internal("no backlog was returned".to_owned()))?;
    let row = RowReader::new(&row);
    Ok(PaymentBacklog {
        waiting_objects: row.get("waiting_objects")?,
        failed_objects: row.get("failed_objects")?,
        objects_behind: row.get("objects_behind")?,
        pending_commands: row.get("pending_commands")?,
        commands_behind: row.get("commands_behind")?,
        reconcile_behind: row.get("reconcile_behind")?,
    })
}
