//! SQL of the table `payment_objects`, as far as lists change it.

use std::collections::HashMap;

use perennial_domain::{FactFields, Id, PaymentAccountId, PaymentObjectKind, TenantId};
use tokio_postgres::types::{Json, ToSql};

use super::sync_sql::ObjectKey;
use crate::db::{CellDatabase, Error, PooledConnection, RowReader, Sql, Transaction};

static FACTS: Sql = Sql::new(
    "SELECT external_id, fact FROM payment_objects
     WHERE tenant_id = $1 AND account_id = $2 AND kind = $3 AND external_id = ANY ($4) AND fact IS NOT NULL",
);

/// Returns the facts that records follow, by the payment provider's id.
pub(super) async fn list_facts(
    database: &CellDatabase,
    (tenant, account): (TenantId, PaymentAccountId),
    kind: PaymentObjectKind,
    ids: &[&str],
) -> Result<HashMap<String, FactFields>, Error> {
    let params: [&(dyn ToSql + Sync); 4] = [&tenant.uuid(), &account.uuid(), &kind.as_str(), &ids];
    let rows = database.read_all(&FACTS, &params).await?;
    { rows.iter() }
        .map(|row| {
            let row = RowReader::new(row);
            let Json(fact): Json<FactFields> = row.get("fact")?;
            Ok((row.get("external_id")?, fact))
        })
        .collect()
}

static ANALYZE: Sql =
    Sql::new("ANALYZE users, subscriptions, subscription_payments, payment_objects");

/// Makes PostgreSQL plan again, in all sessions. A statement that was planned while its table had few rows may read all rows of
/// a tenant instead of one. Without ownership of the tables this has no effect, and autovacuum does it within a minute or two.
pub(super) async fn analyze(connection: &PooledConnection) -> Result<(), Error> {
    connection.query(&ANALYZE, &[]).await?;
    Ok(())
}

static INSERT_LISTED: Sql = Sql::new(
    "INSERT INTO payment_objects (tenant_id, account_id, kind, external_id, wanted, created_at, updated_at)
     VALUES ($1, $2, $3, $4, 0, now(), now()) ON CONFLICT DO NOTHING",
);

/// Inserts an object without a hint, unless it is known.
pub(super) async fn insert_listed(tx: &Transaction<'_>, key: &ObjectKey) -> Result<(), Error> {
    tx.enqueue(&INSERT_LISTED, &key.columns().params()).await
}

static FENCE: Sql = Sql::new(
    "UPDATE payment_objects SET lease_generation = lease_generation + 1
     WHERE tenant_id = $1 AND account_id = $2 AND kind = $3 AND external_id = $4",
);

/// Fences a worker whose lease on a locked object has expired, because its response may be older than the list.
pub(super) async fn fence(tx: &Transaction<'_>, key: &ObjectKey) -> Result<(), Error> {
    tx.enqueue(&FENCE, &key.columns().params()).await
}
