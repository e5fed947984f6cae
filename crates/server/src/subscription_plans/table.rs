//! The table `subscription_plans`: all its SQL.

use perennial_domain::{
    Features, Href, Id, Line, Money, NewPlan, Plan, PlanId, Prose, Slug, TenantId, Variants,
};
use tokio_postgres::{Row, types::ToSql};

use crate::db::{
    Engine, Error, Sql, Transaction,
    row::{checked, integer, optional_text, text, texts},
};

/// The constraint that keeps slugs unique.
pub const SLUG_UNIQUE: &str = "subscription_plans_slug";

static FIND: Sql = Sql::new(
    "SELECT id, slug, name, product_id, variants, price_minor, currency, href, billing_cycle, description,
            node_quota, features, most_popular, tier, is_active, created_at, updated_at
     FROM subscription_plans
     WHERE tenant_id = $1 AND lower(slug) = lower($2) AND deleted_at IS NULL",
);

/// The plan with this slug, in any case.
pub(super) async fn find(
    engine: &Engine,
    tenant: TenantId,
    slug: &Slug,
) -> Result<Option<Plan>, Error> {
    let row = engine
        .read(&FIND, &[&tenant.uuid(), &slug.as_str()])
        .await?;
    row.as_ref().map(plan).transpose()
}

static INSERT: Sql = Sql::new(
    "INSERT INTO subscription_plans (tenant_id, id, slug, name, product_id, variants, price_minor, currency, href,
        billing_cycle, description, node_quota, features, most_popular, tier, is_active, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
);

/// Adds a plan; refused by [`SLUG_UNIQUE`] if its slug is taken.
pub(super) async fn insert(
    tx: &Transaction<'_>,
    tenant: TenantId,
    plan: &Plan,
) -> Result<(), Error> {
    let terms = &plan.terms;
    let variants: Vec<&str> = terms.variants.iter().collect();
    let params: [&(dyn ToSql + Sync); 18] = [
        &tenant.uuid(),
        &plan.id.uuid(),
        &terms.slug.as_str(),
        &terms.name.as_str(),
        &terms.product_id.as_ref().map(Line::as_str),
        &variants,
        &terms.price.minor_units(),
        &terms.price.currency().code(),
        &terms.href.as_ref().map(Href::as_str),
        &terms.billing_cycle.as_str(),
        &terms.description.as_ref().map(Prose::as_str),
        &terms.node_quota.get(),
        &terms.features.as_ref().map(Features::as_str),
        &terms.most_popular,
        &terms.tier.get(),
        &terms.is_active,
        &plan.created_at,
        &plan.updated_at,
    ];
    tx.execute(&INSERT, &params).await?;
    Ok(())
}

/// A row as the plan that it is.
fn plan(row: &Row) -> Result<Plan, Error> {
    let minor_units = row.try_get("price_minor")?;
    let currency = text(row, "currency")?;
    Ok(Plan {
        id: PlanId::new(row.try_get("id")?),
        terms: NewPlan {
            name: text(row, "name")?,
            slug: text(row, "slug")?,
            price: checked("price_minor", Money::of_minor_units(minor_units, currency))?,
            billing_cycle: text(row, "billing_cycle")?,
            product_id: optional_text(row, "product_id")?,
            variants: checked("variants", Variants::new(texts(row, "variants")?).ok())?,
            href: optional_text(row, "href")?,
            description: optional_text(row, "description")?,
            node_quota: integer(row, "node_quota")?,
            features: optional_text(row, "features")?,
            most_popular: row.try_get("most_popular")?,
            tier: integer(row, "tier")?,
            is_active: row.try_get("is_active")?,
        },
        created_at: row.try_get("created_at")?,
        updated_at: row.try_get("updated_at")?,
    })
}
