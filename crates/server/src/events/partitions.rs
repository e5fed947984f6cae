//! Maintains the monthly partitions of the event log.

use super::table;
use crate::db::{CellDatabase, Error};

/// Creates the partitions of this month, the next two, and each month with rows in the default
/// partition. Drops those of all months before the last `keep_months` whole months. If `keep_months`
/// is 0, drops none.
pub async fn maintain_partitions(database: &CellDatabase, keep_months: u16) -> Result<(), Error> {
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    table::create_partitions(&tx).await?;
    tx.commit().await?;
    if keep_months > 0 {
        let tx = connection.begin();
        let dropped = table::drop_partitions(&tx, i32::from(keep_months)).await?;
        tx.commit().await?;
        for partition in dropped {
            tracing::info!(partition, "dropped a partition of the event log");
        }
    }
    Ok(())
}
