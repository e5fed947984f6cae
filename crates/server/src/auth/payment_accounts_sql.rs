//! SQL that reads the payment accounts of all tenants of a cell, and announces their changes.

use jiff::Timestamp;
use perennial_domain::{Id, PaymentAccountId, TenantId};

use super::payment_account_cache::ReceivingAccount;
use crate::{
    crypto::SealedSecret,
    db::{CellDatabase, Error, RowReader, Sql, Transaction},
};

/// Notifications of changed payment accounts.
pub(super) const CHANNEL: &str = "perennial_payment_accounts";

static NOTIFY: Sql = Sql::new("SELECT pg_notify('perennial_payment_accounts', $1)");

/// Makes all instances read the payment accounts again when the transaction is committed.
pub async fn notify_payment_account_changed(
    tx: &Transaction<'_>,
    id: PaymentAccountId,
) -> Result<(), Error> {
    tx.enqueue(&NOTIFY, &[&id.to_string()]).await
}

static LIST_ALL: Sql = Sql::new(
    "SELECT account.tenant_id, account.id, provider, mode, external_account_id, secret.secret, secret.expires_at
     FROM payment_accounts AS account
     LEFT JOIN payment_account_secrets AS secret ON secret.tenant_id = account.tenant_id AND secret.account_id = account.id
     WHERE account.deleted_at IS NULL
     ORDER BY account.tenant_id, account.id",
);

/// Returns all accounts of a cell, with their secrets.
pub(super) async fn list_all(database: &CellDatabase) -> Result<Vec<ReceivingAccount>, Error> {
    let rows = database.connection().await?.query(&LIST_ALL, &[]).await?;
    let mut accounts: Vec<ReceivingAccount> = Vec::new();
    for row in &rows {
        let row = RowReader::new(row);
        let id = PaymentAccountId::new(row.get("id")?);
        let secret: Option<Vec<u8>> = row.get("secret")?;
        let expires_at: Option<Timestamp> = row.get("expires_at")?;
        let secret = secret.map(|secret| (SealedSecret(secret), expires_at));
        if let Some(last) = accounts.last_mut().filter(|last| last.id == id) {
            last.secrets.extend(secret);
            continue;
        }
        accounts.push(ReceivingAccount {
            tenant: TenantId::new(row.get("tenant_id")?),
            cell: database.cell().to_owned(),
            id,
            provider: row.parse("provider")?,
            mode: row.parse("mode")?,
            external_account_id: row.get("external_account_id")?,
            secrets: secret.into_iter().collect(),
        });
    }
    Ok(accounts)
}
