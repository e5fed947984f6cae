//! The months of the event log: made ahead of time, dropped when the operator says so.

use super::table;
use crate::db::{Engine, Error};

/// Makes the partitions of this month and the next two; drops those older than `keep` whole months,
/// unless that is 0.
pub async fn keep_months(engine: &Engine, keep: u16) -> Result<(), Error> {
    let mut connection = engine.connection().await?;
    let tx = connection.begin();
    table::make_months(&tx).await?;
    tx.commit().await?;
    if keep > 0 {
        let tx = connection.begin();
        let dropped = table::drop_old_months(&tx, i32::from(keep)).await?;
        tx.commit().await?;
        for month in dropped {
            tracing::info!(month, "dropped a month of events");
        }
    }
    Ok(())
}
