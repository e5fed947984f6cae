//! SQL of the table `event_relay_positions`.

use perennial_domain::{EventId, Id, TenantId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::db::{Error, PooledConnection, Sql};

/// A tenant with events that are not published yet.
#[derive(Debug)]
pub(super) struct PendingTenant {
    pub tenant: TenantId,
    pub last_position: i64,
    /// The position up to which retention has removed events.
    pub removed_to: i64,
    /// The position up to which events were published and saved; `None` if there is none for this stream.
    pub saved: Option<i64>,
}

static LIST_PENDING: Sql = Sql::new(
    "SELECT log.tenant_id, log.last_position, log.removed_to, saved.position
     FROM event_log_tenants AS log
     LEFT JOIN event_relay_positions AS saved
        ON saved.tenant_id = log.tenant_id AND saved.stream = $1 AND saved.stream_id = $2
     WHERE log.last_position > coalesce(saved.position, 0)",
);

/// Lists the tenants that have events after their saved positions.
pub(super) async fn list_pending(
    connection: &PooledConnection,
    stream: &str,
    stream_id: &str,
) -> Result<Vec<PendingTenant>, Error> {
    let rows = connection
        .query(&LIST_PENDING, &[&stream, &stream_id])
        .await?;
    rows.iter()
        .map(|row| {
            Ok(PendingTenant {
                tenant: TenantId::new(row.try_get(0)?),
                last_position: row.try_get(1)?,
                removed_to: row.try_get(2)?,
                saved: row.try_get(3)?,
            })
        })
        .collect()
}

static FIND_ENTRY: Sql =
    Sql::new("SELECT event_id FROM event_log WHERE tenant_id = $1 AND position = $2");

/// Returns the event at a position, or `None` if retention has removed it or the log is shorter.
pub(super) async fn find_entry(
    connection: &PooledConnection,
    tenant: TenantId,
    position: i64,
) -> Result<Option<EventId>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &position];
    let rows = connection.query(&FIND_ENTRY, &params).await?;
    let id = rows.first().map(|row| row.try_get(0)).transpose()?;
    Ok(id.map(EventId::new))
}

static SAVE: Sql = Sql::new(
    "INSERT INTO event_relay_positions (tenant_id, stream, stream_id, position, saved_at)
     SELECT tenant_id, $3::text, $4::text, position, now()
     FROM unnest($1::uuid[], $2::bigint[]) AS published (tenant_id, position)
     ON CONFLICT (tenant_id, stream) DO UPDATE
        SET stream_id = excluded.stream_id, saved_at = excluded.saved_at,
            position = CASE WHEN event_relay_positions.stream_id = excluded.stream_id
                THEN greatest(event_relay_positions.position, excluded.position) ELSE excluded.position END",
);

/// Saves up to which position the events of each tenant are published.
pub(super) async fn save(
    connection: &mut PooledConnection,
    stream: &str,
    stream_id: &str,
    positions: &[(TenantId, i64)],
) -> Result<(), Error> {
    let tenants: Vec<Uuid> = positions.iter().map(|(tenant, _)| tenant.uuid()).collect();
    let positions: Vec<i64> = positions.iter().map(|(_, position)| *position).collect();
    let params: [&(dyn ToSql + Sync); 4] = [&tenants, &positions, &stream, &stream_id];
    let tx = connection.begin();
    tx.execute(&SAVE, &params).await?;
    tx.commit().await
}
