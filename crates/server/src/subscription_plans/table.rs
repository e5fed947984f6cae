//! The table `subscription_plans`: all its SQL.

use std::collections::BTreeMap;

use jiff::Timestamp;
use perennial_domain::{
    BillingCycle, Features, Href, Id, Line, NewPlan, Offer, Plan, PlanId, Prose, Slug, TenantId,
    Variants,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use crate::db::{
    Connection, Engine, Error, Sql, Transaction,
    row::{Reader, checked},
};

/// The constraint that keeps slugs unique.
pub const SLUG_UNIQUE: &str = "subscription_plans_slug";

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, slug, name, product_id, variants, price_minor, currency, href, billing_cycle, description,
            node_quota, features, most_popular, tier, is_active, created_at, updated_at
     FROM subscription_plans
     WHERE tenant_id = $1 AND deleted_at IS NULL AND ",
            $rest
        )
    };
}

static FIND: Sql = Sql::new(select!("lower(slug) = lower($2)"));

/// The plan with this slug, in any case.
pub async fn find(engine: &Engine, tenant: TenantId, slug: &Slug) -> Result<Option<Plan>, Error> {
    let row = engine
        .read(&FIND, &[&tenant.uuid(), &slug.as_str()])
        .await?;
    row.as_ref().map(plan).transpose()
}

// Also what was deleted: somebody may have it still.
static SLUGS: Sql = Sql::new("SELECT id, slug FROM subscription_plans WHERE tenant_id = $1");

/// What each plan of a tenant is or was called.
pub async fn slugs(
    connection: &Connection,
    tenant: TenantId,
) -> Result<BTreeMap<PlanId, String>, Error> {
    let rows = connection.query(&SLUGS, &[&tenant.uuid()]).await?;
    rows.iter()
        .map(|row| Ok((PlanId::new(row.try_get("id")?), row.try_get("slug")?)))
        .collect()
}

static LOCK: Sql = Sql::new(select!("lower(slug) = lower($2) FOR NO KEY UPDATE"));

/// The same; nobody else changes it until the end of the transaction.
pub(super) async fn lock(
    tx: &Transaction<'_>,
    tenant: TenantId,
    slug: &Slug,
) -> Result<Option<Plan>, Error> {
    let rows = tx.query(&LOCK, &[&tenant.uuid(), &slug.as_str()]).await?;
    rows.first().map(plan).transpose()
}

static LOCK_TO_DELETE: Sql = Sql::new(select!("lower(slug) = lower($2) FOR UPDATE"));

/// The same; nor does anybody take it ([`hold_offer`]).
pub(super) async fn lock_to_delete(
    tx: &Transaction<'_>,
    tenant: TenantId,
    slug: &Slug,
) -> Result<Option<Plan>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &slug.as_str()];
    let rows = tx.query(&LOCK_TO_DELETE, &params).await?;
    rows.first().map(plan).transpose()
}

static HOLD_OFFER: Sql = Sql::new(
    "SELECT price_minor, currency, billing_cycle, is_active FROM subscription_plans
     WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL FOR KEY SHARE",
);

/// What a plan offers; nobody deletes it until the end of the transaction.
pub async fn hold_offer(
    tx: &Transaction<'_>,
    tenant: TenantId,
    plan: PlanId,
) -> Result<Option<Offer>, Error> {
    let rows = tx
        .query(&HOLD_OFFER, &[&tenant.uuid(), &plan.uuid()])
        .await?;
    let offer = |row: &Row| {
        let row = Reader::of(row);
        Ok(Offer {
            plan,
            price: row.money("price_minor")?,
            billing_cycle: row.text("billing_cycle")?,
            is_active: row.get("is_active")?,
        })
    };
    rows.first().map(offer).transpose()
}

/// As far as live subscriptions are counted: whether it is hundreds or millions, the plan stays.
pub(super) const MOST_COUNTED: i64 = 100;

// Each status that is not over by name: the index knows where those are, and expired ones are passed over.
static COUNT_LIVE: Sql = Sql::new(
    "SELECT count(*) FROM (
        SELECT FROM subscriptions
        WHERE tenant_id = $1 AND plan_id = $2 AND deleted_at IS NULL
          AND status IN ('pending', 'on_trial', 'active', 'paused', 'past_due', 'unpaid', 'cancelled')
          AND (ends_at IS NULL OR ends_at > $3) LIMIT $4) AS live",
);

/// How many live subscriptions point at a plan, up to [`MOST_COUNTED`].
pub(super) async fn count_live(
    tx: &Transaction<'_>,
    tenant: TenantId,
    plan: PlanId,
    now: Timestamp,
) -> Result<i64, Error> {
    let params: [&(dyn ToSql + Sync); 4] = [&tenant.uuid(), &plan.uuid(), &now, &MOST_COUNTED];
    let rows = tx.query(&COUNT_LIVE, &params).await?;
    rows.first().map_or(Ok(0), |row| Ok(row.try_get(0)?))
}

/// Which plans of a tenant are listed: those that are one of each.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub is_active: Option<Vec<bool>>,
    pub tier: Option<Vec<i32>>,
    pub billing_cycle: Option<Vec<BillingCycle>>,
}

/// Which come first.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    Oldest,
    Newest,
    LowestTier,
    HighestTier,
}

/// Where a page begins: after the plan with these.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub created_at: Timestamp,
    pub tier: i32,
    pub id: Uuid,
}

static LIST_OLDEST: Sql = Sql::new(select!(
    "($2::boolean[] IS NULL OR is_active = ANY ($2)) AND ($3::integer[] IS NULL OR tier = ANY ($3))
       AND ($4::text[] IS NULL OR billing_cycle = ANY ($4))
       AND (created_at, id) > ($5, $6) ORDER BY created_at, id LIMIT $7"
));
static LIST_NEWEST: Sql = Sql::new(select!(
    "($2::boolean[] IS NULL OR is_active = ANY ($2)) AND ($3::integer[] IS NULL OR tier = ANY ($3))
       AND ($4::text[] IS NULL OR billing_cycle = ANY ($4))
       AND (created_at, id) < ($5, $6) ORDER BY created_at DESC, id DESC LIMIT $7"
));
static LIST_LOWEST_TIER: Sql = Sql::new(select!(
    "($2::boolean[] IS NULL OR is_active = ANY ($2)) AND ($3::integer[] IS NULL OR tier = ANY ($3))
       AND ($4::text[] IS NULL OR billing_cycle = ANY ($4))
       AND (tier, id) > ($5, $6) ORDER BY tier, id LIMIT $7"
));
static LIST_HIGHEST_TIER: Sql = Sql::new(select!(
    "($2::boolean[] IS NULL OR is_active = ANY ($2)) AND ($3::integer[] IS NULL OR tier = ANY ($3))
       AND ($4::text[] IS NULL OR billing_cycle = ANY ($4))
       AND (tier, id) < ($5, $6) ORDER BY tier DESC, id DESC LIMIT $7"
));

/// Up to `limit` plans after a place.
pub(super) async fn list(
    connection: &Connection,
    tenant: TenantId,
    filter: &Filter,
    order: Order,
    after: Option<Place>,
    limit: i64,
) -> Result<Vec<Plan>, Error> {
    let first = Place {
        created_at: Timestamp::UNIX_EPOCH,
        tier: i32::MIN,
        id: Uuid::nil(),
    };
    let last = Place {
        created_at: Timestamp::MAX,
        tier: i32::MAX,
        id: Uuid::max(),
    };
    let (sql, begin, by_age) = match order {
        Order::Oldest => (&LIST_OLDEST, first, true),
        Order::Newest => (&LIST_NEWEST, last, true),
        Order::LowestTier => (&LIST_LOWEST_TIER, first, false),
        Order::HighestTier => (&LIST_HIGHEST_TIER, last, false),
    };
    let place = after.unwrap_or(begin);
    let cycles: Option<Vec<&str>> = filter
        .billing_cycle
        .as_ref()
        .map(|all| all.iter().map(|c| c.as_str()).collect());
    let key: &(dyn ToSql + Sync) = if by_age {
        &place.created_at
    } else {
        &place.tier
    };
    let params: [&(dyn ToSql + Sync); 7] = [
        &tenant.uuid(),
        &filter.is_active,
        &filter.tier,
        &cycles,
        key,
        &place.id,
        &limit,
    ];
    connection
        .query(sql, &params)
        .await?
        .iter()
        .map(plan)
        .collect()
}

/// The tenant and all columns of a record, in the table's order, for [`INSERT`] and [`SAVE`].
macro_rules! columns {
    ($tenant:ident, $record:ident) => {
        &[
            &$tenant.uuid(),
            &$record.id.uuid(),
            &$record.terms.slug.as_str(),
            &$record.terms.name.as_str(),
            &$record.terms.product_id.as_ref().map(Line::as_str),
            &$record.terms.variants.iter().collect::<Vec<_>>(),
            &$record.terms.price.minor_units(),
            &$record.terms.price.currency().code(),
            &$record.terms.href.as_ref().map(Href::as_str),
            &$record.terms.billing_cycle.as_str(),
            &$record.terms.description.as_ref().map(Prose::as_str),
            &$record.terms.node_quota.get(),
            &$record.terms.features.as_ref().map(Features::as_str),
            &$record.terms.most_popular,
            &$record.terms.tier.get(),
            &$record.terms.is_active,
            &$record.created_at,
            &$record.updated_at,
        ]
    };
}

static SAVE: Sql = Sql::new(
    "UPDATE subscription_plans
     SET slug = $3, name = $4, product_id = $5, variants = $6, price_minor = $7, currency = $8, href = $9,
         billing_cycle = $10, description = $11, node_quota = $12, features = $13, most_popular = $14, tier = $15,
         is_active = $16, created_at = $17, updated_at = $18
     WHERE tenant_id = $1 AND id = $2",
);

/// Writes a plan that was locked.
pub(super) async fn save(tx: &Transaction<'_>, tenant: TenantId, plan: &Plan) -> Result<(), Error> {
    tx.write(&SAVE, columns!(tenant, plan)).await
}

static BURY: Sql =
    Sql::new("UPDATE subscription_plans SET deleted_at = $3 WHERE tenant_id = $1 AND id = $2");

/// Marks a plan that was locked as deleted: its slug is free, its history stays.
pub(super) async fn bury(
    tx: &Transaction<'_>,
    tenant: TenantId,
    plan: PlanId,
    now: Timestamp,
) -> Result<(), Error> {
    tx.write(&BURY, &[&tenant.uuid(), &plan.uuid(), &now]).await
}

static INSERT: Sql = Sql::new(
    "INSERT INTO subscription_plans (tenant_id, id, slug, name, product_id, variants, price_minor, currency, href,
        billing_cycle, description, node_quota, features, most_popular, tier, is_active, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
);

/// Adds a plan; refused by [`SLUG_UNIQUE`] if its slug is taken.
pub async fn insert(tx: &Transaction<'_>, tenant: TenantId, plan: &Plan) -> Result<(), Error> {
    tx.execute(&INSERT, columns!(tenant, plan)).await?;
    Ok(())
}

/// A row as the plan that it is.
fn plan(row: &Row) -> Result<Plan, Error> {
    let row = Reader::of(row);
    Ok(Plan {
        id: PlanId::new(row.get("id")?),
        terms: NewPlan {
            slug: row.text("slug")?,
            name: row.text("name")?,
            product_id: row.optional_text("product_id")?,
            variants: checked("variants", Variants::new(row.texts("variants")?).ok())?,
            price: row.money("price_minor")?,
            href: row.optional_text("href")?,
            billing_cycle: row.text("billing_cycle")?,
            description: row.optional_text("description")?,
            node_quota: row.integer("node_quota")?,
            features: row.optional_text("features")?,
            most_popular: row.get("most_popular")?,
            tier: row.integer("tier")?,
            is_active: row.get("is_active")?,
        },
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}
