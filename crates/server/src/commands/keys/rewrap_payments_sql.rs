//! SQL that reads and replaces the sealed values of payment accounts, in the cell of their tenant: API keys, secrets and the
//! bodies of notifications.

use jiff::Timestamp;
use perennial_domain::{Id, PaymentAccountId, PaymentNotificationId, TenantId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::{
    crypto::SealedSecret,
    db::{Error, PooledConnection, Sql},
    payment_accounts::account_secrets,
};

/// A sealed value of a payment account.
pub(super) struct PaymentSecret {
    pub place: PaymentSecretPlace,
    pub sealed: SealedSecret,
}

/// The row that contains a sealed value.
pub(super) enum PaymentSecretPlace {
    ApiKey {
        account: PaymentAccountId,
    },
    Secret {
        account: PaymentAccountId,
        id: Uuid,
    },
    Body {
        created_at: Timestamp,
        id: PaymentNotificationId,
    },
}

impl PaymentSecret {
    /// Returns for whom the value is sealed.
    pub fn owner(&self) -> String {
        match &self.place {
            PaymentSecretPlace::ApiKey { account } => account_secrets::api_key_owner(*account),
            PaymentSecretPlace::Secret { account, .. } => account_secrets::secret_owner(*account),
            PaymentSecretPlace::Body { id, .. } => account_secrets::body_owner(*id),
        }
    }
}

static LIST_API_KEYS: Sql = Sql::new(
    "SELECT id, api_key FROM payment_accounts WHERE tenant_id = $1 AND api_key IS NOT NULL ORDER BY id",
);
static LIST_SECRETS: Sql = Sql::new(
    "SELECT account_id, id, secret FROM payment_account_secrets WHERE tenant_id = $1 ORDER BY account_id, id",
);

/// Returns the API keys and secrets of a tenant's accounts.
pub(super) async fn list_account_secrets(
    connection: &PooledConnection,
    tenant: TenantId,
) -> Result<Vec<PaymentSecret>, Error> {
    let mut found = Vec::new();
    for row in connection.query(&LIST_API_KEYS, &[&tenant.uuid()]).await? {
        let account = PaymentAccountId::new(row.try_get(0)?);
        found.push(PaymentSecret {
            place: PaymentSecretPlace::ApiKey { account },
            sealed: SealedSecret(row.try_get(1)?),
        });
    }
    for row in connection.query(&LIST_SECRETS, &[&tenant.uuid()]).await? {
        let account = PaymentAccountId::new(row.try_get(0)?);
        let id = row.try_get(1)?;
        found.push(PaymentSecret {
            place: PaymentSecretPlace::Secret { account, id },
            sealed: SealedSecret(row.try_get(2)?),
        });
    }
    Ok(found)
}

static LIST_BODIES: Sql = Sql::new(
    "SELECT created_at, id, body FROM payment_notifications
     WHERE tenant_id = $1 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT $4",
);

/// Returns up to `limit` bodies of a tenant's notifications after a key.
pub(super) async fn list_bodies(
    connection: &PooledConnection,
    tenant: TenantId,
    after: Option<(Timestamp, PaymentNotificationId)>,
    limit: i64,
) -> Result<Vec<PaymentSecret>, Error> {
    let (created_at, id) = match after {
        Some((created_at, id)) => (created_at, id.uuid()),
        None => (Timestamp::UNIX_EPOCH, Uuid::nil()),
    };
    let params: [&(dyn ToSql + Sync); 4] = [&tenant.uuid(), &created_at, &id, &limit];
    let rows = connection.query(&LIST_BODIES, &params).await?;
    rows.iter()
        .map(|row| {
            Ok(PaymentSecret {
                place: PaymentSecretPlace::Body {
                    created_at: row.try_get(0)?,
                    id: PaymentNotificationId::new(row.try_get(1)?),
                },
                sealed: SealedSecret(row.try_get(2)?),
            })
        })
        .collect()
}

static UPDATE_API_KEY: Sql = Sql::new(
    "UPDATE payment_accounts SET api_key = $4 WHERE tenant_id = $1 AND id = $2 AND api_key = $3",
);
static UPDATE_SECRET: Sql = Sql::new(
    "UPDATE payment_account_secrets SET secret = $4
     WHERE tenant_id = $1 AND account_id = $2 AND secret = $3 AND id = $5",
);
static UPDATE_BODY: Sql = Sql::new(
    "UPDATE payment_notifications SET body = $4 WHERE tenant_id = $1 AND id = $2 AND body = $3 AND created_at = $5",
);

/// Replaces a sealed value, unless it has changed.
pub(super) async fn update(
    connection: &PooledConnection,
    tenant: TenantId,
    old: &PaymentSecret,
    new: &SealedSecret,
) -> Result<(), Error> {
    let (tenant, sealed) = (tenant.uuid(), &old.sealed.0);
    match &old.place {
        PaymentSecretPlace::ApiKey { account } => {
            let params: [&(dyn ToSql + Sync); 4] = [&tenant, &account.uuid(), sealed, &new.0];
            connection.query(&UPDATE_API_KEY, &params).await?;
        }
        PaymentSecretPlace::Secret { account, id } => {
            let params: [&(dyn ToSql + Sync); 5] = [&tenant, &account.uuid(), sealed, &new.0, id];
            connection.query(&UPDATE_SECRET, &params).await?;
        }
        PaymentSecretPlace::Body { created_at, id } => {
            let params: [&(dyn ToSql + Sync); 5] =
                [&tenant, &id.uuid(), sealed, &new.0, created_at];
            connection.query(&UPDATE_BODY, &params).await?;
        }
    }
    Ok(())
}
