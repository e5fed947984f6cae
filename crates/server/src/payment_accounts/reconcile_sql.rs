//! SQL of reconciling: which accounts, from which cursor, and which events are known.

use std::collections::HashSet;

use perennial_domain::{Id, PaymentAccountId, TenantId};
use tokio_postgres::types::ToSql;

use crate::db::{CellDatabase, Error, RowReader, Sql, Transaction};

static LIST_ACCOUNTS: Sql = Sql::new(
    "SELECT tenant_id, id, cursor FROM payment_accounts AS account
     WHERE deleted_at IS NULL AND api_key IS NOT NULL
     ORDER BY last_reconciled_at NULLS FIRST",
);

/// An account to reconcile.
pub(super) struct ReconcilableAccount {
    pub tenant: TenantId,
    pub account: PaymentAccountId,
    /// The newest event that is known, if the payment provider has events.
    pub cursor: Option<String>,
}

/// Returns the accounts of all tenants that have an API key, the longest not reconciled first.
pub(super) async fn list_accounts(
    database: &CellDatabase,
) -> Result<Vec<ReconcilableAccount>, Error> {
    let connection = database.connection().await?;
    let rows = connection.query(&LIST_ACCOUNTS, &[]).await?;
    { rows.iter() }
        .map(|row| {
            let row = RowReader::new(row);
            Ok(ReconcilableAccount {
                tenant: TenantId::new(row.get("tenant_id")?),
                account: PaymentAccountId::new(row.get("id")?),
                cursor: row.get("cursor")?,
            })
        })
        .collect()
}

static KNOWN_EVENTS: Sql = Sql::new(
    "SELECT event_id FROM payment_event_ids WHERE tenant_id = $1 AND account_id = $2 AND event_id = ANY ($3)",
);

/// Returns the events whose notification was received.
pub(super) async fn known_events(
    database: &CellDatabase,
    (tenant, account): (TenantId, PaymentAccountId),
    events: &[&str],
) -> Result<HashSet<String>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &account.uuid(), &events];
    let rows = database.read_all(&KNOWN_EVENTS, &params).await?;
    { rows.iter() }.map(|row| Ok(row.try_get(0)?)).collect()
}

static SET_CURSOR: Sql =
    Sql::new("UPDATE payment_accounts SET cursor = $3 WHERE tenant_id = $1 AND id = $2");

/// Stores up to which event all changes are known.
pub(super) async fn set_cursor(
    tx: &Transaction<'_>,
    (tenant, account): (TenantId, PaymentAccountId),
    cursor: &str,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &account.uuid(), &cursor];
    tx.enqueue(&SET_CURSOR, &params).await
}
