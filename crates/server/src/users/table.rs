//! The tables `users` and `identities`: all their SQL.

use jiff::Timestamp;
use perennial_domain::{Email, Id, TenantId, User, UserId};
use tokio_postgres::Row;

use crate::db::{Connection, Engine, Error, Sql, Transaction, row::Reader};

/// The constraint that keeps e-mail addresses unique.
pub const EMAIL_UNIQUE: &str = "users_email";

fn user(row: &Row) -> Result<User, Error> {
    let row = Reader::of(row);
    Ok(User {
        id: UserId::new(row.get("id")?),
        email: row.text("email")?,
        created_at: row.get("created_at")?,
    })
}

static FIND: Sql = Sql::new(
    "SELECT id, email, created_at FROM users WHERE tenant_id = $1 AND id = $2 AND erased_at IS NULL",
);

/// The user with this id.
pub async fn find(engine: &Engine, tenant: TenantId, id: UserId) -> Result<Option<User>, Error> {
    let row = engine.read(&FIND, &[&tenant.uuid(), &id.uuid()]).await?;
    row.as_ref().map(user).transpose()
}

static HOLD: Sql = Sql::new(
    "SELECT 1 FROM users WHERE tenant_id = $1 AND id = $2 AND erased_at IS NULL FOR KEY SHARE",
);

/// Whether there is such a user; nobody erases it until the end of the transaction.
pub async fn hold(tx: &Transaction<'_>, tenant: TenantId, id: UserId) -> Result<bool, Error> {
    let rows = tx.query(&HOLD, &[&tenant.uuid(), &id.uuid()]).await?;
    Ok(!rows.is_empty())
}

// Whoever has locked the user against this is erasing it.
static HOLD_IF_FREE: Sql = Sql::new(
    "SELECT 1 FROM users WHERE tenant_id = $1 AND id = $2 AND erased_at IS NULL FOR KEY SHARE SKIP LOCKED",
);

/// The same, without waiting for somebody who is erasing it just now: then it counts as gone. For whoever has locked what
/// comes after the user.
pub async fn hold_if_free(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: UserId,
) -> Result<bool, Error> {
    let rows = tx
        .query(&HOLD_IF_FREE, &[&tenant.uuid(), &id.uuid()])
        .await?;
    Ok(!rows.is_empty())
}

static FIND_BY_EMAIL: Sql =
    Sql::new("SELECT id, email, created_at FROM users WHERE tenant_id = $1 AND email_key = $2");

/// The user with this e-mail address.
pub async fn find_by_email(
    engine: &Engine,
    tenant: TenantId,
    email: &Email,
) -> Result<Option<User>, Error> {
    let row = engine
        .read(&FIND_BY_EMAIL, &[&tenant.uuid(), &email.key()])
        .await?;
    row.as_ref().map(user).transpose()
}

static FIND_BY_IDENTITY: Sql = Sql::new(
    "SELECT users.id, users.email, users.created_at
     FROM identities
     JOIN users ON users.tenant_id = identities.tenant_id AND users.id = identities.user_id
     WHERE identities.tenant_id = $1 AND issuer = $2 AND subject = $3",
);

/// The user whom a provider knows by this subject.
pub async fn find_by_identity(
    engine: &Engine,
    tenant: TenantId,
    issuer: &str,
    subject: &str,
) -> Result<Option<User>, Error> {
    let row = engine
        .read(&FIND_BY_IDENTITY, &[&tenant.uuid(), &issuer, &subject])
        .await?;
    row.as_ref().map(user).transpose()
}

static INSERT: Sql = Sql::new(
    "INSERT INTO users (tenant_id, id, email, email_key, created_at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT ON CONSTRAINT users_email DO NOTHING",
);

/// Adds a user, unless another has its e-mail address; whether it did.
pub async fn insert(tx: &Transaction<'_>, tenant: TenantId, user: &User) -> Result<bool, Error> {
    let email = &user.email;
    let added = tx
        .execute(
            &INSERT,
            &[
                &tenant.uuid(),
                &user.id.uuid(),
                &email.as_str(),
                &email.key(),
                &user.created_at,
            ],
        )
        .await?;
    Ok(added > 0)
}

static LOCK_BY_EMAIL: Sql = Sql::new(
    "SELECT id, email, created_at FROM users WHERE tenant_id = $1 AND email_key = $2 FOR NO KEY UPDATE",
);
static HAS_IDENTITY: Sql =
    Sql::new("SELECT 1 FROM identities WHERE tenant_id = $1 AND user_id = $2 LIMIT 1");

/// The user with this e-mail address, and whether any provider knows it; nobody else binds or changes it until the
/// end of the transaction.
pub async fn lock_by_email(
    tx: &Transaction<'_>,
    tenant: TenantId,
    email: &Email,
) -> Result<Option<(User, bool)>, Error> {
    let rows = tx
        .query(&LOCK_BY_EMAIL, &[&tenant.uuid(), &email.key()])
        .await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let user = user(row)?;
    let identities = tx
        .query(&HAS_IDENTITY, &[&tenant.uuid(), &user.id.uuid()])
        .await?;
    Ok(Some((user, !identities.is_empty())))
}

static IDENTITIES: Sql =
    Sql::new("SELECT issuer, subject FROM identities WHERE tenant_id = $1 AND user_id = $2");

/// What providers know a user by, as issuer and subject.
pub async fn identities(
    connection: &Connection,
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

static IS_BOUND: Sql =
    Sql::new("SELECT 1 FROM identities WHERE tenant_id = $1 AND issuer = $2 AND subject = $3");

/// Whether some user is bound to what a provider knows it by.
pub async fn is_bound(
    tx: &Transaction<'_>,
    tenant: TenantId,
    issuer: &str,
    subject: &str,
) -> Result<bool, Error> {
    let rows = tx
        .query(&IS_BOUND, &[&tenant.uuid(), &issuer, &subject])
        .await?;
    Ok(!rows.is_empty())
}

static BIND: Sql = Sql::new(
    "INSERT INTO identities (tenant_id, issuer, subject, user_id, created_at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT ON CONSTRAINT identities_subject DO NOTHING",
);

/// Binds a user to what a provider knows it by, unless that is bound already; whether it did.
pub async fn bind(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
    issuer: &str,
    subject: &str,
    now: Timestamp,
) -> Result<bool, Error> {
    let bound = tx
        .execute(
            &BIND,
            &[&tenant.uuid(), &issuer, &subject, &user.uuid(), &now],
        )
        .await?;
    Ok(bound > 0)
}

static LOCK: Sql = Sql::new(
    "SELECT 1 FROM users WHERE tenant_id = $1 AND id = $2 AND erased_at IS NULL FOR UPDATE",
);

/// Whether there is such a user; nobody else binds it, changes it or signs in as it until the end of the transaction.
pub async fn lock(tx: &Transaction<'_>, tenant: TenantId, user: UserId) -> Result<bool, Error> {
    let rows = tx.query(&LOCK, &[&tenant.uuid(), &user.uuid()]).await?;
    Ok(!rows.is_empty())
}

static UNBIND: Sql = Sql::new("DELETE FROM identities WHERE tenant_id = $1 AND user_id = $2");
static ERASE: Sql = Sql::new(
    "UPDATE users SET email = $3, email_key = 'erased ' || id, erased_at = $4 WHERE tenant_id = $1 AND id = $2",
);

/// Forgets who a user was; its address becomes one that is compared with nobody's, having no @ in its key.
pub async fn erase(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(&UNBIND, &[&tenant.uuid(), &user.uuid()]).await?;
    let nobody = format!("{user}@erased.invalid");
    tx.execute(&ERASE, &[&tenant.uuid(), &user.uuid(), &nobody, &now])
        .await?;
    Ok(())
}

// Looks first, because a refusal by the constraint puts the address into the database server's log.
static CHANGE_EMAIL: Sql = Sql::new(
    "UPDATE users SET email = $3, email_key = $4 WHERE tenant_id = $1 AND id = $2 AND erased_at IS NULL
       AND NOT EXISTS (SELECT 1 FROM users AS other WHERE other.tenant_id = $1 AND other.email_key = $4)",
);

/// Gives a user another e-mail address, unless another user has it; whether it did. If somebody takes it at the
/// same time, [`EMAIL_UNIQUE`] refuses it.
pub async fn change_email(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
    email: &Email,
) -> Result<bool, Error> {
    let changed = tx
        .execute(
            &CHANGE_EMAIL,
            &[&tenant.uuid(), &user.uuid(), &email.as_str(), &email.key()],
        )
        .await?;
    Ok(changed > 0)
}
