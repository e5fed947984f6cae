//! Deletes old notifications and event ids.

use tokio_postgres::types::ToSql;

use crate::db::{CellDatabase, Error, Sql, Transaction};

/// How many days notifications are kept. A month is deleted when its last notification is older.
const KEPT_DAYS: i32 = 90;

static DELETE_OLD_EVENT_IDS: Sql = Sql::new(
    "DELETE FROM payment_event_ids WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM payment_event_ids
        WHERE created_at < now() - $1 * interval '1 day' ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED))",
);

/// Deletes up to `limit` event ids of all tenants that are older than notifications are kept, and returns their number.
pub async fn delete_old_event_ids(tx: &Transaction<'_>, limit: i64) -> Result<usize, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&f64::from(KEPT_DAYS), &limit];
    let deleted = tx.execute(&DELETE_OLD_EVENT_IDS, &params).await?;
    usize::try_from(deleted).map_err(|error| Error::Internal(error.to_string()))
}

static CREATE_PARTITIONS: Sql = Sql::new("SELECT create_partitions('payment_notifications')");
static DROP_PARTITIONS: Sql =
    Sql::new("SELECT drop_partitions('payment_notifications', make_interval(days => $1))");

/// Creates the partitions of this month and the next two, and drops those of months that are no longer kept.
pub async fn maintain_partitions(database: &CellDatabase) -> Result<(), Error> {
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    tx.query(&CREATE_PARTITIONS, &[]).await?;
    tx.commit().await?;
    let tx = connection.begin();
    tx.query(&DROP_PARTITIONS, &[&KEPT_DAYS]).await?;
    tx.commit().await?;
    Ok(())
}
