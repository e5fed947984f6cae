//! SQL of the table `subscription_plans`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use perennial_domain::{
    BillingCycle, Features, Href, Id, MultiLine, Offer, Plan, PlanDetails, PlanId, SingleLine,
    Slug, TenantId, Variants,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use crate::db::{
    AgeOrder, ByAgeSql, CellDatabase, Error, PooledConnection, RowReader, Sql, Transaction, by_age,
    check_range,
};

/// The unique index on the slugs of plans that are not deleted. It ignores case.
pub(super) const SLUG_UNIQUE: &str = "subscription_plans_slug";

/// The columns after the key `(tenant_id, id)`. [`placeholders!`] and [`params!`] use the same order.
macro_rules! columns {
    () => {
        "slug, name, product_id, variants, price_minor, currency, href, billing_cycle, trial_days, description,
         node_quota, features, most_popular, tier, is_active, created_at, updated_at"
    };
}

macro_rules! placeholders {
    () => {
        "$3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19"
    };
}

macro_rules! params {
    ($tenant:ident, $plan:ident) => {
        &[
            &$tenant.uuid(),
            &$plan.id.uuid(),
            &$plan.details.slug.as_str(),
            &$plan.details.name.as_str(),
            &$plan.details.product_id.as_ref().map(SingleLine::as_str),
            &$plan.details.variants.iter().collect::<Vec<_>>(),
            &$plan.details.price.minor_units(),
            &$plan.details.price.currency().code(),
            &$plan.details.href.as_ref().map(Href::as_str),
            &$plan.details.billing_cycle.as_str(),
            &$plan.details.trial_days.get(),
            &$plan.details.description.as_ref().map(MultiLine::as_str),
            &$plan.details.node_quota.get(),
            &$plan.details.features.as_ref().map(Features::as_str),
            &$plan.details.most_popular,
            &$plan.details.tier.get(),
            &$plan.details.is_active,
            &$plan.created_at,
            &$plan.updated_at,
        ]
    };
}

/// Reads the key and [`columns!`].
fn from_row(row: &Row) -> Result<Plan, Error> {
    let row = RowReader::new(row);
    Ok(Plan {
        id: PlanId::new(row.get("id")?),
        details: PlanDetails {
            slug: row.parse("slug")?,
            name: row.parse("name")?,
            product_id: row.parse_optional("product_id")?,
            variants: check_range("variants", Variants::new(row.parse_list("variants")?).ok())?,
            price: row.money("price_minor")?,
            href: row.parse_optional("href")?,
            billing_cycle: row.parse("billing_cycle")?,
            trial_days: row.integer("trial_days")?,
            description: row.parse_optional("description")?,
            node_quota: row.integer("node_quota")?,
            features: row.parse_optional("features")?,
            most_popular: row.get("most_popular")?,
            tier: row.integer("tier")?,
            is_active: row.get("is_active")?,
        },
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}

/// Selects a tenant's plans that are not deleted and meet the conditions.
macro_rules! select {
    ($($conditions:tt)*) => {
        concat!(
            "SELECT id, ",
            columns!(),
            " FROM subscription_plans
     WHERE tenant_id = $1 AND deleted_at IS NULL AND ",
            $($conditions)*
        )
    };
}

static FIND: Sql = Sql::new(select!("lower(slug) = lower($2)"));

/// Returns the plan with this slug, ignoring case.
pub async fn find(
    database: &CellDatabase,
    tenant: TenantId,
    slug: &Slug,
) -> Result<Option<Plan>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &slug.as_str()];
    let row = database.read(&FIND, &params).await?;
    row.as_ref().map(from_row).transpose()
}

static SLUGS: Sql = Sql::new("SELECT id, slug FROM subscription_plans WHERE tenant_id = $1");

/// Returns the slugs of all plans of a tenant, including deleted ones.
pub async fn slugs(
    connection: &PooledConnection,
    tenant: TenantId,
) -> Result<BTreeMap<PlanId, String>, Error> {
    let rows = connection.query(&SLUGS, &[&tenant.uuid()]).await?;
    rows.iter()
        .map(|row| Ok((PlanId::new(row.try_get("id")?), row.try_get("slug")?)))
        .collect()
}

static LOCK: Sql = Sql::new(select!("lower(slug) = lower($2) FOR NO KEY UPDATE"));

/// Locks the row until the end of the transaction and returns it.
pub(super) async fn lock(
    tx: &Transaction<'_>,
    tenant: TenantId,
    slug: &Slug,
) -> Result<Option<Plan>, Error> {
    let rows = tx.query(&LOCK, &[&tenant.uuid(), &slug.as_str()]).await?;
    rows.first().map(from_row).transpose()
}

static LOCK_FOR_DELETE: Sql = Sql::new(select!("lower(slug) = lower($2) FOR UPDATE"));

/// Like [`lock`], but also blocks new subscriptions ([`lock_offer_key_share`]).
pub(super) async fn lock_for_delete(
    tx: &Transaction<'_>,
    tenant: TenantId,
    slug: &Slug,
) -> Result<Option<Plan>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &slug.as_str()];
    let rows = tx.query(&LOCK_FOR_DELETE, &params).await?;
    rows.first().map(from_row).transpose()
}

static LOCK_OFFER_KEY_SHARE: Sql = Sql::new(
    "SELECT price_minor, currency, billing_cycle, trial_days, is_active FROM subscription_plans
     WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL FOR KEY SHARE",
);

/// Returns a plan's offer and keeps the plan from being deleted until the end of the transaction.
pub async fn lock_offer_key_share(
    tx: &Transaction<'_>,
    tenant: TenantId,
    plan: PlanId,
) -> Result<Option<Offer>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &plan.uuid()];
    let rows = tx.query(&LOCK_OFFER_KEY_SHARE, &params).await?;
    let offer = |row: &Row| {
        let row = RowReader::new(row);
        Ok(Offer {
            plan,
            price: row.money("price_minor")?,
            billing_cycle: row.parse("billing_cycle")?,
            trial_days: row.integer("trial_days")?,
            is_active: row.get("is_active")?,
        })
    };
    rows.first().map(offer).transpose()
}

/// The highest result of [`count_live_subscriptions`], which means "at least this many".
pub(super) const MAX_LIVE_COUNT: i64 = 100;

// Lists the statuses instead of `<> 'expired'`, so that PostgreSQL finds them in the index
// `subscriptions_of_plan_by_status` without reading expired subscriptions.
static COUNT_LIVE_SUBSCRIPTIONS: Sql = Sql::new(
    "SELECT count(*) FROM (
        SELECT FROM subscriptions
        WHERE tenant_id = $1 AND plan_id = $2 AND deleted_at IS NULL
          AND status IN ('pending', 'on_trial', 'active', 'paused', 'past_due', 'unpaid', 'cancelled')
          AND (ends_at IS NULL OR ends_at > $3) LIMIT $4) AS live",
);

/// Returns the number of a plan's subscriptions that have not expired, up to [`MAX_LIVE_COUNT`].
pub(super) async fn count_live_subscriptions(
    tx: &Transaction<'_>,
    tenant: TenantId,
    plan: PlanId,
    now: Timestamp,
) -> Result<i64, Error> {
    let params: [&(dyn ToSql + Sync); 4] = [&tenant.uuid(), &plan.uuid(), &now, &MAX_LIVE_COUNT];
    let rows = tx.query(&COUNT_LIVE_SUBSCRIPTIONS, &params).await?;
    rows.first().map_or(Ok(0), |row| Ok(row.try_get(0)?))
}

/// Conditions on the plans of a list; `None` matches all.
#[derive(Debug, Default)]
pub(super) struct PlanFilter {
    pub is_active: Option<Vec<bool>>,
    pub tier: Option<Vec<i32>>,
    pub billing_cycle: Option<Vec<BillingCycle>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum PlanOrder {
    ByAge(AgeOrder),
    LowestTierFirst,
    HighestTierFirst,
}

/// The sort keys of a plan in all orders.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlanKey {
    pub created_at: Timestamp,
    pub tier: i32,
    pub id: Uuid,
}

impl PlanKey {
    /// Sorts before all plans.
    const FIRST: Self = Self {
        created_at: Timestamp::UNIX_EPOCH,
        tier: i32::MIN,
        id: Uuid::nil(),
    };
    /// Sorts after all plans.
    const LAST: Self = Self {
        created_at: Timestamp::MAX,
        tier: i32::MAX,
        id: Uuid::max(),
    };
}

/// The conditions of [`PlanFilter`]. They follow the parameters of [`by_age!`]: `$1` is the tenant,
/// `$2` and `$3` are the key to start after, and `$4` is the limit.
macro_rules! filters {
    () => {
        "($5::boolean[] IS NULL OR is_active = ANY ($5)) AND ($6::integer[] IS NULL OR tier = ANY ($6))
       AND ($7::text[] IS NULL OR billing_cycle = ANY ($7)) AND "
    };
}

static BY_AGE: ByAgeSql = by_age!(select, filters!(),);
static LOWEST_TIER_FIRST: Sql = Sql::new(select!(
    filters!(),
    "(tier, id) > ($2, $3) ORDER BY tier, id LIMIT $4"
));
static HIGHEST_TIER_FIRST: Sql = Sql::new(select!(
    filters!(),
    "(tier, id) < ($2, $3) ORDER BY tier DESC, id DESC LIMIT $4"
));

/// Returns up to `limit` plans after a key.
pub(super) async fn list(
    connection: &PooledConnection,
    tenant: TenantId,
    filter: &PlanFilter,
    (order, after): (PlanOrder, Option<PlanKey>),
    limit: i64,
) -> Result<Vec<Plan>, Error> {
    let (sql, start) = match order {
        PlanOrder::ByAge(AgeOrder::OldestFirst) => (&BY_AGE.oldest_first, PlanKey::FIRST),
        PlanOrder::ByAge(AgeOrder::NewestFirst) => (&BY_AGE.newest_first, PlanKey::LAST),
        PlanOrder::LowestTierFirst => (&LOWEST_TIER_FIRST, PlanKey::FIRST),
        PlanOrder::HighestTierFirst => (&HIGHEST_TIER_FIRST, PlanKey::LAST),
    };
    let after = after.unwrap_or(start);
    let sort_key: &(dyn ToSql + Sync) = match order {
        PlanOrder::ByAge(_) => &after.created_at,
        PlanOrder::LowestTierFirst | PlanOrder::HighestTierFirst => &after.tier,
    };
    let billing_cycles: Option<Vec<&str>> = filter
        .billing_cycle
        .as_ref()
        .map(|cycles| cycles.iter().map(|cycle| cycle.as_str()).collect());
    let params: [&(dyn ToSql + Sync); 7] = [
        &tenant.uuid(),
        sort_key,
        &after.id,
        &limit,
        &filter.is_active,
        &filter.tier,
        &billing_cycles,
    ];
    let rows = connection.query(sql, &params).await?;
    rows.iter().map(from_row).collect()
}

/// Returns all plans of a tenant, lowest tier first.
pub async fn list_all(connection: &PooledConnection, tenant: TenantId) -> Result<Vec<Plan>, Error> {
    let start = (PlanOrder::LowestTierFirst, None);
    list(connection, tenant, &PlanFilter::default(), start, i64::MAX).await
}

static INSERT: Sql = Sql::new(concat!(
    "INSERT INTO subscription_plans (tenant_id, id, ",
    columns!(),
    ") VALUES ($1, $2, ",
    placeholders!(),
    ")"
));

/// Inserts a plan. A duplicate slug violates [`SLUG_UNIQUE`].
pub async fn insert(tx: &Transaction<'_>, tenant: TenantId, plan: &Plan) -> Result<(), Error> {
    tx.execute(&INSERT, params!(tenant, plan)).await?;
    Ok(())
}

static UPDATE: Sql = Sql::new(concat!(
    "UPDATE subscription_plans SET (",
    columns!(),
    ") = (",
    placeholders!(),
    ") WHERE tenant_id = $1 AND id = $2"
));

/// Updates a locked plan. The statement is sent with the next one or with COMMIT, which returns its
/// error, if any.
pub(super) async fn update(
    tx: &Transaction<'_>,
    tenant: TenantId,
    plan: &Plan,
) -> Result<(), Error> {
    tx.enqueue(&UPDATE, params!(tenant, plan)).await
}

pub(super) static SOFT_DELETE: Sql =
    Sql::new("UPDATE subscription_plans SET deleted_at = $3 WHERE tenant_id = $1 AND id = $2");
