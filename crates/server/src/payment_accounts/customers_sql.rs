//! SQL that finds a user's customers at payment providers, in the table `payment_objects`.

use perennial_domain::{Id, PaymentAccountId, TenantId, UserId};

use crate::db::{Error, PooledConnection, RowReader, Sql};

/// A user as a payment provider's customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentCustomer {
    pub account: PaymentAccountId,
    /// The provider's id.
    pub external_id: String,
}

static LIST: Sql = Sql::new(
    "SELECT object.account_id, object.external_id FROM payment_objects AS object
     JOIN payment_accounts AS account ON account.tenant_id = object.tenant_id AND account.id = object.account_id
     WHERE object.tenant_id = $1 AND object.record_id = $2 AND object.kind = 'customer' AND account.deleted_at IS NULL
     ORDER BY object.updated_at DESC",
);

/// Returns the customers that a user is, the latest first.
pub(super) async fn list(
    connection: &PooledConnection,
    tenant: TenantId,
    user: UserId,
) -> Result<Vec<PaymentCustomer>, Error> {
    let rows = connection
        .query(&LIST, &[&tenant.uuid(), &user.uuid()])
        .await?;
    { rows.iter() }
        .map(|row| {
            let row = RowReader::new(row);
            Ok(PaymentCustomer {
                account: PaymentAccountId::new(row.get("account_id")?),
                external_id: row.get("external_id")?,
            })
        })
        .collect()
}
