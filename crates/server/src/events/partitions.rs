//! Maintains the monthly partitions of the event log.

use std::time::Duration;

use super::{log, table};
use crate::db::{CellDatabase, Error};

const BACKFILL_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Creates the partitions of this month, the next two, and each month with rows in the default
/// partition. Removes the log's entries of all months before the last `keep_months` whole months, then drops the
/// partitions of these months. If `keep_months` is 0, removes and drops nothing.
pub async fn maintain_partitions(database: &CellDatabase, keep_months: u16) -> Result<(), Error> {
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    table::create_partitions(&tx).await?;
    tx.commit().await?;
    if keep_months > 0 {
        drop(connection);
        wait_until_backfilled(database).await?;
        let mut connection = database.connection().await?;
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

/// Waits until the events of earlier versions have positions. Their partitions are kept until then.
async fn wait_until_backfilled(database: &CellDatabase) -> Result<(), Error> {
    while !log::is_backfilled(&database.connection().await?).await? {
        tokio::time::sleep(BACKFILL_POLL_INTERVAL).await;
    }
    Ok(())
}
