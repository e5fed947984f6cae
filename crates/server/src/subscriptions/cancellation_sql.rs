//! SQL of the table `subscription_cancellations`: what the last cancellation of a subscription replaced.

use perennial_domain::{Cancellation, Id, SubscriptionId, TenantId};
use tokio_postgres::types::ToSql;

use crate::db::{Error, RowReader, Sql, Transaction};

static FIND: Sql = Sql::new(
    "SELECT status, ends_at, cancelled_until FROM subscription_cancellations
     WHERE tenant_id = $1 AND subscription_id = $2",
);

/// Returns what the last cancellation of a locked subscription replaced.
pub(super) async fn find(
    tx: &Transaction<'_>,
    tenant: TenantId,
    subscription: SubscriptionId,
) -> Result<Option<Cancellation>, Error> {
    let rows = tx
        .query(&FIND, &[&tenant.uuid(), &subscription.uuid()])
        .await?;
    let Some(row) = rows.first().map(RowReader::new) else {
        return Ok(None);
    };
    Ok(Some(Cancellation {
        status: row.parse("status")?,
        ends_at: row.get("ends_at")?,
        cancelled_until: row.get("cancelled_until")?,
    }))
}

static SAVE: Sql = Sql::new(
    "INSERT INTO subscription_cancellations (tenant_id, subscription_id, status, ends_at, cancelled_until)
     VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (tenant_id, subscription_id) DO UPDATE
     SET status = excluded.status, ends_at = excluded.ends_at, cancelled_until = excluded.cancelled_until",
);

/// Replaces what is known of the last cancellation of a locked subscription.
pub(super) async fn save(
    tx: &Transaction<'_>,
    tenant: TenantId,
    subscription: SubscriptionId,
    cancellation: &Cancellation,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 5] = [
        &tenant.uuid(),
        &subscription.uuid(),
        &cancellation.status.as_str(),
        &cancellation.ends_at,
        &cancellation.cancelled_until,
    ];
    tx.enqueue(&SAVE, &params).await
}

static DELETE: Sql = Sql::new(
    "DELETE FROM subscription_cancellations WHERE tenant_id = $1 AND subscription_id = $2",
);

/// Forgets the last cancellation of a locked subscription.
pub(super) async fn delete(
    tx: &Transaction<'_>,
    tenant: TenantId,
    subscription: SubscriptionId,
) -> Result<(), Error> {
    tx.enqueue(&DELETE, &[&tenant.uuid(), &subscription.uuid()])
        .await
}
