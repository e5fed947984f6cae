//! SQL of the table `subscription_plans`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use perennial_domain::{
    Features, Href, Id, MultiLine, Offer, Plan, PlanDetails, PlanId, SingleLine, Slug, TenantId,
    UserId, Variants,
};
use tokio_postgres::{
    Row,
    types::{Json, ToSql},
};

use super::PlanRef;
use crate::db::{CellDatabase, Error, PooledConnection, RowReader, Sql, Transaction, check_range};

/// The unique index on the slugs of plans that are not deleted. It ignores case.
pub(super) const SLUG_UNIQUE: &str = "subscription_plans_slug";

/// The columns after the key `(tenant_id, id)`. [`placeholders!`] and [`params!`] use the same order.
macro_rules! columns {
    () => {
        "slug, name, product_id, variants, price_minor, currency, href, billing_cycle, trial_days, description,
         node_quota, features, most_popular, tier, is_active, metadata, created_at, updated_at"
    };
}

macro_rules! placeholders {
    () => {
        "$3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20"
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
            &Json($plan.details.metadata.pairs()),
            &$plan.created_at,
            &$plan.updated_at,
        ]
    };
}

/// Reads the key and [`columns!`].
pub(super) fn from_row(row: &Row) -> Result<Plan, Error> {
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
            metadata: row.metadata()?,
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

pub(super) use {columns, select};

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

static FIND_BY_ID: Sql = Sql::new(select!("id = $2"));

/// Returns the plan with this id.
pub async fn find_by_id(
    database: &CellDatabase,
    tenant: TenantId,
    id: PlanId,
) -> Result<Option<Plan>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &id.uuid()];
    let row = database.read(&FIND_BY_ID, &params).await?;
    row.as_ref().map(from_row).transpose()
}

static IS_SUBSCRIBER: Sql = Sql::new(
    "SELECT 1 FROM subscriptions
     WHERE tenant_id = $1 AND user_id = $2 AND plan_id = $3 AND deleted_at IS NULL LIMIT 1",
);

/// Returns whether a user has a subscription to a plan, in any status.
pub(super) async fn is_subscriber(
    database: &CellDatabase,
    tenant: TenantId,
    user: UserId,
    plan: PlanId,
) -> Result<bool, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &user.uuid(), &plan.uuid()];
    let row = database.read(&IS_SUBSCRIBER, &params).await?;
    Ok(row.is_some())
}

static IDS_BY_SLUG: Sql =
    Sql::new("SELECT id FROM subscription_plans WHERE tenant_id = $1 AND lower(slug) = ANY ($2)");

/// Returns the ids of the plans with these slugs, ignoring case. Deleted plans are included, so a slug can have
/// several.
pub async fn find_ids_by_slug(
    database: &CellDatabase,
    tenant: TenantId,
    slugs: &[Slug],
) -> Result<Vec<PlanId>, Error> {
    let lower = |slug: &Slug| slug.as_str().to_ascii_lowercase();
    let slugs: Vec<String> = slugs.iter().map(lower).collect();
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &slugs];
    let rows = database.read_all(&IDS_BY_SLUG, &params).await?;
    rows.iter()
        .map(|row| Ok(PlanId::new(row.try_get(0)?)))
        .collect()
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

/// Selects the offer of a plan that meets the condition, and locks the plan.
macro_rules! lock_offer {
    ($condition:literal) => {
        concat!(
            "SELECT id, slug, price_minor, currency, billing_cycle, trial_days, is_active FROM subscription_plans
     WHERE tenant_id = $1 AND ",
            $condition,
            " AND deleted_at IS NULL FOR KEY SHARE"
        )
    };
}

static LOCK_OFFER_KEY_SHARE: Sql = Sql::new(lock_offer!("id = $2"));
static LOCK_OFFER_BY_SLUG_KEY_SHARE: Sql = Sql::new(lock_offer!("lower(slug) = lower($2)"));

/// Returns a plan's offer and keeps the plan from being deleted until the end of the transaction.
pub async fn lock_offer_key_share(
    tx: &Transaction<'_>,
    tenant: TenantId,
    plan: &PlanRef,
) -> Result<Option<Offer>, Error> {
    let rows = match plan {
        PlanRef::Id(id) | PlanRef::Both(id, _) => {
            let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &id.uuid()];
            tx.query(&LOCK_OFFER_KEY_SHARE, &params).await?
        }
        PlanRef::Slug(slug) => {
            let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &slug.as_str()];
            tx.query(&LOCK_OFFER_BY_SLUG_KEY_SHARE, &params).await?
        }
    };
    rows.first().map(offer_from_row).transpose()
}

fn offer_from_row(row: &Row) -> Result<Offer, Error> {
    let row = RowReader::new(row);
    Ok(Offer {
        plan: PlanId::new(row.get("id")?),
        slug: row.parse("slug")?,
        price: row.money("price_minor")?,
        billing_cycle: row.parse("billing_cycle")?,
        trial_days: row.integer("trial_days")?,
        is_active: row.get("is_active")?,
    })
}

static LOCK_OFFERS_BY_VARIANT: Sql = Sql::new(lock_offer!("variants @> ARRAY[$2::text]"));
static LOCK_OFFERS_BY_PRODUCT: Sql = Sql::new(lock_offer!("product_id = $2"));

/// Returns the offers of the plans that have this variant at the payment provider, or else of those that have its product.
/// Keeps the plans from being deleted until the end of the transaction.
pub async fn lock_offers_for_variant(
    tx: &Transaction<'_>,
    tenant: TenantId,
    variant: &str,
    product: Option<&str>,
) -> Result<Vec<Offer>, Error> {
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &variant];
    let mut rows = tx.query(&LOCK_OFFERS_BY_VARIANT, &params).await?;
    if let Some(product) = product.filter(|_| rows.is_empty()) {
        let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &product];
        rows = tx.query(&LOCK_OFFERS_BY_PRODUCT, &params).await?;
    }
    rows.iter().map(offer_from_row).collect()
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
