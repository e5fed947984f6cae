//! SQL of the tables `payment_accounts` and `payment_account_secrets`.

use jiff::Timestamp;
use perennial_domain::{
    AsciiToken, Id, PaymentAccount, PaymentAccountDetails, PaymentAccountId, SingleLine, TenantId,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::account_secrets::SealedSecret;
use crate::db::{
    AgeKey, AgeOrder, ByAgeSql, CellDatabase, Error, PooledConnection, RowReader, Sql, TimeRange,
    Transaction, by_age,
};

/// The columns after the key `(tenant_id, id)` that requests set, except the API key. [`placeholders!`] and [`params!`] use
/// the same order.
macro_rules! columns {
    () => {
        "provider, mode, description, external_account_id, creates_users, created_at, updated_at"
    };
}

macro_rules! placeholders {
    () => {
        "$3, $4, $5, $6, $7, $8, $9"
    };
}

macro_rules! params {
    ($tenant:ident, $account:ident $(, $more:expr)*) => {
        &[
            &$tenant.uuid(),
            &$account.id.uuid(),
            &$account.provider.as_str(),
            &$account.mode.as_str(),
            &$account.details.description.as_ref().map(SingleLine::as_str),
            &$account
                .details
                .external_account_id
                .as_ref()
                .map(AsciiToken::as_str),
            &$account.details.creates_users,
            &$account.created_at,
            &$account.updated_at,
            $($more,)*
        ]
    };
}

fn from_row(row: &Row) -> Result<PaymentAccount, Error> {
    let row = RowReader::new(row);
    Ok(PaymentAccount {
        id: PaymentAccountId::new(row.get("id")?),
        provider: row.parse("provider")?,
        mode: row.parse("mode")?,
        details: PaymentAccountDetails {
            description: row.parse_optional("description")?,
            external_account_id: row.parse_optional("external_account_id")?,
            creates_users: row.get("creates_users")?,
        },
        has_api_key: row.get("has_api_key")?,
        has_secret: row.get("has_secret")?,
        last_heard_at: row.get("last_heard_at")?,
        last_reconciled_at: row.get("last_reconciled_at")?,
        pending_commands: row.get("pending_commands")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}

/// Selects a tenant's accounts that are not deleted and meet the conditions.
macro_rules! select {
    ($($conditions:tt)*) => {
        concat!(
            "SELECT id, ",
            columns!(),
            ", last_heard_at, last_reconciled_at, api_key IS NOT NULL AS has_api_key,
         EXISTS (SELECT FROM payment_account_secrets AS secret
            WHERE secret.tenant_id = $1 AND account_id = payment_accounts.id) AS has_secret,
         (SELECT count(*) FROM payment_commands AS command
            WHERE command.tenant_id = $1 AND command.account_id = payment_accounts.id
              AND acknowledged_at IS NULL) AS pending_commands
     FROM payment_accounts
     WHERE tenant_id = $1 AND deleted_at IS NULL AND ",
            $($conditions)*
        )
    };
}

static FIND: Sql = Sql::new(select!("id = $2"));

/// Returns the account with this id.
pub async fn find(
    database: &CellDatabase,
    tenant: TenantId,
    id: PaymentAccountId,
) -> Result<Option<PaymentAccount>, Error> {
    let row = database.read(&FIND, &[&tenant.uuid(), &id.uuid()]).await?;
    row.as_ref().map(from_row).transpose()
}

static LOCK: Sql = Sql::new(select!("id = $2 FOR NO KEY UPDATE"));

/// Locks the row until the end of the transaction and returns it.
pub(super) async fn lock(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: PaymentAccountId,
) -> Result<Option<PaymentAccount>, Error> {
    let rows = tx.query(&LOCK, &[&tenant.uuid(), &id.uuid()]).await?;
    rows.first().map(from_row).transpose()
}

static LIST: ByAgeSql = by_age!(select,);

/// Returns up to `limit` accounts after a key.
pub async fn list(
    connection: &PooledConnection,
    tenant: TenantId,
    (order, after): (AgeOrder, Option<AgeKey>),
    limit: i64,
) -> Result<Vec<PaymentAccount>, Error> {
    let AgeKey { created_at, id } = after.unwrap_or_else(|| order.start(TimeRange::default()));
    let params: [&(dyn ToSql + Sync); 4] = [&tenant.uuid(), &created_at, &id, &limit];
    let rows = connection.query(LIST.in_order(order), &params).await?;
    rows.iter().map(from_row).collect()
}

static INSERT: Sql = Sql::new(concat!(
    "INSERT INTO payment_accounts (tenant_id, id, ",
    columns!(),
    ", api_key) VALUES ($1, $2, ",
    placeholders!(),
    ", $10)"
));

/// Inserts an account.
pub(super) async fn insert(
    tx: &Transaction<'_>,
    tenant: TenantId,
    account: &PaymentAccount,
    api_key: Option<&SealedSecret>,
) -> Result<(), Error> {
    let api_key = api_key.map(|sealed| sealed.0.as_slice());
    tx.enqueue(&INSERT, params!(tenant, account, &api_key))
        .await
}

static UPDATE: Sql = Sql::new(concat!(
    "UPDATE payment_accounts SET (",
    columns!(),
    ") = (",
    placeholders!(),
    ") WHERE tenant_id = $1 AND id = $2"
));

/// Updates a locked account, except its API key.
pub(super) async fn update(
    tx: &Transaction<'_>,
    tenant: TenantId,
    account: &PaymentAccount,
) -> Result<(), Error> {
    tx.enqueue(&UPDATE, params!(tenant, account)).await
}

static FIND_API_KEY: Sql =
    Sql::new("SELECT api_key FROM payment_accounts WHERE tenant_id = $1 AND id = $2");

/// Returns the API key of an account, if it has one.
pub(super) async fn find_api_key(
    database: &CellDatabase,
    tenant: TenantId,
    id: PaymentAccountId,
) -> Result<Option<SealedSecret>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &id.uuid()];
    let Some(row) = database.read(&FIND_API_KEY, &params).await? else {
        return Ok(None);
    };
    let api_key: Option<Vec<u8>> = row.try_get(0)?;
    Ok(api_key.map(SealedSecret))
}

static SET_API_KEY: Sql =
    Sql::new("UPDATE payment_accounts SET api_key = $3 WHERE tenant_id = $1 AND id = $2");

/// Replaces or removes the API key of a locked account.
pub(super) async fn set_api_key(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: PaymentAccountId,
    api_key: Option<&SealedSecret>,
) -> Result<(), Error> {
    let api_key = api_key.map(|sealed| sealed.0.as_slice());
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &id.uuid(), &api_key];
    tx.enqueue(&SET_API_KEY, &params).await
}

pub(super) static SOFT_DELETE: Sql = Sql::new(
    "UPDATE payment_accounts SET deleted_at = $3, api_key = NULL WHERE tenant_id = $1 AND id = $2",
);

static TOUCH: Sql =
    Sql::new("UPDATE payment_accounts SET updated_at = $3 WHERE tenant_id = $1 AND id = $2");

/// Sets when a locked account was last changed.
pub(super) async fn touch(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: PaymentAccountId,
    now: Timestamp,
) -> Result<(), Error> {
    tx.enqueue(&TOUCH, &[&tenant.uuid(), &id.uuid(), &now])
        .await
}

// Once a minute, so that the notifications of an account do not wait for each other.
static HEARD: Sql = Sql::new(
    "UPDATE payment_accounts SET last_heard_at = $3
     WHERE tenant_id = $1 AND id = $2 AND coalesce(last_heard_at < $3::timestamptz - interval '1 minute', true)",
);

/// Stores that a notification was received at `now`.
pub(super) async fn set_last_heard(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: PaymentAccountId,
    now: Timestamp,
) -> Result<(), Error> {
    tx.enqueue(&HEARD, &[&tenant.uuid(), &id.uuid(), &now])
        .await
}

// The secret before the present one, or all if the account is deleted.
static DELETE_SECRETS: Sql = Sql::new(
    "DELETE FROM payment_account_secrets
     WHERE tenant_id = $1 AND account_id = $2 AND (expires_at IS NOT NULL OR $3)",
);
static EXPIRE_SECRET: Sql = Sql::new(
    "UPDATE payment_account_secrets SET expires_at = $3
     WHERE tenant_id = $1 AND account_id = $2 AND expires_at IS NULL",
);
static INSERT_SECRET: Sql = Sql::new(
    "INSERT INTO payment_account_secrets (tenant_id, account_id, id, secret, created_at) VALUES ($1, $2, $3, $4, $5)",
);

/// Gives a locked account a new secret. The previous one is valid until `expires_at`, and the one before is deleted. Returns
/// whether there is a previous one.
pub(super) async fn replace_secret(
    tx: &Transaction<'_>,
    (tenant, account): (TenantId, PaymentAccountId),
    (id, secret): (Uuid, &SealedSecret),
    (now, expires_at): (Timestamp, Timestamp),
) -> Result<bool, Error> {
    let (tenant, account) = (tenant.uuid(), account.uuid());
    tx.enqueue(&DELETE_SECRETS, &[&tenant, &account, &false])
        .await?;
    let expired = tx
        .execute(&EXPIRE_SECRET, &[&tenant, &account, &expires_at])
        .await?;
    let params: [&(dyn ToSql + Sync); 5] = [&tenant, &account, &id, &secret.0, &now];
    tx.enqueue(&INSERT_SECRET, &params).await?;
    Ok(expired > 0)
}

/// Deletes all secrets of a locked account.
pub(super) async fn delete_secrets(
    tx: &Transaction<'_>,
    tenant: TenantId,
    account: PaymentAccountId,
) -> Result<(), Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &account.uuid(), &true];
    tx.enqueue(&DELETE_SECRETS, &params).await
}
