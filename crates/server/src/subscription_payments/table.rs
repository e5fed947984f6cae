//! SQL of the table `subscription_payments`.

use jiff::Timestamp;
use perennial_domain::{
    ExternalId, FailureReason, Id, Money, Payment, PaymentId, SubscriptionId, TenantId, UserId,
};
use tokio_postgres::{
    Row,
    types::{Json, ToSql},
};
use uuid::Uuid;

use crate::db::{
    ByAgeSql, CellDatabase, Error, PooledConnection, RowReader, Sql, Transaction, by_age,
    check_range,
};

/// The unique index on `external_id`, the payment's id at the payment provider.
pub(super) const EXTERNAL_ID_UNIQUE: &str = "subscription_payments_external_id";

/// The columns after the key `(tenant_id, id)`. [`placeholders!`], [`params!`] and [`from_row`] use
/// the same order.
macro_rules! columns {
    () => {
        "subscription_id, amount_minor, currency, external_id, status, refunded_minor, paid_at,
         failure_reason, period_starts_at, period_ends_at, ledger_amount, disputed_minor, waived_minor, metadata,
         created_at, updated_at"
    };
}

macro_rules! placeholders {
    () => {
        "$3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18"
    };
}

macro_rules! params {
    ($tenant:ident, $payment:ident) => {
        &[
            &$tenant.uuid(),
            &$payment.id.uuid(),
            &$payment.subscription.uuid(),
            &$payment.amount.minor_units(),
            &$payment.amount.currency().code(),
            &$payment.external_id.as_ref().map(ExternalId::as_str),
            &$payment.status.as_str(),
            &$payment.refunded.map(Money::minor_units),
            &$payment.paid_at,
            &$payment.failure_reason.as_ref().map(FailureReason::as_str),
            &$payment.period.map(|(start, _)| start),
            &$payment.period.and_then(|(_, end)| end),
            &$payment.ledger_amount,
            &$payment.disputed,
            &$payment.waived,
            &Json($payment.metadata.pairs()),
            &$payment.created_at,
            &$payment.updated_at,
        ]
    };
}

/// Reads the key and [`columns!`].
pub(super) fn from_row(row: &Row) -> Result<Payment, Error> {
    let row = RowReader::new(row);
    let id = PaymentId::new(row.get("id")?);
    let subscription = SubscriptionId::new(row.get("subscription_id")?);
    let amount = row.money("amount_minor")?;
    let refunded = |minor_units| {
        let money = Money::from_minor_units(minor_units, amount.currency());
        check_range("refunded_minor", money)
    };
    Ok(Payment {
        id,
        subscription,
        amount,
        external_id: row.parse_optional("external_id")?,
        status: row.parse("status")?,
        refunded: row
            .get::<Option<i64>>("refunded_minor")?
            .map(refunded)
            .transpose()?,
        paid_at: row.get("paid_at")?,
        failure_reason: row.parse_optional("failure_reason")?,
        period: read_period(&row)?,
        ledger_amount: row.get("ledger_amount")?,
        disputed: row.get("disputed_minor")?,
        waived: row.get("waived_minor")?,
        metadata: row.metadata()?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}

fn read_period(row: &RowReader<'_>) -> Result<Option<(Timestamp, Option<Timestamp>)>, Error> {
    let start: Option<Timestamp> = row.get("period_starts_at")?;
    let end = row.get("period_ends_at")?;
    Ok(start.map(|start| (start, end)))
}

/// Selects a tenant's payments that are not deleted and meet the conditions.
macro_rules! select {
    ($($conditions:tt)*) => {
        concat!(
            "SELECT id, ",
            columns!(),
            " FROM subscription_payments
     WHERE tenant_id = $1 AND deleted_at IS NULL AND ",
            $($conditions)*
        )
    };
}

pub(super) use {columns, select};

// Deleting a subscription does not hide its payments from its user.
static FIND: Sql = Sql::new(select!(
    "id = $2 AND ($3::uuid IS NULL OR EXISTS (
        SELECT FROM subscriptions
        WHERE subscriptions.tenant_id = $1 AND subscriptions.id = subscription_id AND user_id = $3))"
));

/// Returns a payment; with `user`, only if it is for that user's subscription.
pub async fn find(
    database: &CellDatabase,
    tenant: TenantId,
    id: PaymentId,
    user: Option<UserId>,
) -> Result<Option<Payment>, Error> {
    let user = user.map(Id::uuid);
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &id.uuid(), &user];
    let row = database.read(&FIND, &params).await?;
    row.as_ref().map(from_row).transpose()
}

static LIST_BY_USER_WITH_DELETED: Sql = Sql::new(concat!(
    "SELECT id, ",
    columns!(),
    ", deleted_at FROM subscription_payments
     WHERE tenant_id = $1
       AND subscription_id = ANY (ARRAY(SELECT id FROM subscriptions WHERE tenant_id = $1 AND user_id = $2))
     ORDER BY created_at, id"
));

/// Returns all payments of a user, also for deleted subscriptions, oldest first, each with its
/// deletion time.
pub async fn list_by_user_with_deleted(
    connection: &PooledConnection,
    tenant: TenantId,
    user: UserId,
) -> Result<Vec<(Payment, Option<Timestamp>)>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &user.uuid()];
    let rows = connection
        .query(&LIST_BY_USER_WITH_DELETED, &params)
        .await?;
    rows.iter()
        .map(|row| Ok((from_row(row)?, row.try_get("deleted_at")?)))
        .collect()
}

static LIST_LATEST: Sql = Sql::new(concat!(
    "SELECT latest.id, ",
    columns!(),
    ", deleted_at FROM unnest($2::uuid[]) AS listed (id)
     CROSS JOIN LATERAL (SELECT id, ",
    columns!(),
    ", deleted_at FROM subscription_payments WHERE tenant_id = $1 AND subscription_id = listed.id
        ORDER BY created_at DESC, subscription_payments.id DESC LIMIT $3) AS latest
     ORDER BY created_at DESC, latest.id DESC"
));

/// Returns the latest payments of each of these subscriptions, newest first, each with its deletion time.
pub async fn list_latest_with_deleted(
    connection: &PooledConnection,
    tenant: TenantId,
    subscriptions: &[Uuid],
    limit: i64,
) -> Result<Vec<(Payment, Option<Timestamp>)>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &subscriptions, &limit];
    let rows = connection.query(&LIST_LATEST, &params).await?;
    rows.iter()
        .map(|row| Ok((from_row(row)?, row.try_get("deleted_at")?)))
        .collect()
}

static FIND_PAYER: Sql = Sql::new(
    "SELECT user_id FROM subscription_payments
     JOIN subscriptions ON subscriptions.tenant_id = subscription_payments.tenant_id AND subscriptions.id = subscription_id
     WHERE subscription_payments.tenant_id = $1 AND subscription_payments.id = $2",
);

/// Returns the user whose subscription a payment is for. The payment may be deleted.
pub async fn find_payer(
    database: &CellDatabase,
    tenant: TenantId,
    id: PaymentId,
) -> Result<Option<UserId>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &id.uuid()];
    let row = database.read(&FIND_PAYER, &params).await?;
    row.map(|row| Ok(UserId::new(row.try_get(0)?))).transpose()
}

static LOCK: Sql = Sql::new(select!("id = $2 FOR NO KEY UPDATE"));

/// Locks the row until the end of the transaction and returns it.
pub async fn lock(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: PaymentId,
) -> Result<Option<Payment>, Error> {
    let rows = tx.query(&LOCK, &[&tenant.uuid(), &id.uuid()]).await?;
    rows.first().map(from_row).transpose()
}

pub(super) static FIND_BY_EXTERNAL_ID: Sql = Sql::new(
    "SELECT id FROM subscription_payments WHERE tenant_id = $1 AND external_id = $2 AND deleted_at IS NULL",
);

/// Returns the payment that has this id at the payment provider.
pub async fn find_by_external_id(
    database: &CellDatabase,
    tenant: TenantId,
    external_id: &str,
) -> Result<Option<PaymentId>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &external_id];
    let row = database.read(&FIND_BY_EXTERNAL_ID, &params).await?;
    row.map(|row| Ok(PaymentId::new(row.try_get("id")?)))
        .transpose()
}

/// The payments of the subscription `$5`.
pub(super) static BY_SUBSCRIPTION: ByAgeSql = by_age!(select, "subscription_id = $5 AND ",);

static INSERT: Sql = Sql::new(concat!(
    "INSERT INTO subscription_payments (tenant_id, id, ",
    columns!(),
    ") VALUES ($1, $2, ",
    placeholders!(),
    ") ON CONFLICT (tenant_id, external_id) WHERE deleted_at IS NULL AND external_id IS NOT NULL DO NOTHING"
));

/// Inserts a payment. Returns `false` if another one has its external id.
pub(super) async fn insert(
    tx: &Transaction<'_>,
    tenant: TenantId,
    payment: &Payment,
) -> Result<bool, Error> {
    let params: &[&(dyn ToSql + Sync)] = params!(tenant, payment);
    // Hot path: without an external id there is no conflict, so nothing waits for the result, as for
    // subscriptions.
    if payment.external_id.is_none() {
        tx.enqueue(&INSERT, params).await?;
        return Ok(true);
    }
    let inserted = tx.execute(&INSERT, params).await?;
    Ok(inserted > 0)
}

static UPDATE: Sql = Sql::new(concat!(
    "UPDATE subscription_payments SET (",
    columns!(),
    ") = (",
    placeholders!(),
    ") WHERE tenant_id = $1 AND id = $2"
));

/// Updates a locked payment. The write is deferred: if the external id is a duplicate, the next
/// statement or the commit fails with a violation of [`EXTERNAL_ID_UNIQUE`].
pub(super) async fn update(
    tx: &Transaction<'_>,
    tenant: TenantId,
    payment: &Payment,
) -> Result<(), Error> {
    tx.enqueue(&UPDATE, params!(tenant, payment)).await
}

static LIST_AFTER: Sql = Sql::new(select!("id > $2 ORDER BY id LIMIT $3"));

/// Returns the next payments of a tenant in the order of their ids.
pub async fn list_after(
    tx: &Transaction<'_>,
    tenant: TenantId,
    after: Uuid,
    limit: i64,
) -> Result<Vec<Payment>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &after, &limit];
    let rows = tx.query(&LIST_AFTER, &params).await?;
    rows.iter().map(from_row).collect()
}

pub(super) static SOFT_DELETE: Sql =
    Sql::new("UPDATE subscription_payments SET deleted_at = $3 WHERE tenant_id = $1 AND id = $2");
