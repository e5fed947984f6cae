//! SQL of the table `webhook_endpoints`: the endpoints as clients see them. `lease_sql.rs` has the columns of
//! deliveries.

use jiff::Timestamp;
use perennial_domain::{
    DisabledReason, EventTypes, Href, Id, SingleLine, TenantId, WebhookEndpoint,
    WebhookEndpointDetails, WebhookEndpointId,
};
use tokio_postgres::{Row, types::ToSql};

use super::secrets::{SealedSecret, SealedSecrets};
use crate::db::{
    AgeKey, AgeOrder, ByAgeSql, CellDatabase, Error, PooledConnection, RowReader, Sql, TimeRange,
    Transaction, by_age,
};

/// The columns after the key `(tenant_id, id)` that requests set. [`placeholders!`] and [`params!`] use the same
/// order.
macro_rules! columns {
    () => {
        "url, description, event_types, delivery_order, status, disabled_reason, disabled_at, failing_since,
         created_at, updated_at"
    };
}

macro_rules! placeholders {
    () => {
        "$3, $4, $5, $6, $7, $8, $9, $10, $11, $12"
    };
}

macro_rules! params {
    ($tenant:ident, $endpoint:ident $(, $more:expr)*) => {
        &[
            &$tenant.uuid(),
            &$endpoint.id.uuid(),
            &$endpoint.details.url.as_str(),
            &$endpoint
                .details
                .description
                .as_ref()
                .map(SingleLine::as_str),
            &$endpoint.details.event_types.names(),
            &$endpoint.details.order.as_str(),
            &$endpoint.details.status.as_str(),
            &$endpoint.disabled.map(|(reason, _)| reason.as_str()),
            &$endpoint.disabled.map(|(_, at)| at),
            &$endpoint.failing_since,
            &$endpoint.created_at,
            &$endpoint.updated_at,
            $($more,)*
        ]
    };
}

/// Reads a column of event types.
pub(super) fn read_types(row: &RowReader<'_>, column: &str) -> Result<EventTypes, Error> {
    row.parse_list(column).map(EventTypes::new)
}

/// Reads the key and [`columns!`].
pub(super) fn from_row(row: &Row) -> Result<WebhookEndpoint, Error> {
    let row = RowReader::new(row);
    let id = WebhookEndpointId::new(row.get("id")?);
    let url: Href = row.parse("url")?;
    let description = row.parse_optional("description")?;
    let event_types = read_types(&row, "event_types")?;
    let order = row.parse("delivery_order")?;
    let status = row.parse("status")?;
    let reason: Option<DisabledReason> = row.parse_optional("disabled_reason")?;
    let disabled_at: Option<Timestamp> = row.get("disabled_at")?;
    Ok(WebhookEndpoint {
        id,
        details: WebhookEndpointDetails {
            url,
            description,
            event_types,
            order,
            status,
        },
        disabled: reason.zip(disabled_at),
        failing_since: row.get("failing_since")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}

/// Selects a tenant's endpoints that are not deleted and meet the conditions.
macro_rules! select {
    ($($conditions:tt)*) => {
        concat!(
            "SELECT id, ",
            columns!(),
            " FROM webhook_endpoints
     WHERE tenant_id = $1 AND deleted_at IS NULL AND ",
            $($conditions)*
        )
    };
}

pub(super) use columns;

static FIND: Sql = Sql::new(select!("id = $2"));

/// Returns the endpoint with this id.
pub async fn find(
    database: &CellDatabase,
    tenant: TenantId,
    id: WebhookEndpointId,
) -> Result<Option<WebhookEndpoint>, Error> {
    let row = database.read(&FIND, &[&tenant.uuid(), &id.uuid()]).await?;
    row.as_ref().map(from_row).transpose()
}

static LOCK: Sql = Sql::new(select!("id = $2 FOR NO KEY UPDATE"));

/// Locks the row until the end of the transaction and returns it.
pub(super) async fn lock(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: WebhookEndpointId,
) -> Result<Option<WebhookEndpoint>, Error> {
    let rows = tx.query(&LOCK, &[&tenant.uuid(), &id.uuid()]).await?;
    rows.first().map(from_row).transpose()
}

static LIST: ByAgeSql = by_age!(select,);

/// Returns up to `limit` endpoints after a key.
pub async fn list(
    connection: &PooledConnection,
    tenant: TenantId,
    (order, after): (AgeOrder, Option<AgeKey>),
    limit: i64,
) -> Result<Vec<WebhookEndpoint>, Error> {
    let AgeKey { created_at, id } = after.unwrap_or_else(|| order.start(TimeRange::default()));
    let params: [&(dyn ToSql + Sync); 4] = [&tenant.uuid(), &created_at, &id, &limit];
    let rows = connection.query(LIST.in_order(order), &params).await?;
    rows.iter().map(from_row).collect()
}

// A new endpoint starts at the end of the log. An event that is committed later gets a later position. So does one that was
// committed shortly before and has no position yet, and the creation of the endpoint itself.
static INSERT: Sql = Sql::new(concat!(
    "INSERT INTO webhook_endpoints (tenant_id, id, ",
    columns!(),
    ", secret, position) VALUES ($1, $2, ",
    placeholders!(),
    ", $13, coalesce((SELECT last_position FROM event_log_tenants WHERE tenant_id = $1), 0))"
));

/// Inserts an endpoint that receives every event that is committed after it.
pub(super) async fn insert(
    tx: &Transaction<'_>,
    tenant: TenantId,
    endpoint: &WebhookEndpoint,
    secret: &SealedSecret,
) -> Result<(), Error> {
    tx.enqueue(&INSERT, params!(tenant, endpoint, &secret.0))
        .await
}

static UPDATE: Sql = Sql::new(concat!(
    "UPDATE webhook_endpoints SET (",
    columns!(),
    ") = (",
    placeholders!(),
    ") WHERE tenant_id = $1 AND id = $2"
));

/// Updates a locked endpoint. The statement is sent with the next one or with COMMIT, which returns its error,
/// if any.
pub(super) async fn update(
    tx: &Transaction<'_>,
    tenant: TenantId,
    endpoint: &WebhookEndpoint,
) -> Result<(), Error> {
    tx.enqueue(&UPDATE, params!(tenant, endpoint)).await
}

pub(super) static SOFT_DELETE: Sql =
    Sql::new("UPDATE webhook_endpoints SET deleted_at = $3 WHERE tenant_id = $1 AND id = $2");

static SECRETS: Sql = Sql::new(
    "SELECT secret, previous_secret, previous_secret_expires_at FROM webhook_endpoints
     WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL",
);

/// Returns the sealed secrets of an endpoint.
pub(super) async fn find_secrets(
    database: &CellDatabase,
    tenant: TenantId,
    id: WebhookEndpointId,
) -> Result<Option<SealedSecrets>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &id.uuid()];
    let row = database.read(&SECRETS, &params).await?;
    row.as_ref().map(secrets_from_row).transpose()
}

/// Reads `secret`, `previous_secret` and `previous_secret_expires_at`.
pub(super) fn secrets_from_row(row: &Row) -> Result<SealedSecrets, Error> {
    let row = RowReader::new(row);
    let present = SealedSecret(row.get("secret")?);
    let previous: Option<Vec<u8>> = row.get("previous_secret")?;
    let expires_at: Option<Timestamp> = row.get("previous_secret_expires_at")?;
    Ok(SealedSecrets {
        present,
        previous: previous.map(SealedSecret).zip(expires_at),
    })
}

static ROTATE: Sql = Sql::new(
    "UPDATE webhook_endpoints SET previous_secret = secret, previous_secret_expires_at = $4, secret = $3, updated_at = $5
     WHERE tenant_id = $1 AND id = $2",
);

/// Replaces the secret of a locked endpoint. The old one is valid until `expires_at`.
pub(super) async fn rotate_secret(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: WebhookEndpointId,
    secret: &SealedSecret,
    (expires_at, now): (Timestamp, Timestamp),
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 5] =
        [&tenant.uuid(), &id.uuid(), &secret.0, &expires_at, &now];
    tx.enqueue(&ROTATE, &params).await
}
