//! The table `subscriptions`: all its SQL.

use jiff::Timestamp;
use perennial_domain::{
    ExternalId, Id, PlanId, Subscription, SubscriptionId, TenantId, Terms, UserId,
};
use tokio_postgres::{Row, types::ToSql};

use crate::db::{Connection, Engine, Error, Sql, Transaction, row::Reader};

/// The constraint that keeps providers' ids unique.
pub const EXTERNAL_ID_UNIQUE: &str = "subscriptions_external_id";

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, user_id, plan_id, price_minor, currency, plan_billing_cycle, external_id, billing_cycle, status,
            suspended, starts_at, renews_at, ends_at, anchor, prepaid, late_since, created_at, updated_at
     FROM subscriptions
     WHERE tenant_id = $1 AND deleted_at IS NULL AND ",
            $rest
        )
    };
}
pub(super) use select;

static FIND: Sql = Sql::new(select!("id = $2"));

/// The subscription with this id.
pub async fn find(
    engine: &Engine,
    tenant: TenantId,
    id: SubscriptionId,
) -> Result<Option<Subscription>, Error> {
    let row = engine.read(&FIND, &[&tenant.uuid(), &id.uuid()]).await?;
    row.as_ref().map(subscription).transpose()
}

static LOCK: Sql = Sql::new(select!("id = $2 FOR NO KEY UPDATE"));

/// The same; nobody else changes it until the end of the transaction.
pub async fn lock(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: SubscriptionId,
) -> Result<Option<Subscription>, Error> {
    let rows = tx.query(&LOCK, &[&tenant.uuid(), &id.uuid()]).await?;
    rows.first().map(subscription).transpose()
}

// Also what was deleted.
static OF_USER: Sql = Sql::new(
    "SELECT id, user_id, plan_id, price_minor, currency, plan_billing_cycle, external_id, billing_cycle, status,
            suspended, starts_at, renews_at, ends_at, anchor, prepaid, late_since, created_at, updated_at, deleted_at
     FROM subscriptions
     WHERE tenant_id = $1 AND user_id = $2 ORDER BY created_at, id",
);

/// All subscriptions that a user has or had, oldest first, each with when it was deleted, if it was.
pub async fn of_user(
    connection: &Connection,
    tenant: TenantId,
    user: UserId,
) -> Result<Vec<(Subscription, Option<Timestamp>)>, Error> {
    let rows = connection
        .query(&OF_USER, &[&tenant.uuid(), &user.uuid()])
        .await?;
    rows.iter()
        .map(|row| Ok((subscription(row)?, row.try_get("deleted_at")?)))
        .collect()
}

// In the order of their ids, as everybody who locks several.
static LOCK_LIVE_OF_USER: Sql = Sql::new(select!(
    "user_id = $2 AND status <> 'expired' ORDER BY id FOR NO KEY UPDATE"
));

/// Those of a user that have not been written down as expired; nobody else changes them until the end of the transaction.
pub(super) async fn lock_live_of_user(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
) -> Result<Vec<Subscription>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &user.uuid()];
    let rows = tx.query(&LOCK_LIVE_OF_USER, &params).await?;
    rows.iter().map(subscription).collect()
}

static OWNER: Sql = Sql::new("SELECT user_id FROM subscriptions WHERE tenant_id = $1 AND id = $2");

/// Whose a subscription is or was.
pub async fn owner(
    engine: &Engine,
    tenant: TenantId,
    id: SubscriptionId,
) -> Result<Option<UserId>, Error> {
    let row = engine.read(&OWNER, &[&tenant.uuid(), &id.uuid()]).await?;
    row.map(|row| Ok(UserId::new(row.try_get(0)?))).transpose()
}

static FIND_BY_EXTERNAL_ID: Sql = Sql::new(
    "SELECT id FROM subscriptions WHERE tenant_id = $1 AND external_id = $2 AND deleted_at IS NULL",
);

/// Which subscription a provider calls so.
pub(super) async fn find_by_external_id(
    engine: &Engine,
    tenant: TenantId,
    external_id: &ExternalId,
) -> Result<Option<SubscriptionId>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &external_id.as_str()];
    let row = engine.read(&FIND_BY_EXTERNAL_ID, &params).await?;
    row.map(|row| Ok(SubscriptionId::new(row.try_get("id")?)))
        .transpose()
}

/// The tenant and all columns of a record, in the table's order, for [`INSERT`] and [`SAVE`].
macro_rules! columns {
    ($tenant:ident, $record:ident) => {
        &[
            &$tenant.uuid(),
            &$record.id.uuid(),
            &$record.user.uuid(),
            &$record.terms.plan.uuid(),
            &$record.terms.price.minor_units(),
            &$record.terms.price.currency().code(),
            &$record.terms.billing_cycle.as_str(),
            &$record.external_id.as_ref().map(ExternalId::as_str),
            &$record.billing_cycle.as_str(),
            &$record.status.as_str(),
            &$record.suspended,
            &$record.starts_at,
            &$record.renews_at,
            &$record.ends_at,
            &$record.anchor,
            &i32::try_from($record.prepaid).unwrap_or(i32::MAX),
            &$record.late_since,
            &$record.created_at,
            &$record.updated_at,
        ]
    };
}

static INSERT: Sql = Sql::new(
    "INSERT INTO subscriptions (tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle, external_id,
        billing_cycle, status, suspended, starts_at, renews_at, ends_at, anchor, prepaid, late_since, created_at,
        updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
     ON CONFLICT (tenant_id, external_id) WHERE deleted_at IS NULL AND external_id IS NOT NULL DO NOTHING",
);

/// Adds a subscription, unless another has its external id; whether it did.
pub async fn insert(
    tx: &Transaction<'_>,
    tenant: TenantId,
    subscription: &Subscription,
) -> Result<bool, Error> {
    let added = tx.execute(&INSERT, columns!(tenant, subscription)).await?;
    Ok(added > 0)
}

static SAVE: Sql = Sql::new(
    "UPDATE subscriptions
     SET user_id = $3, plan_id = $4, price_minor = $5, currency = $6, plan_billing_cycle = $7, external_id = $8,
         billing_cycle = $9, status = $10, suspended = $11, starts_at = $12, renews_at = $13, ends_at = $14,
         anchor = $15, prepaid = $16, late_since = $17, created_at = $18, updated_at = $19
     WHERE tenant_id = $1 AND id = $2",
);

/// Writes a subscription that was locked; refused by [`EXTERNAL_ID_UNIQUE`], at the commit or before, if another has its
/// external id.
pub async fn save(
    tx: &Transaction<'_>,
    tenant: TenantId,
    subscription: &Subscription,
) -> Result<(), Error> {
    tx.write(&SAVE, columns!(tenant, subscription)).await
}

static BURY: Sql =
    Sql::new("UPDATE subscriptions SET deleted_at = $3 WHERE tenant_id = $1 AND id = $2");

/// Marks a subscription that was locked as deleted: its external id is free, its payments and history stay.
pub(super) async fn bury(
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: SubscriptionId,
    now: Timestamp,
) -> Result<(), Error> {
    tx.write(&BURY, &[&tenant.uuid(), &id.uuid(), &now]).await
}

/// A row as the subscription that it is.
pub(super) fn subscription(row: &Row) -> Result<Subscription, Error> {
    let row = Reader::of(row);
    Ok(Subscription {
        id: SubscriptionId::new(row.get("id")?),
        user: UserId::new(row.get("user_id")?),
        terms: Terms {
            plan: PlanId::new(row.get("plan_id")?),
            price: row.money("price_minor")?,
            billing_cycle: row.text("plan_billing_cycle")?,
        },
        external_id: row.optional_text("external_id")?,
        billing_cycle: row.text("billing_cycle")?,
        status: row.text("status")?,
        suspended: row.get("suspended")?,
        starts_at: row.get("starts_at")?,
        renews_at: row.get("renews_at")?,
        ends_at: row.get("ends_at")?,
        anchor: row.get("anchor")?,
        prepaid: row.integer("prepaid")?,
        late_since: row.get("late_since")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}
