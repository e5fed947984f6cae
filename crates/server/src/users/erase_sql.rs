//! SQL that erases a user.

use jiff::Timestamp;
use perennial_domain::{Id, TenantId, UserId};

use crate::db::{Error, Sql, Transaction};

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
    "UPDATE users SET email = '', email_key = ' ' || id, external_id = NULL, metadata = '{}', updated_at = $3, erased_at = $3
     WHERE tenant_id = $1 AND id = $2",
);

/// Erases the identities, the email address, the external id and the metadata of a user. The `email_key` is that
/// of a user without an address.
pub async fn erase(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
    now: Timestamp,
) -> Result<(), Error> {
    tx.execute(&DELETE_IDENTITIES, &[&tenant.uuid(), &user.uuid()])
        .await?;
    tx.execute(&ERASE, &[&tenant.uuid(), &user.uuid(), &now])
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
