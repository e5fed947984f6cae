//! The table `subscription_plans`: all its SQL.

use perennial_domain::{
    Currency, Features, Href, Id, Invalid, Line, Money, NewPlan, NodeQuota, Plan, PlanId, Prose,
    Rule, Slug, TenantId, Tier, Variants,
};
use tokio_postgres::{Row, types::ToSql};

use crate::db::{Engine, Error, Sql, Transaction};

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

/// A row as the plan that it is. What was stored was checked on its way in; if it cannot be read,
/// somebody else wrote it.
fn plan(row: &Row) -> Result<Plan, Error> {
    let unreadable =
        |invalid: Invalid| Error::Failed(format!("a stored plan cannot be read: {invalid}"));
    let terms = || -> Result<Result<NewPlan, Invalid>, Error> {
        let optional = |column: &str| row.try_get::<_, Option<&str>>(column);
        let (product_id, href) = (optional("product_id")?, optional("href")?);
        let (description, features) = (optional("description")?, optional("features")?);
        let (slug, name): (&str, &str) = (row.try_get("slug")?, row.try_get("name")?);
        let (currency, cycle): (&str, &str) =
            (row.try_get("currency")?, row.try_get("billing_cycle")?);
        let variants: Vec<&str> = row.try_get("variants")?;
        let minor: i64 = row.try_get("price_minor")?;
        let (quota, tier): (i32, i32) = (row.try_get("node_quota")?, row.try_get("tier")?);
        let (most_popular, is_active) = (row.try_get("most_popular")?, row.try_get("is_active")?);
        let read = || {
            let currency: Currency = currency.parse()?;
            Ok(NewPlan {
                name: name.parse()?,
                slug: slug.parse()?,
                price: Money::of_minor_units(minor, currency)
                    .ok_or_else(|| Invalid::new(Rule::OutOfRange, "the price is out of range"))?,
                billing_cycle: cycle.parse()?,
                product_id: product_id.map(str::parse).transpose()?,
                variants: Variants::new(
                    variants
                        .iter()
                        .map(|v| v.parse())
                        .collect::<Result<_, _>>()?,
                )?,
                href: href.map(str::parse).transpose()?,
                description: description.map(str::parse).transpose()?,
                node_quota: NodeQuota::try_from(i64::from(quota))?,
                features: features.map(str::parse).transpose()?,
                most_popular,
                tier: Tier::try_from(i64::from(tier))?,
                is_active,
            })
        };
        Ok(read())
    };
    Ok(Plan {
        id: PlanId::new(row.try_get("id")?),
        terms: terms()?.map_err(unreadable)?,
        created_at: row.try_get("created_at")?,
        updated_at: row.try_get("updated_at")?,
    })
}
