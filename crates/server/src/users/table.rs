//! SQL of the tables `users` and `identities`, except locks (`lock_sql.rs`) and lists (`user_list_sql.rs`).

use jiff::Timestamp;
use perennial_domain::{Email, ExternalId, Id, TenantId, User, UserId};
use tokio_postgres::{
    Row,
    types::{Json, ToSql},
};

use crate::db::{CellDatabase, Error, PooledConnection, RowReader, Sql, Transaction};

/// The unique constraint on email addresses.
pub const EMAIL_UNIQUE: &str = "users_email";
/// The unique index on the client's own ids.
pub const EXTERNAL_ID_UNIQUE: &str = "users_external_id";

/// The columns that [`from_row`] reads. An email address may be empty.
macro_rules! columns {
    () => {
        "users.id, users.external_id, users.email, users.metadata, users.created_at, users.updated_at"
    };
}

/// Selects a tenant's users that are not erased and meet the conditions.
macro_rules! select {
    ($($conditions:tt)*) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM users
     WHERE tenant_id = $1 AND erased_at IS NULL AND ",
            $($conditions)*
        )
    };
}
pub(super) use {columns, select};

pub(super) fn from_row(row: &Row) -> Result<User, Error> {
    let row = RowReader::new(row);
    Ok(User {
        id: UserId::new(row.get("id")?),
        external_id: row.parse_optional("external_id")?,
        email: row.email()?,
        metadata: row.metadata()?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}

/// The columns `email` and `email_key` of a user. Without an address, the key is a space and the id: it sorts
/// before every address and equals none.
struct EmailColumns {
    email: String,
    key: String,
}

impl EmailColumns {
    fn new(user: UserId, email: Option<&Email>) -> Self {
        match email {
            Some(email) => Self {
                email: email.as_str().to_owned(),
                key: email.normalized().to_owned(),
            },
            None => Self {
                email: String::new(),
                key: format!(" {}", user.uuid()),
            },
        }
    }
}

static FIND: Sql = Sql::new(select!("id = $2"));

/// Returns the user with this id.
pub async fn find(
    database: &CellDatabase,
    tenant: TenantId,
    id: UserId,
) -> Result<Option<User>, Error> {
    let row = database.read(&FIND, &[&tenant.uuid(), &id.uuid()]).await?;
    row.as_ref().map(from_row).transpose()
}

static FIND_ERASURE: Sql = Sql::new("SELECT erased_at FROM users WHERE tenant_id = $1 AND id = $2");

/// Returns when the user was erased, if it was; `None` if there never was a user with this id.
pub async fn find_erasure(
    connection: &PooledConnection,
    tenant: TenantId,
    id: UserId,
) -> Result<Option<Option<Timestamp>>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &id.uuid()];
    let row = connection.query_opt(&FIND_ERASURE, &params).await?;
    row.map(|row| Ok(row.try_get(0)?)).transpose()
}

static IS_ERASED: Sql =
    Sql::new("SELECT 1 FROM users WHERE tenant_id = $1 AND id = $2 AND erased_at IS NOT NULL");

/// Returns whether a user was erased.
pub async fn is_erased(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
) -> Result<bool, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &user.uuid()];
    Ok(!tx.query(&IS_ERASED, &params).await?.is_empty())
}

static IDS_BY_EXTERNAL_ID: Sql =
    Sql::new("SELECT id FROM users WHERE tenant_id = $1 AND external_id = ANY ($2)");

/// Returns the ids of the users with these external ids.
pub async fn find_ids_by_external_id(
    database: &CellDatabase,
    tenant: TenantId,
    external_ids: &[ExternalId],
) -> Result<Vec<UserId>, Error> {
    let external_ids: Vec<&str> = external_ids.iter().map(ExternalId::as_str).collect();
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &external_ids];
    let rows = database.read_all(&IDS_BY_EXTERNAL_ID, &params).await?;
    rows.iter()
        .map(|row| Ok(UserId::new(row.try_get(0)?)))
        .collect()
}

static FIND_BY_EMAIL: Sql = Sql::new(select!("email_key = $2"));

/// Returns the user with this email address.
pub async fn find_by_email(
    database: &CellDatabase,
    tenant: TenantId,
    email: &Email,
) -> Result<Option<User>, Error> {
    let row = database
        .read(&FIND_BY_EMAIL, &[&tenant.uuid(), &email.normalized()])
        .await?;
    row.as_ref().map(from_row).transpose()
}

static FIND_BY_IDENTITY: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM identities
     JOIN users ON users.tenant_id = identities.tenant_id AND users.id = identities.user_id
     WHERE identities.tenant_id = $1 AND issuer = $2 AND subject = $3"
));

/// Returns the user with this identity.
pub async fn find_by_identity(
    database: &CellDatabase,
    tenant: TenantId,
    issuer: &str,
    subject: &str,
) -> Result<Option<User>, Error> {
    let row = database
        .read(&FIND_BY_IDENTITY, &[&tenant.uuid(), &issuer, &subject])
        .await?;
    row.as_ref().map(from_row).transpose()
}

// Any conflict: with an email address or an external id.
static INSERT: Sql = Sql::new(
    "INSERT INTO users (tenant_id, id, external_id, email, email_key, metadata, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT DO NOTHING",
);

/// Inserts a user, unless another has the same email address or external id. Returns whether it was
/// inserted.
pub async fn insert(tx: &Transaction<'_>, tenant: TenantId, user: &User) -> Result<bool, Error> {
    let columns = EmailColumns::new(user.id, user.email.as_ref());
    let params: [&(dyn ToSql + Sync); 8] = [
        &tenant.uuid(),
        &user.id.uuid(),
        &user.external_id.as_ref().map(ExternalId::as_str),
        &columns.email,
        &columns.key,
        &Json(user.metadata.pairs()),
        &user.created_at,
        &user.updated_at,
    ];
    Ok(tx.execute(&INSERT, &params).await? > 0)
}

// `NOT EXISTS` checks first, as in `CHANGE_EMAIL`.
static UPDATE: Sql = Sql::new(
    "UPDATE users SET external_id = $3, email = $4, email_key = $5, metadata = $6, updated_at = $7
     WHERE tenant_id = $1 AND id = $2
       AND NOT EXISTS (SELECT 1 FROM users AS other
                       WHERE other.tenant_id = $1 AND other.email_key = $5 AND other.id <> $2)",
);

/// Updates a locked user, unless another one has the email address. Returns whether it was updated. Fails with
/// a violation of [`EXTERNAL_ID_UNIQUE`] if another user has the external id, and of [`EMAIL_UNIQUE`] if another
/// transaction takes the address concurrently.
pub async fn update(tx: &Transaction<'_>, tenant: TenantId, user: &User) -> Result<bool, Error> {
    let columns = EmailColumns::new(user.id, user.email.as_ref());
    let params: [&(dyn ToSql + Sync); 7] = [
        &tenant.uuid(),
        &user.id.uuid(),
        &user.external_id.as_ref().map(ExternalId::as_str),
        &columns.email,
        &columns.key,
        &Json(user.metadata.pairs()),
        &user.updated_at,
    ];
    Ok(tx.execute(&UPDATE, &params).await? > 0)
}

// `NOT EXISTS` checks first, because a violation of the constraint would write the address
// to the PostgreSQL log.
static CHANGE_EMAIL: Sql = Sql::new(
    "UPDATE users SET email = $3, email_key = $4, updated_at = $5 WHERE tenant_id = $1 AND id = $2 AND erased_at IS NULL
       AND NOT EXISTS (SELECT 1 FROM users AS other
                       WHERE other.tenant_id = $1 AND other.email_key = $4 AND other.id <> $2)",
);

/// Changes the email address of a user, unless another user has it. Returns whether it was changed. Fails
/// with a violation of [`EMAIL_UNIQUE`] if another transaction takes the address concurrently.
pub async fn change_email(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
    email: &Email,
    now: Timestamp,
) -> Result<bool, Error> {
    let changed = tx
        .execute(
            &CHANGE_EMAIL,
            &[
                &tenant.uuid(),
                &user.uuid(),
                &email.as_str(),
                &email.normalized(),
                &now,
            ],
        )
        .await?;
    Ok(changed > 0)
}
