//! Removes old entries of the log, before the partitions with their events are dropped.

use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::db::{Error, PooledConnection, Sql};

/// The number of entries that one transaction removes at most.
const MAX_BATCH: i64 = 5_000;

static TENANTS_WITH_OLD_ENTRIES: Sql = Sql::new(
    "SELECT head.tenant_id FROM event_log_tenants AS head
     WHERE (
        SELECT recorded_at FROM event_log
        WHERE event_log.tenant_id = head.tenant_id AND position = head.removed_to + 1
     ) < partitions_kept_from('events', make_interval(months => $1))",
);

// The entries of a tenant are removed in the order of positions, so that those that are left are consecutive.
static REMOVE_BATCH: Sql = Sql::new(
    "WITH oldest AS (
        SELECT position, recorded_at FROM event_log
        WHERE tenant_id = $1 AND position > (SELECT removed_to FROM event_log_tenants WHERE tenant_id = $1)
        ORDER BY position LIMIT $3
     ), raised AS (
        UPDATE event_log_tenants
        SET removed_to = (
            SELECT coalesce(min(position) FILTER (
                WHERE recorded_at >= partitions_kept_from('events', make_interval(months => $2))), max(position) + 1) - 1
            FROM oldest)
        WHERE tenant_id = $1 AND EXISTS (SELECT FROM oldest)
        RETURNING removed_to
     )
     DELETE FROM event_log USING raised WHERE tenant_id = $1 AND position <= raised.removed_to",
);

/// Removes the entries that were recorded before the last `keep_months` whole months, and returns their number.
pub async fn remove_old_entries(
    connection: &mut PooledConnection,
    keep_months: i32,
) -> Result<u64, Error> {
    let mut removed = 0;
    let tenants = connection
        .query(&TENANTS_WITH_OLD_ENTRIES, &[&keep_months])
        .await?;
    for row in tenants {
        let tenant: Uuid = row.try_get(0)?;
        loop {
            let tx = connection.begin();
            let params: [&(dyn ToSql + Sync); 3] = [&tenant, &keep_months, &MAX_BATCH];
            let count = tx.execute(&REMOVE_BATCH, &params).await?;
            tx.commit().await?;
            removed += count;
            if count == 0 {
                break;
            }
        }
    }
    Ok(removed)
}
