//! SQL of the table `identity_providers`.

use jiff::Timestamp;
use perennial_domain::{Id, IdentityProviderId, TenantId};
use tokio_postgres::{Row, types::ToSql};

use super::{AcceptedTokens, IdentityProvider, SealedSecret, TokenVerification};
use crate::db::{
    AgeKey, AgeOrder, ByAgeSql, CellDatabase, Error, PooledConnection, Sql, TimeRange, Transaction,
    by_age,
};

/// A provider of a tenant.
#[derive(Debug, Clone)]
pub struct StoredProvider {
    pub id: IdentityProviderId,
    pub created_at: Timestamp,
    pub provider: IdentityProvider,
}

/// Selects a tenant's providers that meet the conditions.
macro_rules! select {
    ($($conditions:tt)*) => {
        concat!(
            "SELECT id, created_at, issuer, audiences, verify, endpoint, client_id, client_secret, accept_id_tokens,
        accept_bound_tokens, accept_azp, is_guarded
     FROM identity_providers WHERE tenant_id = $1 AND ",
            $($conditions)*
        )
    };
}

fn read_provider(row: &Row) -> Result<IdentityProvider, Error> {
    Ok(IdentityProvider {
        issuer: row.try_get("issuer")?,
        audiences: row.try_get("audiences")?,
        verify: read_verification(row)?,
        accept: AcceptedTokens {
            id_tokens: row.try_get("accept_id_tokens")?,
            bound_tokens: row.try_get("accept_bound_tokens")?,
            azp: row.try_get("accept_azp")?,
        },
        is_guarded: row.try_get("is_guarded")?,
    })
}

fn read_verification(row: &Row) -> Result<TokenVerification, Error> {
    Ok(match row.try_get("verify")? {
        "jwt" => TokenVerification::Jwt,
        "introspection" => TokenVerification::Introspection {
            endpoint: row.try_get("endpoint")?,
            client_id: row.try_get("client_id")?,
            secret: SealedSecret(row.try_get("client_secret")?),
        },
        "tokeninfo" => TokenVerification::Tokeninfo {
            endpoint: row.try_get("endpoint")?,
        },
        "userinfo" => TokenVerification::Userinfo,
        other => {
            return Err(Error::Internal(format!(
                "identity_providers.verify: unknown value {other}"
            )));
        }
    })
}

static LIST: Sql = Sql::new(select!("true ORDER BY created_at, issuer"));

/// Returns the providers of a tenant, oldest first.
pub async fn list(
    home: &PooledConnection,
    tenant: TenantId,
) -> Result<Vec<IdentityProvider>, Error> {
    let rows = home.query(&LIST, &[&tenant.uuid()]).await?;
    rows.iter().map(read_provider).collect()
}

fn read_stored(row: &Row) -> Result<StoredProvider, Error> {
    Ok(StoredProvider {
        id: IdentityProviderId::new(row.try_get("id")?),
        created_at: row.try_get("created_at")?,
        provider: read_provider(row)?,
    })
}

static FIND: Sql = Sql::new(select!("id = $2"));

/// Returns the provider with this id.
pub async fn find(
    home: &CellDatabase,
    tenant: TenantId,
    id: IdentityProviderId,
) -> Result<Option<StoredProvider>, Error> {
    let row = home.read(&FIND, &[&tenant.uuid(), &id.uuid()]).await?;
    row.as_ref().map(read_stored).transpose()
}

static LOCK: Sql = Sql::new(select!("id = $2 FOR UPDATE"));

/// Locks a provider until the end of the transaction and returns it.
pub async fn lock(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: IdentityProviderId,
) -> Result<Option<StoredProvider>, Error> {
    let rows = tx.query(&LOCK, &[&tenant.uuid(), &id.uuid()]).await?;
    rows.first().map(read_stored).transpose()
}

static PAGE: ByAgeSql = by_age!(select,);

/// Returns up to `limit` providers after a key.
pub async fn page(
    home: &PooledConnection,
    tenant: TenantId,
    (order, after): (AgeOrder, Option<AgeKey>),
    limit: i64,
) -> Result<Vec<StoredProvider>, Error> {
    let AgeKey { created_at, id } = after.unwrap_or_else(|| order.start(TimeRange::default()));
    let params: [&(dyn ToSql + Sync); 4] = [&tenant.uuid(), &created_at, &id, &limit];
    let rows = home.query(PAGE.in_order(order), &params).await?;
    rows.iter().map(read_stored).collect()
}

/// The columns `endpoint`, `client_id` and `client_secret`.
fn verification_columns(
    verify: &TokenVerification,
) -> (Option<&str>, Option<&str>, Option<&Vec<u8>>) {
    match verify {
        TokenVerification::Jwt | TokenVerification::Userinfo => (None, None, None),
        TokenVerification::Tokeninfo { endpoint } => (Some(endpoint), None, None),
        TokenVerification::Introspection {
            endpoint,
            client_id,
            secret,
        } => (endpoint.as_deref(), Some(client_id), Some(&secret.0)),
    }
}

macro_rules! params {
    ($tenant:ident, $stored:ident, $columns:ident) => {
        &[
            &$tenant.uuid(),
            &$stored.id.uuid(),
            &$stored.provider.issuer,
            &$stored.provider.audiences,
            &$stored.provider.verify.as_str(),
            &$columns.0,
            &$columns.1,
            &$columns.2,
            &$stored.created_at,
            &$stored.provider.accept.id_tokens,
            &$stored.provider.accept.bound_tokens,
            &$stored.provider.accept.azp,
            &$stored.provider.is_guarded,
        ]
    };
}

static INSERT: Sql = Sql::new(
    "INSERT INTO identity_providers (tenant_id, id, issuer, audiences, verify, endpoint, client_id, client_secret, created_at,
        accept_id_tokens, accept_bound_tokens, accept_azp, is_guarded)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
);

/// Inserts a provider. Fails with the constraint `identity_providers_issuer` if the issuer exists, and
/// `identity_providers_opaque` for a second provider of opaque tokens.
pub async fn insert(
    tx: &Transaction<'_>,
    tenant: TenantId,
    stored: &StoredProvider,
) -> Result<(), Error> {
    let columns = verification_columns(&stored.provider.verify);
    tx.execute(&INSERT, params!(tenant, stored, columns))
        .await?;
    Ok(())
}

static UPDATE: Sql = Sql::new(
    "UPDATE identity_providers SET (issuer, audiences, verify, endpoint, client_id, client_secret, created_at,
        accept_id_tokens, accept_bound_tokens, accept_azp, is_guarded) = ($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
     WHERE tenant_id = $1 AND id = $2",
);

/// Updates a locked provider. Fails like [`insert`].
pub async fn update(
    tx: &Transaction<'_>,
    tenant: TenantId,
    stored: &StoredProvider,
) -> Result<(), Error> {
    let columns = verification_columns(&stored.provider.verify);
    tx.execute(&UPDATE, params!(tenant, stored, columns))
        .await?;
    Ok(())
}

static FIND_BY_ISSUER: Sql =
    Sql::new("SELECT id FROM identity_providers WHERE tenant_id = $1 AND issuer = $2");

/// Returns the id of the provider with this issuer.
pub async fn find_by_issuer(
    home: &PooledConnection,
    tenant: TenantId,
    issuer: &str,
) -> Result<Option<IdentityProviderId>, Error> {
    let row = home
        .query_opt(&FIND_BY_ISSUER, &[&tenant.uuid(), &issuer])
        .await?;
    row.map(|row| Ok(IdentityProviderId::new(row.try_get(0)?)))
        .transpose()
}

static DELETE: Sql = Sql::new("DELETE FROM identity_providers WHERE tenant_id = $1 AND id = $2");

pub async fn delete(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: IdentityProviderId,
) -> Result<(), Error> {
    tx.execute(&DELETE, &[&tenant.uuid(), &id.uuid()]).await?;
    Ok(())
}
