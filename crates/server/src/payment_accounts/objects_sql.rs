//! SQL of the table `payment_objects`, as far as notifications change it.

use jiff::Timestamp;
use perennial_domain::{Id, PaymentAccountId, TenantId};
use tokio_postgres::types::ToSql;

use super::provider_notification::PaymentObjectRef;
use crate::db::{Error, Sql, Transaction};

// An object that is already dirty keeps its next attempt: hints must not shorten the pauses of a provider that is down. One
// that waits for a record is due at once, because it may have changed.
static MARK_DIRTY: Sql = Sql::new(
    "INSERT INTO payment_objects (tenant_id, account_id, kind, external_id, wanted, dirty_since, due_at, created_at, updated_at)
     VALUES ($1, $2, $3, $4, 1, $5, $5, $5, $5)
     ON CONFLICT (tenant_id, account_id, kind, external_id) DO UPDATE SET
         wanted = payment_objects.wanted + 1,
         dirty_since = coalesce(payment_objects.dirty_since, $5),
         due_at = CASE WHEN $6 OR payment_objects.waits_for IS NOT NULL THEN $5 ELSE coalesce(payment_objects.due_at, $5) END,
         updated_at = $5",
);

/// Stores that an object may have changed. With `at_once`, an attempt that is due later becomes due at `now`.
pub(super) async fn mark_dirty(
    tx: &Transaction<'_>,
    (tenant, account): (TenantId, PaymentAccountId),
    object: &PaymentObjectRef,
    now: Timestamp,
    at_once: bool,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 6] = [
        &tenant.uuid(),
        &account.uuid(),
        &object.kind.as_str(),
        &object.id,
        &now,
        &at_once,
    ];
    tx.enqueue(&MARK_DIRTY, &params).await
}

static FORGET_DIRTY: Sql = Sql::new(
    "UPDATE payment_objects
     SET seen = wanted, dirty_since = NULL, due_at = NULL, reason = NULL, waits_for = NULL, waits_for_ids = NULL, waits_since = NULL
     WHERE tenant_id = $1 AND account_id = $2 AND due_at IS NOT NULL",
);
static FORGET_FAILED: Sql = Sql::new(
    "UPDATE payment_objects SET reason = NULL
     WHERE tenant_id = $1 AND account_id = $2 AND reason IS NOT NULL AND due_at IS NULL",
);

/// Makes no object of a deleted account due or failed.
pub(super) async fn forget_unresolved(
    tx: &Transaction<'_>,
    tenant: TenantId,
    account: PaymentAccountId,
) -> Result<(), Error> {
    let (tenant, account) = (tenant.uuid(), account.uuid());
    tx.enqueue(&FORGET_DIRTY, &[&tenant, &account]).await?;
    tx.enqueue(&FORGET_FAILED, &[&tenant, &account]).await
}
