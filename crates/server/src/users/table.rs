//! SQL of the tables `users` and `identities`.

use jiff::Timestamp;
use perennial_domain::{AccountEmail, Email, Id, TenantId, User, UserId};
use tokio_postgres::Row;

use crate::db::{CellDatabase, Error, PooledConnection, RowReader, Sql, Transaction};

/// The unique constraint on email addresses.
pub const EMAIL_UNIQUE: &str = "users_email";

fn from_row(row: &Row) -> Result<User, Error> {
    let row = RowReader::new(row);
    Ok(User {
        id: UserId::new(row.get("id")?),
        email: row.parse::<AccountEmail>("email")?.0,
        created_at: row.get("created_at")?,
    })
}

static FIND: Sql = Sql::new(
    "SELECT id, email, created_at FROM users WHERE tenant_id = $1 AND id = $2 AND erased_at IS NULL",
);

/// Returns the user with this id.
pub async fn find(
    database: &CellDatabase,
    tenant: TenantId,
    id: UserId,
) -> Result<Option<User>, Error> {
    let row = database.read(&FIND, &[&tenant.uuid(), &id.uuid()]).await?;
    row.as_ref().map(from_row).transpose()
}

static LOCK_KEY_SHARE: Sql = Sql::new(
    "SELECT 1 FROM users WHERE tenant_id = $1 AND id = $2 AND erased_at IS NULL FOR KEY SHARE",
);

/// Prevents the erasure of the user until the end of the transaction. Returns whether the user exists.
pub async fn lock_key_share(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: UserId,
) -> Result<bool, Error> {
    let rows = tx
        .query(&LOCK_KEY_SHARE, &[&tenant.uuid(), &id.uuid()])
        .await?;
    Ok(!rows.is_empty())
}

static LOCK_FOR_REVOCATION: Sql =
    Sql::new("SELECT 1 FROM users WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE");

/// Locks a user while all of its sessions are revoked. Sign-ins and other revocations wait.
pub async fn lock_for_revocation(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
) -> Result<(), Error> {
    tx.query(&LOCK_FOR_REVOCATION, &[&tenant.uuid(), &user.uuid()])
        .await?;
    Ok(())
}

// Only erasing a user takes a conflicting lock.
static TRY_LOCK_KEY_SHARE: Sql = Sql::new(
    "SELECT 1 FROM users WHERE tenant_id = $1 AND id = $2 AND erased_at IS NULL FOR KEY SHARE SKIP LOCKED",
);

/// Like [`lock_key_share`], but does not wait: returns false if the user is being erased. For callers that
/// already hold a lock that comes after the user in the lock order.
pub async fn try_lock_key_share(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: UserId,
) -> Result<bool, Error> {
    let rows = tx
        .query(&TRY_LOCK_KEY_SHARE, &[&tenant.uuid(), &id.uuid()])
        .await?;
    Ok(!rows.is_empty())
}

static FIND_BY_EMAIL: Sql =
    Sql::new("SELECT id, email, created_at FROM users WHERE tenant_id = $1 AND email_key = $2");

/// Returns the user with this email address.
pub async fn find_by_email(
    database: &CellDatabase,
    tenant: TenantId,
    email: &Email,
) -> Result<Option<User>, Error> {
    let row = database
        .read(&FIND_BY_EMAIL, &[&tenant.uuid(), &email.normalized()])
        .await?;
    let user = row.as_ref().map(from_row).transpose()?;
    Ok(user.filter(|user| user.email.same_mailbox(email)))
}

static FIND_BY_IDENTITY: Sql = Sql::new(
    "SELECT users.id, users.email, users.created_at
     FROM identities
     JOIN users ON users.tenant_id = identities.tenant_id AND users.id = identities.user_id
     WHERE identities.tenant_id = $1 AND issuer = $2 AND subject = $3",
);

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

// The recursive part skips from one issuer to the next, because the index starts with the issuer.
static FIND_BY_SUBJECT: Sql = Sql::new(
    "WITH RECURSIVE issuers AS (
        (SELECT issuer FROM identities WHERE tenant_id = $1 ORDER BY issuer LIMIT 1)
        UNION ALL
        SELECT (SELECT identities.issuer FROM identities
                WHERE tenant_id = $1 AND identities.issuer > issuers.issuer ORDER BY identities.issuer LIMIT 1)
        FROM issuers WHERE issuers.issuer IS NOT NULL)
     SELECT user_id FROM issuers
     JOIN identities ON tenant_id = $1 AND identities.issuer = issuers.issuer AND subject = $2",
);

/// Returns the users with this subject, at most one per identity provider.
pub async fn find_by_subject(
    database: &CellDatabase,
    tenant: TenantId,
    subject: &str,
) -> Result<Vec<UserId>, Error> {
    let rows = database
        .read_all(&FIND_BY_SUBJECT, &[&tenant.uuid(), &subject])
        .await?;
    rows.iter()
        .map(|row| Ok(UserId::new(row.try_get("user_id")?)))
        .collect()
}

static INSERT: Sql = Sql::new(
    "INSERT INTO users (tenant_id, id, email, email_key, created_at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT ON CONSTRAINT users_email DO NOTHING",
);

/// Inserts a user, unless another has the same email address. Returns whether it was inserted.
pub async fn insert(tx: &Transaction<'_>, tenant: TenantId, user: &User) -> Result<bool, Error> {
    let email = &user.email;
    let inserted = tx
        .execute(
            &INSERT,
            &[
                &tenant.uuid(),
                &user.id.uuid(),
                &email.as_str(),
                &email.normalized(),
                &user.created_at,
            ],
        )
        .await?;
    Ok(inserted > 0)
}

static LOCK_BY_EMAIL: Sql = Sql::new(
    "SELECT id, email, created_at FROM users WHERE tenant_id = $1 AND email_key = $2 FOR NO KEY UPDATE",
);
static HAS_IDENTITY: Sql =
    Sql::new("SELECT 1 FROM identities WHERE tenant_id = $1 AND user_id = $2 LIMIT 1");

/// Locks and returns the user with this email address, and whether the user has an identity.
pub async fn lock_by_email(
    tx: &Transaction<'_>,
    tenant: TenantId,
    email: &Email,
) -> Result<Option<(User, bool)>, Error> {
    let rows = tx
        .query(&LOCK_BY_EMAIL, &[&tenant.uuid(), &email.normalized()])
        .await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let user = from_row(row)?;
    let identities = tx
        .query(&HAS_IDENTITY, &[&tenant.uuid(), &user.id.uuid()])
        .await?;
    Ok(Some((user, !identities.is_empty())))
}

static IDENTITIES: Sql =
    Sql::new("SELECT issuer, subject FROM identities WHERE tenant_id = $1 AND user_id = $2");

/// Returns the identities of a user, as issuer and subject.
pub async fn identities(
    connection: &PooledConnection,
    tenant: TenantId,
    user: UserId,
) -> Result<Vec<(String, String)>, Error> {
    let rows = connection
        .query(&IDENTITIES, &[&tenant.uuid(), &user.uuid()])
        .await?;
    rows.iter()
        .map(|row| Ok((row.try_get("issuer")?, row.try_get("subject")?)))
        .collect()
}

static IDENTITY_EXISTS: Sql =
    Sql::new("SELECT 1 FROM identities WHERE tenant_id = $1 AND issuer = $2 AND subject = $3");

pub async fn identity_exists(
    tx: &Transaction<'_>,
    tenant: TenantId,
    issuer: &str,
    subject: &str,
) -> Result<bool, Error> {
    let rows = tx
        .query(&IDENTITY_EXISTS, &[&tenant.uuid(), &issuer, &subject])
        .await?;
    Ok(!rows.is_empty())
}

static INSERT_IDENTITY: Sql = Sql::new(
    "INSERT INTO identities (tenant_id, issuer, subject, user_id, created_at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT ON CONSTRAINT identities_subject DO NOTHING",
);

/// Links an identity to a user, unless it is linked already. Returns whether it was inserted.
pub async fn insert_identity(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
    issuer: &str,
    subject: &str,
    now: Timestamp,
) -> Result<bool, Error> {
    let inserted = tx
        .execute(
            &INSERT_IDENTITY,
            &[&tenant.uuid(), &issuer, &subject, &user.uuid(), &now],
        )
        .await?;
    Ok(inserted > 0)
}

static LOCK_FOR_UPDATE: Sql = Sql::new(
    "SELECT 1 FROM users WHERE tenant_id = $1 AND id = $2 AND erased_at IS NULL FOR UPDATE",
);

/// Locks the user against changes and sign-ins. Returns whether the user exists.
pub async fn lock_for_update(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
) -> Result<bool, Error> {
    let rows = tx
        .query(&LOCK_FOR_UPDATE, &[&tenant.uuid(), &user.uuid()])
        .await?;
    Ok(!rows.is_empty())
}

static DELETE_IDENTITIES: Sql =
    Sql::new("DELETE FROM identities WHERE tenant_id = $1 AND user_id = $2");
static ERASE: Sql = Sql::new(
    "UPDATE users SET email = $3, email_key = 'erased ' || id, erased_at = $4 WHERE tenant_id = $1 AND id = $2",
);

/// Erases the identities and email address of a user. The placeholder's `email_key` contains no `@`, so
/// it never equals that of a real address.
pub async fn erase(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(&DELETE_IDENTITIES, &[&tenant.uuid(), &user.uuid()])
        .await?;
    let placeholder = format!("{user}@erased.invalid");
    tx.execute(&ERASE, &[&tenant.uuid(), &user.uuid(), &placeholder, &now])
        .await?;
    Ok(())
}

// The prefix lets the planner use the partial index `idempotency_keys_of_users`.
static DELETE_STORED_RESPONSES: Sql = Sql::new(
    "DELETE FROM idempotency_keys WHERE tenant_id = $1 AND location = $2 AND location LIKE '/users/%'",
);

/// Deletes the stored responses to `POST /users` that contain the user's email address.
pub async fn delete_stored_responses(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
) -> Result<(), Error> {
    let location = format!("/users/{user}");
    tx.execute(&DELETE_STORED_RESPONSES, &[&tenant.uuid(), &location])
        .await?;
    Ok(())
}

// `NOT EXISTS` checks first, because a violation of the constraint would write the address
// to the PostgreSQL log.
static CHANGE_EMAIL: Sql = Sql::new(
    "UPDATE users SET email = $3, email_key = $4 WHERE tenant_id = $1 AND id = $2 AND erased_at IS NULL
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
) -> Result<bool, Error> {
    let changed = tx
        .execute(
            &CHANGE_EMAIL,
            &[
                &tenant.uuid(),
                &user.uuid(),
                &email.as_str(),
                &email.normalized(),
            ],
        )
        .await?;
    Ok(changed > 0)
}
