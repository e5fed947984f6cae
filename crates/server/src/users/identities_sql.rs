//! SQL of the table `identities`: the issuer and subject by which an identity provider knows a user.

use jiff::Timestamp;
use perennial_domain::{Id, TenantId, UserId};

use crate::db::{CellDatabase, Error, PooledConnection, RowReader, Sql, Transaction};

/// An identity of a user.
#[derive(Debug)]
pub struct LinkedIdentity {
    pub issuer: String,
    pub subject: String,
    /// When the user first signed in with it.
    pub created_at: Timestamp,
}

static IDENTITIES: Sql = Sql::new(
    "SELECT issuer, subject, created_at FROM identities WHERE tenant_id = $1 AND user_id = $2
     ORDER BY created_at, issuer, subject",
);

/// Returns the identities of a user, oldest first.
pub async fn identities(
    connection: &PooledConnection,
    tenant: TenantId,
    user: UserId,
) -> Result<Vec<LinkedIdentity>, Error> {
    let rows = connection
        .query(&IDENTITIES, &[&tenant.uuid(), &user.uuid()])
        .await?;
    rows.iter()
        .map(|row| {
            let row = RowReader::new(row);
            Ok(LinkedIdentity {
                issuer: row.get("issuer")?,
                subject: row.get("subject")?,
                created_at: row.get("created_at")?,
            })
        })
        .collect()
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
