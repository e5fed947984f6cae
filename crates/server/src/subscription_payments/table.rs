//! The table `subscription_payments`: all its SQL.

use jiff::Timestamp;
use perennial_domain::{
    ExternalId, Id, Money, Payment, PaymentId, SubscriptionId, TenantId, UserId,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use crate::db::{
    Connection, Engine, Error, Sql, Transaction,
    row::{Reader, checked},
};

/// The constraint that keeps providers' ids unique.
pub const EXTERNAL_ID_UNIQUE: &str = "subscription_payments_external_id";

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, subscription_id, amount_minor, currency, external_id, status, refunded_minor, period, created_at, updated_at
     FROM subscription_payments
     WHERE tenant_id = $1 AND deleted_at IS NULL AND ",
            $rest
        )
    };
}

// Payments of a subscription that was deleted are still somebody's.
static FIND: Sql = Sql::new(select!(
    "id = $2 AND ($3::uuid IS NULL OR EXISTS (
        SELECT FROM subscriptions
        WHERE subscriptions.tenant_id = $1 AND subscriptions.id = subscription_id AND user_id = $3))"
));

/// The payment with this id, if it is this user's, or anybody's.
pub(super) async fn find(
    engine: &Engine,
    tenant: TenantId,
    id: PaymentId,
    user: Option<UserId>,
) -> Result<Option<Payment>, Error> {
    let user = user.map(Id::uuid);
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &id.uuid(), &user];
    let row = engine.read(&FIND, &params).await?;
    row.as_ref().map(payment).transpose()
}

// Also what was deleted, and what was paid for a subscription that was.
static OF_USER: Sql = Sql::new(
    "SELECT id, subscription_id, amount_minor, currency, external_id, status, refunded_minor, period, created_at, updated_at,
            deleted_at
     FROM subscription_payments
     WHERE tenant_id = $1
       AND subscription_id = ANY (ARRAY(SELECT id FROM subscriptions WHERE tenant_id = $1 AND user_id = $2))
     ORDER BY created_at, id",
);

/// All payments of a user, oldest first, each with when it was deleted, if it was.
pub async fn of_user(
    connection: &Connection,
    tenant: TenantId,
    user: UserId,
) -> Result<Vec<(Payment, Option<Timestamp>)>, Error> {
    let rows = connection
        .query(&OF_USER, &[&tenant.uuid(), &user.uuid()])
        .await?;
    rows.iter()
        .map(|row| Ok((payment(row)?, row.try_get("deleted_at")?)))
        .collect()
}

static PAYER: Sql = Sql::new(
    "SELECT user_id FROM subscription_payments
     JOIN subscriptions ON subscriptions.tenant_id = subscription_payments.tenant_id AND subscriptions.id = subscription_id
     WHERE subscription_payments.tenant_id = $1 AND subscription_payments.id = $2",
);

/// Who paid.
pub async fn payer(
    engine: &Engine,
    tenant: TenantId,
    id: PaymentId,
) -> Result<Option<UserId>, Error> {
    let row = engine.read(&PAYER, &[&tenant.uuid(), &id.uuid()]).await?;
    row.map(|row| Ok(UserId::new(row.try_get(0)?))).transpose()
}

static LOCK: Sql = Sql::new(select!("id = $2 FOR NO KEY UPDATE"));

/// The payment with this id; nobody else changes it until the end of the transaction.
pub(super) async fn lock(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: PaymentId,
) -> Result<Option<Payment>, Error> {
    let rows = tx.query(&LOCK, &[&tenant.uuid(), &id.uuid()]).await?;
    rows.first().map(payment).transpose()
}

static FIND_BY_EXTERNAL_ID: Sql = Sql::new(
    "SELECT id FROM subscription_payments WHERE tenant_id = $1 AND external_id = $2 AND deleted_at IS NULL",
);

/// Which payment a provider calls so.
pub(super) async fn find_by_external_id(
    engine: &Engine,
    tenant: TenantId,
    external_id: &ExternalId,
) -> Result<Option<PaymentId>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &external_id.as_str()];
    let row = engine.read(&FIND_BY_EXTERNAL_ID, &params).await?;
    row.map(|row| Ok(PaymentId::new(row.try_get("id")?)))
        .transpose()
}

/// Which come first.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    Oldest,
    Newest,
}

/// Where a page begins: after the payment with these.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub created_at: Timestamp,
    pub id: Uuid,
}

static LIST_OLDEST: Sql = Sql::new(select!(
    "subscription_id = $2 AND (created_at, id) > ($3, $4) ORDER BY created_at, id LIMIT $5"
));
static LIST_NEWEST: Sql = Sql::new(select!(
    "subscription_id = $2 AND (created_at, id) < ($3, $4) ORDER BY created_at DESC, id DESC LIMIT $5"
));

/// Up to `limit` payments of a subscription after a place.
pub(super) async fn list(
    connection: &Connection,
    tenant: TenantId,
    subscription: SubscriptionId,
    (order, after): (Order, Option<Place>),
    limit: i64,
) -> Result<Vec<Payment>, Error> {
    let (sql, created_at, id) = match order {
        Order::Oldest => (&LIST_OLDEST, Timestamp::UNIX_EPOCH, Uuid::nil()),
        Order::Newest => (&LIST_NEWEST, Timestamp::MAX, Uuid::max()),
    };
    let place = after.unwrap_or(Place { created_at, id });
    let params: [&(dyn ToSql + Sync); 5] = [
        &tenant.uuid(),
        &subscription.uuid(),
        &place.created_at,
        &place.id,
        &limit,
    ];
    let rows = connection.query(sql, &params).await?;
    rows.iter().map(payment).collect()
}

/// The tenant and all columns of a record, in the table's order, for [`INSERT`] and [`SAVE`].
macro_rules! columns {
    ($tenant:ident, $record:ident) => {
        &[
            &$tenant.uuid(),
            &$record.id.uuid(),
            &$record.subscription.uuid(),
            &$record.amount.minor_units(),
            &$record.amount.currency().code(),
            &$record.external_id.as_ref().map(ExternalId::as_str),
            &$record.status.as_str(),
            &$record.refunded.map(Money::minor_units),
            &$record.period,
            &$record.created_at,
            &$record.updated_at,
        ]
    };
}

static INSERT: Sql = Sql::new(
    "INSERT INTO subscription_payments (tenant_id, id, subscription_id, amount_minor, currency, external_id, status,
        refunded_minor, period, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
     ON CONFLICT (tenant_id, external_id) WHERE deleted_at IS NULL AND external_id IS NOT NULL DO NOTHING",
);

/// Adds a payment, unless another has its external id; whether it did.
pub async fn insert(
    tx: &Transaction<'_>,
    tenant: TenantId,
    payment: &Payment,
) -> Result<bool, Error> {
    let added = tx.execute(&INSERT, columns!(tenant, payment)).await?;
    Ok(added > 0)
}

static SAVE: Sql = Sql::new(
    "UPDATE subscription_payments
     SET subscription_id = $3, amount_minor = $4, currency = $5, external_id = $6, status = $7, refunded_minor = $8,
         period = $9, created_at = $10, updated_at = $11
     WHERE tenant_id = $1 AND id = $2",
);

/// Writes a payment that was locked; refused by [`EXTERNAL_ID_UNIQUE`], at the commit or before, if another has its
/// external id.
pub(super) async fn save(
    tx: &Transaction<'_>,
    tenant: TenantId,
    payment: &Payment,
) -> Result<(), Error> {
    tx.write(&SAVE, columns!(tenant, payment)).await
}

static BURY: Sql =
    Sql::new("UPDATE subscription_payments SET deleted_at = $3 WHERE tenant_id = $1 AND id = $2");

/// Marks a payment that was locked as deleted.
pub(super) async fn bury(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: PaymentId,
    now: Timestamp,
) -> Result<(), Error> {
    tx.write(&BURY, &[&tenant.uuid(), &id.uuid(), &now]).await
}

/// A row as the payment that it is.
fn payment(row: &Row) -> Result<Payment, Error> {
    let row = Reader::of(row);
    let id = PaymentId::new(row.get("id")?);
    let subscription = SubscriptionId::new(row.get("subscription_id")?);
    let amount = row.money("amount_minor")?;
    let refunded = |minor| {
        let money = Money::of_minor_units(minor, amount.currency());
        checked("refunded_minor", money)
    };
    Ok(Payment {
        id,
        subscription,
        amount,
        external_id: row.optional_text("external_id")?,
        status: row.text("status")?,
        refunded: row
            .get::<Option<i64>>("refunded_minor")?
            .map(refunded)
            .transpose()?,
        period: row.get("period")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}
