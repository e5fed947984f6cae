//! SQL of the table `webhook_replays`.

use jiff::Timestamp;
use perennial_domain::{EventTypes, Id, TenantId, WebhookReplayId};
use tokio_postgres::types::ToSql;

use super::{retries_sql::EndpointKey, table::read_types};
use crate::db::{Error, PooledConnection, RowReader, Sql, Transaction};

/// A second pass over a range of the log.
#[derive(Debug, Clone)]
pub struct WebhookReplay {
    pub id: WebhookReplayId,
    /// Events after it are still to be sent.
    pub position: i64,
    pub last_position: i64,
    /// Empty means the types of the endpoint.
    pub event_types: EventTypes,
    /// Whether only events are sent that were given up.
    pub only_failed: bool,
    pub created_at: Timestamp,
}

static INSERT: Sql = Sql::new(
    "INSERT INTO webhook_replays (tenant_id, endpoint_id, id, position, last_position, event_types, only_failed, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
);

pub async fn insert(
    tx: &Transaction<'_>,
    key: EndpointKey,
    replay: &WebhookReplay,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 8] = [
        &key.tenant.uuid(),
        &key.endpoint.uuid(),
        &replay.id.uuid(),
        &replay.position,
        &replay.last_position,
        &replay.event_types.names(),
        &replay.only_failed,
        &replay.created_at,
    ];
    tx.enqueue(&INSERT, &params).await
}

static FIRST: Sql = Sql::new(
    "SELECT id, position, last_position, event_types, only_failed, created_at FROM webhook_replays
     WHERE tenant_id = $1 AND endpoint_id = $2 AND finished_at IS NULL ORDER BY id LIMIT 1",
);

/// Returns the oldest unfinished replay of an endpoint.
pub async fn find_first(
    connection: &PooledConnection,
    key: EndpointKey,
) -> Result<Option<WebhookReplay>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&key.tenant.uuid(), &key.endpoint.uuid()];
    let Some(row) = connection.query_opt(&FIRST, &params).await? else {
        return Ok(None);
    };
    let row = RowReader::new(&row);
    Ok(Some(WebhookReplay {
        id: WebhookReplayId::new(row.get("id")?),
        position: row.get("position")?,
        last_position: row.get("last_position")?,
        event_types: read_types(&row, "event_types")?,
        only_failed: row.get("only_failed")?,
        created_at: row.get("created_at")?,
    }))
}

static SAVE: Sql = Sql::new(
    "UPDATE webhook_replays SET position = greatest(position, $4), finished_at = CASE WHEN $4 >= last_position THEN $5::timestamptz END
     WHERE tenant_id = $1 AND endpoint_id = $2 AND id = $3",
);

/// Saves the position of a replay. It is finished at its last position.
pub async fn save_position(
    connection: &PooledConnection,
    key: EndpointKey,
    id: WebhookReplayId,
    position: i64,
    now: Timestamp,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 5] = [
        &key.tenant.uuid(),
        &key.endpoint.uuid(),
        &id.uuid(),
        &position,
        &now,
    ];
    connection.query(&SAVE, &params).await?;
    Ok(())
}

static RECORDED_AT: Sql =
    Sql::new("SELECT recorded_at FROM event_log WHERE tenant_id = $1 AND position = $2");

/// Returns when the event at a position was recorded. `None` if it was removed.
pub async fn recorded_at(
    connection: &PooledConnection,
    tenant: TenantId,
    position: i64,
) -> Result<Option<Timestamp>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &position];
    let row = connection.query_opt(&RECORDED_AT, &params).await?;
    row.map(|row| Ok(row.try_get(0)?)).transpose()
}
