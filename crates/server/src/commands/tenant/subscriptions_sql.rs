//! SQL over a tenant's subscriptions that the lifecycle settings need.

use jiff::Timestamp;
use perennial_domain::{Id, SubscriptionId, TenantId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::db::{Error, PooledConnection, RowReader, Sql, Transaction};

/// How many subscriptions are named as examples.
const MAX_EXAMPLES: i64 = 5;
/// Subscriptions per transaction.
const BATCH_SIZE: i64 = 1_000;

/// Live subscriptions that managed billing could not charge.
#[derive(Debug)]
pub struct IncompleteSubscriptions {
    /// How many have a billing cycle other than their plan's and no price.
    pub without_price: i64,
    /// How many recur and have no `renews_at`.
    pub without_renewal: i64,
    /// The ids of a few of them.
    pub examples: Vec<SubscriptionId>,
}

// A pending subscription gets its renewal date when it starts.
static INCOMPLETE: Sql = Sql::new(
    "WITH incomplete AS MATERIALIZED (
        SELECT id, without_price, without_renewal
        FROM subscriptions,
            LATERAL (SELECT billing_cycle <> plan_billing_cycle AND custom_price_minor IS NULL AS without_price,
                billing_cycle <> 'lifetime' AND renews_at IS NULL AND status <> 'pending' AS without_renewal) AS missing
        WHERE tenant_id = $1 AND deleted_at IS NULL AND external_id IS NULL AND status <> 'expired'
          AND (ends_at IS NULL OR ends_at > $2) AND (without_price OR without_renewal))
     SELECT count(*) FILTER (WHERE without_price) AS without_price,
        count(*) FILTER (WHERE without_renewal) AS without_renewal,
        ARRAY(SELECT id FROM incomplete LIMIT $3) AS examples
     FROM incomplete",
);

/// Counts the live subscriptions that managed billing could not charge.
pub async fn find_incomplete(
    connection: &PooledConnection,
    tenant: TenantId,
    now: Timestamp,
) -> Result<Option<IncompleteSubscriptions>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &now, &MAX_EXAMPLES];
    let rows = connection.query(&INCOMPLETE, &params).await?;
    let Some(row) = rows.first().map(RowReader::new) else {
        return Ok(None);
    };
    let examples: Vec<Uuid> = row.get("examples")?;
    let incomplete = IncompleteSubscriptions {
        without_price: row.get("without_price")?,
        without_renewal: row.get("without_renewal")?,
        examples: examples.into_iter().map(SubscriptionId::new).collect(),
    };
    Ok(Some(incomplete).filter(|incomplete| !incomplete.examples.is_empty()))
}

// A late subscription is due at once. Locks in order of the id, as every
// transaction that locks several rows does.
static RESET_DUE: Sql = Sql::new(
    "WITH batch AS (
        SELECT id FROM subscriptions
        WHERE tenant_id = $1 AND id > $2 AND deleted_at IS NULL AND external_id IS NULL
          AND (status IN ('pending', 'past_due', 'unpaid') OR status = 'paused' AND late_since IS NOT NULL)
        ORDER BY id LIMIT $3 FOR NO KEY UPDATE)
     UPDATE subscriptions SET due_at = CASE status WHEN 'pending' THEN starts_at ELSE $4 END
     FROM batch WHERE tenant_id = $1 AND subscriptions.id = batch.id
     RETURNING subscriptions.id",
);

/// Makes the worker compute again when a late or pending subscription is due, for the next batch of
/// subscriptions after `after`. Returns the last one, or `None` if there are no more.
async fn reset_batch(
    tx: &Transaction<'_>,
    tenant: TenantId,
    after: Uuid,
    now: Timestamp,
) -> Result<Option<Uuid>, Error> {
    let params: [&(dyn ToSql + Sync); 4] = [&tenant.uuid(), &after, &BATCH_SIZE, &now];
    let rows = tx.query(&RESET_DUE, &params).await?;
    let mut last = None;
    for row in &rows {
        last = last.max(Some(row.try_get(0)?));
    }
    Ok(last)
}

/// Makes the worker compute again when late and pending subscriptions are due, because that depends
/// on the lifecycle settings.
pub async fn reset_due_dates(
    connection: &mut PooledConnection,
    tenant: TenantId,
    now: Timestamp,
) -> Result<(), Error> {
    let mut after = Some(Uuid::nil());
    while let Some(last) = after {
        let tx = connection.begin();
        after = reset_batch(&tx, tenant, last, now).await?;
        tx.commit().await?;
    }
    Ok(())
}
