//! SQL of the table `ledger_entries`.

use jiff::Timestamp;
use perennial_domain::{
    ClientId, Currency, EntryCause, EntryType, Id, LedgerEntry, LedgerEntryId, PaymentId, PlanId,
    Quantity, SubscriptionId, TenantId, UserId,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use crate::db::{ByAgeSql, Error, RowReader, Sql, Transaction, by_age, check_range};

/// An entry to append.
pub struct NewRow {
    pub tenant: TenantId,
    pub subscription: SubscriptionId,
    pub stored: StoredEntry,
}

static INSERT: Sql = Sql::new(
    "INSERT INTO ledger_entries (tenant_id, subscription_id, created_at, id, type, cause, currency, amount_minor,
        credit_after_minor, payment_id, period_starts_at, period_ends_at, plan_id, quantity, client_id, user_id, request_id)
     SELECT tenant_id, subscription_id, created_at, id, type, cause, currency, amount_minor, credit_after_minor, payment_id,
        period_starts_at, period_ends_at, plan_id, quantity, client_id, user_id, request_id
     FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::bigint[],
        $9::bigint[], $10::uuid[], $11::timestamptz[], $12::timestamptz[], $13::uuid[], $14::integer[], $15::uuid[], $16::uuid[], $17::text[])
        AS entry (tenant_id, subscription_id, created_at, id, type, cause, currency, amount_minor, credit_after_minor, payment_id,
            period_starts_at, period_ends_at, plan_id, quantity, client_id, user_id, request_id)",
);

/// Appends entries in the transaction of their change.
pub async fn append(tx: &Transaction<'_>, rows: &[NewRow]) -> Result<(), Error> {
    fn column<'a, T>(rows: &'a [NewRow], value: impl Fn(&'a StoredEntry) -> T) -> Vec<T> {
        rows.iter().map(|row| value(&row.stored)).collect()
    }
    if rows.is_empty() {
        return Ok(());
    }
    let tenants: Vec<Uuid> = rows.iter().map(|row| row.tenant.uuid()).collect();
    let subscriptions: Vec<Uuid> = rows.iter().map(|row| row.subscription.uuid()).collect();
    let params: [&(dyn ToSql + Sync); 17] = [
        &tenants,
        &subscriptions,
        &column(rows, |row| row.entry.at),
        &column(rows, |row| row.id.uuid()),
        &column(rows, |row| row.entry.entry_type.as_str()),
        &column(rows, |row| row.entry.cause.as_str()),
        &column(rows, |row| row.currency.code()),
        &column(rows, |row| row.entry.amount),
        &column(rows, |row| row.entry.credit_after),
        &column(rows, |row| row.entry.payment.map(Id::uuid)),
        &column(rows, |row| row.entry.period.map(|(start, _)| start)),
        &column(rows, |row| row.entry.period.and_then(|(_, end)| end)),
        &column(rows, |row| row.entry.plan.uuid()),
        &column(rows, |row| row.entry.quantity.get()),
        &column(rows, |row| row.client.map(Id::uuid)),
        &column(rows, |row| row.user.map(Id::uuid)),
        &column(rows, |row| row.request_id.as_deref()),
    ];
    tx.enqueue(&INSERT, &params).await
}

/// An entry as stored.
#[derive(Debug)]
pub struct StoredEntry {
    pub id: LedgerEntryId,
    pub currency: Currency,
    pub entry: LedgerEntry,
    /// The client and the user that caused it; none if time did.
    pub client: Option<ClientId>,
    pub user: Option<UserId>,
    pub request_id: Option<String>,
}

macro_rules! columns {
    () => {
        "id, created_at, type, cause, currency, amount_minor, credit_after_minor, payment_id, period_starts_at,
         period_ends_at, plan_id, quantity, client_id, user_id, request_id"
    };
}

pub(super) fn from_row(row: &Row) -> Result<StoredEntry, Error> {
    let row = RowReader::new(row);
    let quantity = Quantity::try_from(i64::from(row.get::<i32>("quantity")?));
    let period_start: Option<Timestamp> = row.get("period_starts_at")?;
    let period_end = row.get("period_ends_at")?;
    Ok(StoredEntry {
        id: LedgerEntryId::new(row.get("id")?),
        currency: row.parse("currency")?,
        entry: LedgerEntry {
            at: row.get("created_at")?,
            entry_type: row.parse::<EntryType>("type")?,
            cause: row.parse::<EntryCause>("cause")?,
            amount: row.get("amount_minor")?,
            credit_after: row.get("credit_after_minor")?,
            payment: row.get::<Option<Uuid>>("payment_id")?.map(PaymentId::new),
            period: period_start.map(|start| (start, period_end)),
            plan: PlanId::new(row.get("plan_id")?),
            quantity: check_range("quantity", quantity.ok())?,
        },
        client: row.get::<Option<Uuid>>("client_id")?.map(ClientId::new),
        user: row.get::<Option<Uuid>>("user_id")?.map(UserId::new),
        request_id: row.get("request_id")?,
    })
}

macro_rules! select {
    ($($conditions:tt)*) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM ledger_entries WHERE tenant_id = $1 AND ",
            $($conditions)*
        )
    };
}

/// The entries of the subscription `$5`.
pub(super) static BY_SUBSCRIPTION: ByAgeSql = by_age!(select, "subscription_id = $5 AND ",);
