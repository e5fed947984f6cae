//! The table `subscriptions`: all its SQL.

use jiff::Timestamp;
use perennial_domain::{
    ExternalId, Id, Money, PlanId, Status, Subscription, SubscriptionId, TenantId, Terms, UserId,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use crate::db::{
    Connection, Engine, Error, Sql, Transaction,
    row::{checked, integer, optional_text, text},
};

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
            suspended, starts_at, renews_at, ends_at, anchor, prepaid, late_since, created_at, updated_at
     FROM subscriptions
     WHERE tenant_id = $1 AND user_id = $2 ORDER BY created_at, id",
);

/// All subscriptions that a user has or had, also deleted ones, oldest first.
pub async fn of_user(
    connection: &Connection,
    tenant: TenantId,
    user: UserId,
) -> Result<Vec<Subscription>, Error> {
    let rows = connection
        .query(&OF_USER, &[&tenant.uuid(), &user.uuid()])
        .await?;
    rows.iter().map(subscription).collect()
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

/// Which subscriptions of a tenant are listed: those that are one of each.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub users: Option<Vec<UserId>>,
    pub plans: Option<Vec<PlanId>>,
    /// As they are shown, not as they were written down.
    pub statuses: Option<Vec<Status>>,
    pub is_active: Option<bool>,
    pub external_ids: Option<Vec<ExternalId>>,
    pub renews_at: Range,
    pub ends_at: Range,
}

/// From an instant on, and before another.
#[derive(Debug, Default)]
pub(super) struct Range {
    pub from: Option<Timestamp>,
    pub before: Option<Timestamp>,
}

/// Which come first.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    Oldest,
    Newest,
}

/// Where a page begins: after the subscription with these.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub created_at: Timestamp,
    pub id: Uuid,
}

// The database plans these anew each time, knowing the values: what is null falls away, and of what is left it takes
// the index that narrows most. `domain/subscription` says the same of status and access; a test holds them together.
// `updated_at` is there for what an instance has changed whose clock is ahead; of its end that needs no word, since what
// has ended when it is changed is written down as expired.
static LIST_OLDEST: Sql = Sql::new(select!(
    "($2::uuid[] IS NULL OR user_id = ANY ($2)) AND ($3::uuid[] IS NULL OR plan_id = ANY ($3))
       AND ($4::text[] IS NULL
            OR status = ANY ($4) AND (status = 'expired' OR ends_at IS NULL OR ends_at > $5::timestamptz)
            OR 'expired' = ANY ($4) AND ends_at <= $5)
       AND ($6::boolean IS NULL
            OR $6 AND status IN ('on_trial', 'active', 'past_due', 'cancelled') AND NOT suspended AND (starts_at <= $5 OR starts_at <= updated_at)
               AND (ends_at IS NULL OR ends_at > $5)
            OR NOT $6 AND (status IN ('pending', 'paused', 'unpaid', 'expired') OR suspended
               OR starts_at > $5 AND starts_at > updated_at OR ends_at <= $5))
       AND ($7::text[] IS NULL OR external_id = ANY ($7))
       AND ($8::timestamptz IS NULL OR renews_at >= $8) AND ($9::timestamptz IS NULL OR renews_at < $9)
       AND ($10::timestamptz IS NULL OR ends_at >= $10) AND ($11::timestamptz IS NULL OR ends_at < $11)
       AND (created_at, id) > ($12::timestamptz, $13::uuid) ORDER BY created_at, id LIMIT $14"
));
static LIST_NEWEST: Sql = Sql::new(select!(
    "($2::uuid[] IS NULL OR user_id = ANY ($2)) AND ($3::uuid[] IS NULL OR plan_id = ANY ($3))
       AND ($4::text[] IS NULL
            OR status = ANY ($4) AND (status = 'expired' OR ends_at IS NULL OR ends_at > $5::timestamptz)
            OR 'expired' = ANY ($4) AND ends_at <= $5)
       AND ($6::boolean IS NULL
            OR $6 AND status IN ('on_trial', 'active', 'past_due', 'cancelled') AND NOT suspended AND (starts_at <= $5 OR starts_at <= updated_at)
               AND (ends_at IS NULL OR ends_at > $5)
            OR NOT $6 AND (status IN ('pending', 'paused', 'unpaid', 'expired') OR suspended
               OR starts_at > $5 AND starts_at > updated_at OR ends_at <= $5))
       AND ($7::text[] IS NULL OR external_id = ANY ($7))
       AND ($8::timestamptz IS NULL OR renews_at >= $8) AND ($9::timestamptz IS NULL OR renews_at < $9)
       AND ($10::timestamptz IS NULL OR ends_at >= $10) AND ($11::timestamptz IS NULL OR ends_at < $11)
       AND (created_at, id) < ($12::timestamptz, $13::uuid) ORDER BY created_at DESC, id DESC LIMIT $14"
));

/// Up to `limit` subscriptions after a place, as they are at `now`.
pub(super) async fn list(
    connection: &Connection,
    tenant: TenantId,
    filter: &Filter,
    (order, after): (Order, Option<Place>),
    limit: i64,
    now: Timestamp,
) -> Result<Vec<Subscription>, Error> {
    let (sql, created_at, id) = match order {
        Order::Oldest => (&LIST_OLDEST, Timestamp::UNIX_EPOCH, Uuid::nil()),
        Order::Newest => (&LIST_NEWEST, Timestamp::MAX, Uuid::max()),
    };
    let place = after.unwrap_or(Place { created_at, id });
    let uuids = |ids: &mut dyn Iterator<Item = Uuid>| ids.collect::<Vec<_>>();
    let users = filter.users.as_ref();
    let users = users.map(|ids| uuids(&mut ids.iter().map(|id| id.uuid())));
    let plans = filter.plans.as_ref();
    let plans = plans.map(|ids| uuids(&mut ids.iter().map(|id| id.uuid())));
    let statuses = filter.statuses.as_ref();
    let statuses = statuses.map(|all| all.iter().map(|one| one.as_str()).collect::<Vec<_>>());
    let external_ids = filter.external_ids.as_ref();
    let external_ids =
        external_ids.map(|ids| ids.iter().map(ExternalId::as_str).collect::<Vec<_>>());
    let params: [&(dyn ToSql + Sync); 14] = [
        &tenant.uuid(),
        &users,
        &plans,
        &statuses,
        &now,
        &filter.is_active,
        &external_ids,
        &filter.renews_at.from,
        &filter.renews_at.before,
        &filter.ends_at.from,
        &filter.ends_at.before,
        &place.created_at,
        &place.id,
        &limit,
    ];
    let rows = connection.query_planned_anew(sql, &params).await?;
    rows.iter().map(subscription).collect()
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
    Ok(write(tx, &INSERT, tenant, subscription).await? > 0)
}

static SAVE: Sql = Sql::new(
    "UPDATE subscriptions
     SET user_id = $3, plan_id = $4, price_minor = $5, currency = $6, plan_billing_cycle = $7, external_id = $8,
         billing_cycle = $9, status = $10, suspended = $11, starts_at = $12, renews_at = $13, ends_at = $14,
         anchor = $15, prepaid = $16, late_since = $17, created_at = $18, updated_at = $19
     WHERE tenant_id = $1 AND id = $2",
);

/// Writes a subscription that was locked; refused by [`EXTERNAL_ID_UNIQUE`] if another has its external id.
pub async fn save(
    tx: &Transaction<'_>,
    tenant: TenantId,
    subscription: &Subscription,
) -> Result<(), Error> {
    write(tx, &SAVE, tenant, subscription).await?;
    Ok(())
}

/// Runs a statement that takes the tenant and all columns, in the table's order.
async fn write(
    tx: &Transaction<'_>,
    sql: &'static Sql,
    tenant: TenantId,
    subscription: &Subscription,
) -> Result<u64, Error> {
    let terms = &subscription.terms;
    let prepaid = i32::try_from(subscription.prepaid).unwrap_or(i32::MAX);
    let params: [&(dyn ToSql + Sync); 19] = [
        &tenant.uuid(),
        &subscription.id.uuid(),
        &subscription.user.uuid(),
        &terms.plan.uuid(),
        &terms.price.minor_units(),
        &terms.price.currency().code(),
        &terms.billing_cycle.as_str(),
        &subscription.external_id.as_ref().map(ExternalId::as_str),
        &subscription.billing_cycle.as_str(),
        &subscription.status.as_str(),
        &subscription.suspended,
        &subscription.starts_at,
        &subscription.renews_at,
        &subscription.ends_at,
        &subscription.anchor,
        &prepaid,
        &subscription.late_since,
        &subscription.created_at,
        &subscription.updated_at,
    ];
    tx.execute(sql, &params).await
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
    tx.execute(&BURY, &[&tenant.uuid(), &id.uuid(), &now])
        .await?;
    Ok(())
}

/// A row as the subscription that it is.
pub(super) fn subscription(row: &Row) -> Result<Subscription, Error> {
    let minor_units = row.try_get("price_minor")?;
    let currency = text(row, "currency")?;
    Ok(Subscription {
        id: SubscriptionId::new(row.try_get("id")?),
        user: UserId::new(row.try_get("user_id")?),
        terms: Terms {
            plan: PlanId::new(row.try_get("plan_id")?),
            price: checked("price_minor", Money::of_minor_units(minor_units, currency))?,
            billing_cycle: text(row, "plan_billing_cycle")?,
        },
        external_id: optional_text(row, "external_id")?,
        billing_cycle: text(row, "billing_cycle")?,
        status: text(row, "status")?,
        suspended: row.try_get("suspended")?,
        starts_at: row.try_get("starts_at")?,
        renews_at: row.try_get("renews_at")?,
        ends_at: row.try_get("ends_at")?,
        anchor: row.try_get("anchor")?,
        prepaid: integer(row, "prepaid")?,
        late_since: row.try_get("late_since")?,
        created_at: row.try_get("created_at")?,
        updated_at: row.try_get("updated_at")?,
    })
}
