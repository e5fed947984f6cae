//! SQL of the table `payment_list_positions`, and of what a finished list stores in `payment_accounts`.

use jiff::Timestamp;
use perennial_domain::{Id, PaymentAccountId, TenantId};
use serde_json::Value;
use tokio_postgres::types::ToSql;

use crate::db::{CellDatabase, Error, Sql, Transaction};

static FIND_POSITION: Sql = Sql::new(
    "SELECT position FROM payment_list_positions WHERE tenant_id = $1 AND account_id = $2 AND purpose = $3",
);

/// Returns how far a list was read.
pub(super) async fn find_position(
    database: &CellDatabase,
    (tenant, account): (TenantId, PaymentAccountId),
    purpose: &str,
) -> Result<Option<Value>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &account.uuid(), &purpose];
    let row = database.read(&FIND_POSITION, &params).await?;
    row.map_or(Ok(None), |row| Ok(row.try_get(0)?))
}

static SET_POSITION: Sql = Sql::new(
    "INSERT INTO payment_list_positions (tenant_id, account_id, purpose, position, updated_at)
     VALUES ($1, $2, $3, $4, now())
     ON CONFLICT (tenant_id, account_id, purpose) DO UPDATE SET position = $4, updated_at = now()",
);

/// Stores how far a list was read.
pub(super) async fn set_position(
    tx: &Transaction<'_>,
    (tenant, account): (TenantId, PaymentAccountId),
    purpose: &str,
    position: &Value,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 4] = [&tenant.uuid(), &account.uuid(), &purpose, position];
    tx.enqueue(&SET_POSITION, &params).await
}

static DELETE_POSITION: Sql = Sql::new(
    "DELETE FROM payment_list_positions WHERE tenant_id = $1 AND account_id = $2 AND purpose = $3",
);

/// Stores that a list was read to its end.
pub(super) async fn delete_position(
    tx: &Transaction<'_>,
    (tenant, account): (TenantId, PaymentAccountId),
    purpose: &str,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &account.uuid(), &purpose];
    tx.enqueue(&DELETE_POSITION, &params).await
}

static SET_RECONCILED: Sql = Sql::new(
    "UPDATE payment_accounts SET cursor = coalesce($3, cursor), last_reconciled_at = greatest(last_reconciled_at, $4)
     WHERE tenant_id = $1 AND id = $2",
);

/// Stores that all changes up to `reconciled_at` and up to an event are known.
pub(super) async fn set_reconciled(
    tx: &Transaction<'_>,
    (tenant, account): (TenantId, PaymentAccountId),
    cursor: Option<&str>,
    reconciled_at: Timestamp,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 4] =
        [&tenant.uuid(), &account.uuid(), &cursor, &reconciled_at];
    tx.enqueue(&SET_RECONCILED, &params).await
}
