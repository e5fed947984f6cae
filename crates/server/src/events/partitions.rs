//! Maintains the monthly partitions of the event log.

use super::{log, table};
use crate::db::{CellDatabase, Error};

/// Creates the partitions of this month, the next two, and each month with rows in the default
/// partition. Removes the log's entries of all months before the last `keep_months` whole months, then drops the
/// partitions of these months. If `keep_months` is 0, removes and drops nothing.
pub async fn maintain_partitions(database: &CellDatabase, keep_months: u16) -> Result<(), Error> {
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    table::create_partitions(&tx).await?;
    tx.commit().await?;
    if keep_months > 0 {
        let removed = log::remove_old_entries(&mut connection, i32::from(keep_months)).await?;
        if removed > 0 {
            tracing::info!(removed, "removed old entries of the event log");
        }
        let tx = connection.begin();
        let dropped = table::drop_partitions(&tx, i32::from(keep_months)).await?;
        tx.commit().await?;
        for partition in dropped {
            tracing::info!(partition, "dropped a partition of the event log");
        }
    }
    Ok(())
}
