//! SQL for support: which objects of payment providers records follow, what is not applied, and which commands are pending.

use jiff::Timestamp;
use perennial_domain::{
    FactFields, Id, PaymentAccountId, PaymentObjectKind, PaymentProvider, TenantId,
};
use tokio_postgres::{
    Row,
    types::{Json, ToSql},
};
use uuid::Uuid;

use crate::db::{Error, PooledConnection, RowReader, Sql};

/// An object of a payment provider, for people.
#[derive(Debug, Clone)]
pub struct SupportedObject {
    pub provider: PaymentProvider,
    pub account: PaymentAccountId,
    pub kind: PaymentObjectKind,
    pub external_id: String,
    /// The subscription or payment that follows the object.
    pub record: Option<Uuid>,
    /// The latest fact that was applied.
    pub fact: Option<FactFields>,
    pub state: ObjectState,
    /// The provider's ids of the records that it waits for.
    pub awaited_ids: Vec<String>,
    /// Why the last attempt has not applied it.
    pub reason: Option<String>,
    /// Failed attempts since the last success.
    pub attempts: i32,
    pub updated_at: Timestamp,
}

/// Whether the latest change of an object is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectState {
    Applied,
    /// It is fetched soon, or again after a failed attempt.
    Pending,
    /// It waits for a plan, a user or a subscription.
    Waiting,
    /// A person must repair something.
    Failed,
}

impl ObjectState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Pending => "pending",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
        }
    }
}

/// A command that a payment provider has not acknowledged.
#[derive(Debug, Clone)]
pub struct PendingCommand {
    pub provider: PaymentProvider,
    pub account: PaymentAccountId,
    /// The provider's id of the subscription.
    pub external_id: String,
    pub command: String,
    /// Failed attempts.
    pub attempts: i32,
    /// Why the last attempt failed.
    pub reason: Option<String>,
    pub next_attempt_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

/// Selects the objects of a tenant that meet the conditions, with their account's provider.
macro_rules! select_objects {
    ($($conditions:tt)*) => {
        concat!(
            "SELECT provider, account_id, kind, external_id, record_id, fact, waits_for, waits_for_ids, due_at, reason,
         attempts, object.updated_at
     FROM payment_objects AS object
     JOIN payment_accounts AS account ON account.tenant_id = object.tenant_id AND account.id = object.account_id
     WHERE object.tenant_id = $1 AND ",
            $($conditions)*
        )
    };
}

fn object_from_row(row: &Row) -> Result<SupportedObject, Error> {
    let row = RowReader::new(row);
    let fact: Option<Json<FactFields>> = row.get("fact")?;
    let waits_for: Option<String> = row.get("waits_for")?;
    let awaited_ids: Option<Vec<String>> = row.get("waits_for_ids")?;
    let due_at: Option<Timestamp> = row.get("due_at")?;
    let reason: Option<String> = row.get("reason")?;
    let state = match (waits_for, due_at, &reason) {
        (Some(_), ..) => ObjectState::Waiting,
        (None, Some(_), _) => ObjectState::Pending,
        (None, None, Some(_)) => ObjectState::Failed,
        (None, None, None) => ObjectState::Applied,
    };
    Ok(SupportedObject {
        provider: row.parse("provider")?,
        account: PaymentAccountId::new(row.get("account_id")?),
        kind: row.parse("kind")?,
        external_id: row.get("external_id")?,
        record: row.get("record_id")?,
        fact: fact.map(|Json(fields)| fields),
        state,
        awaited_ids: awaited_ids.unwrap_or_default(),
        reason,
        attempts: row.get("attempts")?,
        updated_at: row.get("updated_at")?,
    })
}

async fn list_objects(
    connection: &PooledConnection,
    sql: &'static Sql,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Vec<SupportedObject>, Error> {
    let rows = connection.query(sql, params).await?;
    rows.iter().map(object_from_row).collect()
}

static BY_RECORDS: Sql = Sql::new(select_objects!(
    "record_id = ANY ($2) AND kind <> 'customer' ORDER BY object.created_at"
));
static AWAITING: Sql = Sql::new(select_objects!(
    "waits_for = 'subscription' AND waits_for_ids && $2 ORDER BY object.created_at"
));

/// Returns the objects that these subscriptions and payments follow, and those that wait for one of the subscriptions.
pub async fn list_objects_of_records(
    connection: &PooledConnection,
    tenant: TenantId,
    records: &[Uuid],
    subscriptions: &[&str],
) -> Result<Vec<SupportedObject>, Error> {
    let tenant = tenant.uuid();
    let mut objects = list_objects(connection, &BY_RECORDS, &[&tenant, &records]).await?;
    let awaiting = list_objects(connection, &AWAITING, &[&tenant, &subscriptions]).await?;
    objects.extend(awaiting);
    Ok(objects)
}

static FAILED: Sql = Sql::new(select_objects!(
    "account_id = $2 AND reason IS NOT NULL AND due_at IS NULL ORDER BY object.updated_at DESC LIMIT $3"
));
static WAITING: Sql = Sql::new(select_objects!(
    "account_id = $2 AND waits_for IS NOT NULL ORDER BY object.dirty_since LIMIT $3"
));
static RETRIED: Sql = Sql::new(select_objects!(
    "account_id = $2 AND due_at IS NOT NULL AND waits_for IS NULL AND reason IS NOT NULL ORDER BY object.dirty_since LIMIT $3"
));

/// Returns up to `limit` objects of an account each: the latest that failed, and those that have been waiting for a record or
/// for a successful attempt the longest.
pub async fn list_unresolved_objects(
    connection: &PooledConnection,
    (tenant, account): (TenantId, PaymentAccountId),
    limit: i64,
) -> Result<Vec<SupportedObject>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &account.uuid(), &limit];
    let mut objects = list_objects(connection, &FAILED, &params).await?;
    objects.extend(list_objects(connection, &WAITING, &params).await?);
    objects.extend(list_objects(connection, &RETRIED, &params).await?);
    Ok(objects)
}

static COUNT_UNRESOLVED: Sql = Sql::new(
    "SELECT
        (SELECT count(*) FROM payment_objects
         WHERE tenant_id = $1 AND account_id = $2 AND waits_for IS NOT NULL) AS waiting,
        (SELECT count(*) FROM payment_objects
         WHERE tenant_id = $1 AND account_id = $2 AND reason IS NOT NULL AND due_at IS NULL) AS failed,
        (SELECT min(dirty_since) FROM payment_objects
         WHERE tenant_id = $1 AND account_id = $2 AND due_at IS NOT NULL AND waits_for IS NULL) AS pending_since",
);

/// What of an account is not applied.
#[derive(Debug, Clone, Copy)]
pub struct UnresolvedCounts {
    pub waiting: i64,
    pub failed: i64,
    /// Since when the oldest object that does not wait for a record is pending.
    pub pending_since: Option<Timestamp>,
}

/// Counts the objects of an account that are not applied.
pub async fn count_unresolved_objects(
    connection: &PooledConnection,
    tenant: TenantId,
    account: PaymentAccountId,
) -> Result<UnresolvedCounts, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &account.uuid()];
    let row = connection.query_opt(&COUNT_UNRESOLVED, &params).await?;
    let row = row.ok_or_else(|| Error::Internal("no counts were returned".to_owned()))?;
    let row = RowReader::new(&row);
    Ok(UnresolvedCounts {
        waiting: row.get("waiting")?,
        failed: row.get("failed")?,
        pending_since: row.get("pending_since")?,
    })
}

/// Selects the commands of a tenant that are not acknowledged and meet the conditions, oldest first.
macro_rules! select_commands {
    ($conditions:literal) => {
        concat!(
            "SELECT provider, account_id, external_id, command, attempts, reason, next_attempt_at, command.created_at
     FROM payment_commands AS command
     JOIN payment_accounts AS account ON account.tenant_id = command.tenant_id AND account.id = command.account_id
     WHERE command.tenant_id = $1 AND acknowledged_at IS NULL AND ",
            $conditions,
            " ORDER BY command.created_at LIMIT $3"
        )
    };
}

fn command_from_row(row: &Row) -> Result<PendingCommand, Error> {
    let row = RowReader::new(row);
    Ok(PendingCommand {
        provider: row.parse("provider")?,
        account: PaymentAccountId::new(row.get("account_id")?),
        external_id: row.get("external_id")?,
        command: row.get("command")?,
        attempts: row.get("attempts")?,
        reason: row.get("reason")?,
        next_attempt_at: row.get("next_attempt_at")?,
        created_at: row.get("created_at")?,
    })
}

static PENDING_OF_ACCOUNT: Sql = Sql::new(select_commands!("command.account_id = $2"));
static PENDING_OF_OBJECTS: Sql = Sql::new(select_commands!("command.external_id = ANY ($2)"));

/// Returns up to `limit` pending commands of an account, oldest first.
pub async fn list_pending_commands(
    connection: &PooledConnection,
    (tenant, account): (TenantId, PaymentAccountId),
    limit: i64,
) -> Result<Vec<PendingCommand>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &account.uuid(), &limit];
    let rows = connection.query(&PENDING_OF_ACCOUNT, &params).await?;
    rows.iter().map(command_from_row).collect()
}

/// Returns the pending commands about subscriptions with these ids of payment providers, oldest first.
pub async fn list_pending_commands_about(
    connection: &PooledConnection,
    tenant: TenantId,
    external_ids: &[&str],
) -> Result<Vec<PendingCommand>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &external_ids, &i64::MAX];
    let rows = connection.query(&PENDING_OF_OBJECTS, &params).await?;
    rows.iter().map(command_from_row).collect()
}
