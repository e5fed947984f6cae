//! SQL of the table `identity_providers`.

use jiff::Timestamp;
use perennial_domain::{Id, TenantId};
use tokio_postgres::Row;

use super::{AcceptedTokens, IdentityProvider, SealedSecret, TokenVerification};
use crate::db::{Error, PooledConnection, Sql, Transaction};

static LIST: Sql = Sql::new(
    "SELECT issuer, audiences, verify, endpoint, client_id, client_secret, accept_id_tokens, accept_bound_tokens,
            accept_azp
     FROM identity_providers
     WHERE tenant_id = $1 ORDER BY created_at, issuer",
);

/// Returns the providers of a tenant, oldest first.
pub async fn list(
    home: &PooledConnection,
    tenant: TenantId,
) -> Result<Vec<IdentityProvider>, Error> {
    let rows = home.query(&LIST, &[&tenant.uuid()]).await?;
    rows.iter()
        .map(|row| {
            Ok(IdentityProvider {
                issuer: row.try_get("issuer")?,
                audiences: row.try_get("audiences")?,
                verify: read_verification(row)?,
                accept: AcceptedTokens {
                    id_tokens: row.try_get("accept_id_tokens")?,
                    bound_tokens: row.try_get("accept_bound_tokens")?,
                    azp: row.try_get("accept_azp")?,
                },
            })
        })
        .collect()
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

static INSERT: Sql = Sql::new(
    "INSERT INTO identity_providers (tenant_id, issuer, audiences, verify, endpoint, client_id, client_secret, created_at,
        accept_id_tokens, accept_bound_tokens, accept_azp)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
);

pub(super) async fn insert(
    tx: &Transaction<'_>,
    tenant: TenantId,
    provider: &IdentityProvider,
    now: Timestamp,
) -> Result<(), Error> {
    let (endpoint, client_id, secret) = match &provider.verify {
        TokenVerification::Jwt | TokenVerification::Userinfo => (None, None, None),
        TokenVerification::Tokeninfo { endpoint } => (Some(endpoint), None, None),
        TokenVerification::Introspection {
            endpoint,
            client_id,
            secret,
        } => (endpoint.as_ref(), Some(client_id), Some(&secret.0)),
    };
    let (issuer, audiences) = (&provider.issuer, &provider.audiences);
    let verify = provider.verify.as_str();
    tx.execute(
        &INSERT,
        &[
            &tenant.uuid(),
            issuer,
            audiences,
            &verify,
            &endpoint,
            &client_id,
            &secret,
            &now,
            &provider.accept.id_tokens,
            &provider.accept.bound_tokens,
            &provider.accept.azp,
        ],
    )
    .await?;
    Ok(())
}

static DELETE: Sql =
    Sql::new("DELETE FROM identity_providers WHERE tenant_id = $1 AND issuer = $2");

/// Deletes a provider. Returns `false` if the tenant has none with this issuer.
pub(super) async fn delete(
    tx: &Transaction<'_>,
    tenant: TenantId,
    issuer: &str,
) -> Result<bool, Error> {
    Ok(tx.execute(&DELETE, &[&tenant.uuid(), &issuer]).await? > 0)
}
