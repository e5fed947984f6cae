//! Housekeeping: ends the sessions of watermarks, and deletes sessions and watermarks that are no
//! longer needed.

use perennial_domain::{EventKind, Id, TenantId};
use serde_json::json;
use tokio_postgres::types::ToSql;

use super::{
    super::{SystemContext, tenants},
    watermark::SessionScope,
    watermark_sql::{self, WatermarkRow},
};
use crate::db::{CellDatabase, Error, PooledConnection, Sql, Transaction};

/// Ends up to `limit` sessions of one watermark. Returns 0 if there is none left.
///
/// When the last session of a tenant or issuer has been ended, records one event with their number.
/// The watermark of the installation is passed on to the tenants of the cell.
pub async fn end_revoked(
    home: &CellDatabase,
    cell: &str,
    tx: &Transaction<'_>,
    context: SystemContext,
    limit: i64,
) -> Result<usize, Error> {
    let Some(mut row) = watermark_sql::claim(tx).await? else {
        return Ok(0);
    };
    let is_complete = match row.watermark.scope {
        SessionScope::User(tenant, user) => {
            // The event was recorded when the sessions were revoked.
            watermark_sql::end_for_user(tx, (tenant, user), &row, limit).await? < limit
        }
        SessionScope::Issuer(tenant, _) | SessionScope::Tenant(tenant) => {
            let is_complete = watermark_sql::end_page(tx, &mut row, limit).await?;
            if is_complete && row.ended > 0 {
                record_event(tx, context, tenant, &row).await?;
            }
            is_complete
        }
        SessionScope::Installation => {
            let home = home.connection().await?;
            pass_to_tenants(&home, cell, tx, &row).await?;
            true
        }
    };
    watermark_sql::save_progress(tx, &row, is_complete).await?;
    Ok(usize::try_from(limit).unwrap_or(usize::MAX))
}

async fn record_event(
    tx: &Transaction<'_>,
    context: SystemContext,
    tenant: TenantId,
    row: &WatermarkRow,
) -> Result<(), Error> {
    let data = json!({
        "id": tenant.to_string(),
        "issuer": row.watermark.scope.issuer(),
        "count": row.ended,
        "reason": row.reason,
        "operator": row.operator,
    });
    let kind = EventKind::TenantSessionsRevoked;
    context.record(tx, tenant, tenant.uuid(), kind, &data).await
}

/// Sets the watermark of the installation for each tenant of the cell.
async fn pass_to_tenants(
    home: &PooledConnection,
    cell: &str,
    tx: &Transaction<'_>,
    row: &WatermarkRow,
) -> Result<(), Error> {
    let number = Some(row.watermark.sessions_valid_from);
    let cause = (row.reason.as_str(), row.operator.as_deref());
    for (tenant, _) in tenants::table::list(home).await? {
        if tenant.cell == cell {
            let scope = SessionScope::Tenant(tenant.id);
            watermark_sql::set(tx, &scope, None, cause, number).await?;
        }
    }
    Ok(())
}

// By ctid: joined by key, the planner would scan the table a second time.
static DELETE_REVOKED: Sql = Sql::new(
    "DELETE FROM sessions
     WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM sessions
        WHERE ended_at < now() - interval '1 day' ORDER BY ended_at LIMIT $1 FOR UPDATE SKIP LOCKED))",
);
static DELETE_EXPIRED: Sql = Sql::new(
    "DELETE FROM sessions
     WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM sessions
        WHERE created_at < now() - $2 * interval '1 second' ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED))",
);
// A day later than the sessions that the watermark ends, because the clocks of instances differ.
static DELETE_WATERMARKS: Sql = Sql::new(
    "DELETE FROM session_watermarks
     WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM session_watermarks
        WHERE cleaned_at < now() - interval '1 day' - $2 * interval '1 second' ORDER BY cleaned_at LIMIT $1
        FOR UPDATE SKIP LOCKED))",
);

/// Deletes up to `limit` sessions that were revoked more than a day ago, sessions that are older than
/// the longest absolute timeout of all tenants, and watermarks that are older than every session.
/// Returns how many rows were deleted.
pub async fn delete_inactive(
    home: &CellDatabase,
    tx: &Transaction<'_>,
    limit: i64,
) -> Result<usize, Error> {
    let max_lifetime = tenants::table::max_session_lifetime(home).await?;
    let aged: [&(dyn ToSql + Sync); 2] = [&limit, &max_lifetime];
    let revoked = tx.execute(&DELETE_REVOKED, &[&limit]).await?;
    let expired = tx.execute(&DELETE_EXPIRED, &aged).await?;
    let watermarks = tx.execute(&DELETE_WATERMARKS, &aged).await?;
    Ok(usize::try_from(revoked + expired + watermarks).unwrap_or(usize::MAX))
}
