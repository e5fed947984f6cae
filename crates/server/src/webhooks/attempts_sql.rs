//! SQL of the table `webhook_attempts`, the log of attempts.

use jiff::Timestamp;
use perennial_domain::{EventId, Id, TenantId, WebhookEndpointId};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::retries_sql::EndpointKey;
use crate::db::{
    AgeKey, AgeOrder, ByAgeSql, CellDatabase, Error, PooledConnection, RowReader, Sql, TimeRange,
    by_age,
};

/// How many whole days of attempts are kept.
pub const KEPT_DAYS: i32 = 30;

/// An attempt to deliver an event.
#[derive(Debug, Clone)]
pub struct WebhookAttempt {
    pub tenant: TenantId,
    pub endpoint: WebhookEndpointId,
    pub id: Uuid,
    pub created_at: Timestamp,
    pub event: EventId,
    pub kind: String,
    /// `None` for a test.
    pub position: Option<i64>,
    /// 1 for the first attempt.
    pub number: i32,
    pub is_success: bool,
    pub status_code: Option<i32>,
    pub error: Option<String>,
    pub duration_ms: i32,
}

macro_rules! columns {
    () => {
        "tenant_id, endpoint_id, id, created_at, event_id, kind, position, attempt, is_success, status_code, error, duration_ms"
    };
}

static INSERT_ALL: Sql = Sql::new(concat!(
    "INSERT INTO webhook_attempts (",
    columns!(),
    ") SELECT ",
    columns!(),
    " FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::uuid[], $6::text[], $7::bigint[], $8::integer[],
        $9::boolean[], $10::integer[], $11::text[], $12::integer[]) AS attempt (",
    columns!(),
    ")"
));

/// Inserts attempts of any endpoints, in one statement.
pub async fn insert_all(
    connection: &PooledConnection,
    attempts: &[WebhookAttempt],
) -> Result<(), Error> {
    fn column<T>(attempts: &[WebhookAttempt], value: impl Fn(&WebhookAttempt) -> T) -> Vec<T> {
        attempts.iter().map(value).collect()
    }
    let error = |attempt: &WebhookAttempt| attempt.error.clone();
    let params: [&(dyn ToSql + Sync); 12] = [
        &column(attempts, |attempt| attempt.tenant.uuid()),
        &column(attempts, |attempt| attempt.endpoint.uuid()),
        &column(attempts, |attempt| attempt.id),
        &column(attempts, |attempt| attempt.created_at),
        &column(attempts, |attempt| attempt.event.uuid()),
        &column(attempts, |attempt| attempt.kind.clone()),
        &column(attempts, |attempt| attempt.position),
        &column(attempts, |attempt| attempt.number),
        &column(attempts, |attempt| attempt.is_success),
        &column(attempts, |attempt| attempt.status_code),
        &column(attempts, error),
        &column(attempts, |attempt| attempt.duration_ms),
    ];
    connection.query(&INSERT_ALL, &params).await?;
    Ok(())
}

macro_rules! select {
    ($($conditions:tt)*) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM webhook_attempts WHERE tenant_id = $1 AND ",
            $($conditions)*
        )
    };
}

static LIST: ByAgeSql = by_age!(select, "endpoint_id = $5 AND ",);

/// Returns up to `limit` attempts of an endpoint after a key.
pub async fn list(
    connection: &PooledConnection,
    key: EndpointKey,
    (order, after): (AgeOrder, Option<AgeKey>),
    limit: i64,
) -> Result<Vec<WebhookAttempt>, Error> {
    let AgeKey { created_at, id } = after.unwrap_or_else(|| order.start(TimeRange::default()));
    let params: [&(dyn ToSql + Sync); 5] = [
        &key.tenant.uuid(),
        &created_at,
        &id,
        &limit,
        &key.endpoint.uuid(),
    ];
    let rows = connection.query(LIST.in_order(order), &params).await?;
    rows.iter().map(from_row).collect()
}

fn from_row(row: &Row) -> Result<WebhookAttempt, Error> {
    let row = RowReader::new(row);
    Ok(WebhookAttempt {
        tenant: TenantId::new(row.get("tenant_id")?),
        endpoint: WebhookEndpointId::new(row.get("endpoint_id")?),
        id: row.get("id")?,
        created_at: row.get("created_at")?,
        event: EventId::new(row.get("event_id")?),
        kind: row.get("kind")?,
        position: row.get("position")?,
        number: row.get("attempt")?,
        is_success: row.get("is_success")?,
        status_code: row.get("status_code")?,
        error: row.get("error")?,
        duration_ms: row.get("duration_ms")?,
    })
}

static CREATE_PARTITIONS: Sql = Sql::new("SELECT create_partitions('webhook_attempts')");
static DROP_PARTITIONS: Sql =
    Sql::new("SELECT drop_partitions('webhook_attempts', make_interval(days => $1))");

/// Creates the partitions of today and the next two days, and drops those of days that are no longer kept.
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
