//! Plans for the recurring prices of a payment provider.

use std::collections::HashSet;

use anyhow::bail;
use perennial_domain::Slug;

use crate::{
    auth::Tenant,
    clock::Clock,
    commands::{
        bootstrap,
        request_fields::{RequestFields, into_error},
    },
    payment_accounts::{ListWalk, SellablePrice},
    subscription_plans::{self, table},
};

/// What became of the recurring prices.
#[derive(Debug, Default)]
pub(super) struct PlanImport {
    /// The slugs and variants of plans that were created, or would be in a dry run.
    pub created: Vec<(String, String)>,
    pub unchanged: u64,
    /// Prices without a plan.
    pub missing: u64,
    /// Why prices can have no plan.
    pub problems: Vec<String>,
}

impl PlanImport {
    pub(super) fn created_variants(&self) -> HashSet<String> {
        let created = self.created.iter();
        created.map(|(_, variant)| variant.clone()).collect()
    }

    /// Adds a price that gets no plan. The import of the others continues.
    fn add_problem(&mut self, variant: &str, reason: &str) {
        self.missing += 1;
        let problem = format!("{variant} gets no plan: {reason}");
        self.problems.push(problem);
    }
}

/// Matches the recurring prices with plans. Creates the missing plans, or only names them in a dry run.
pub(super) async fn import_plans(
    walk: &ListWalk<'_>,
    tenant: &Tenant,
    creates: bool,
) -> anyhow::Result<PlanImport> {
    let mut import = PlanImport::default();
    for sellable in walk.list_sellable().await? {
        let (variant, product) = match &sellable {
            Ok(price) => (&price.variant, &price.product),
            Err(price) => (&price.variant, &price.product),
        };
        if has_plan(walk, variant, product).await? {
            import.unchanged += 1;
            continue;
        }
        match sellable {
            Ok(price) if creates => match create_plan(walk, tenant, &import, &price).await {
                Ok(slug) => import.created.push((slug, price.variant)),
                Err(error) => import.add_problem(&price.variant, &format!("{error:#}")),
            },
            Ok(_) => import.missing += 1,
            Err(price) => import.add_problem(&price.variant, &price.reason),
        }
    }
    Ok(import)
}

async fn has_plan(walk: &ListWalk<'_>, variant: &str, product: &str) -> anyhow::Result<bool> {
    let mut connection = walk.database.connection().await?;
    let tx = connection.begin();
    let offers = table::lock_offers_for_variant(&tx, walk.tenant, variant, Some(product)).await?;
    tx.rollback().await;
    Ok(!offers.is_empty())
}

/// Creates a plan with the first slug that is free, and returns it.
async fn create_plan(
    walk: &ListWalk<'_>,
    tenant: &Tenant,
    import: &PlanImport,
    price: &SellablePrice,
) -> anyhow::Result<String> {
    for slug in price.slugs() {
        let parsed: Slug = slug.parse()?;
        let is_planned = import.created.iter().any(|(created, _)| *created == slug);
        let found = table::find(walk.database, walk.tenant, &parsed).await?;
        if is_planned || found.is_some() {
            continue;
        }
        if !walk.is_dry_run {
            insert_plan(walk, tenant, price, &slug).await?;
        }
        return Ok(slug);
    }
    let variant = &price.variant;
    bail!("all slugs for {variant} are taken; create a plan with `--variant {variant}` first")
}

async fn insert_plan(
    walk: &ListWalk<'_>,
    tenant: &Tenant,
    price: &SellablePrice,
    slug: &str,
) -> anyhow::Result<()> {
    // Without the product, which other prices have too.
    let body = RequestFields::default()
        .with("slug", Some(slug))
        .with("name", Some(price.plan_name()))
        .with("price", Some(price.price.to_string()))
        .with("currency", Some(price.price.currency().code()))
        .with("billing_cycle", Some(price.billing_cycle.as_str()))
        .with("variants", Some(vec![price.variant.clone()]))
        .with("is_active", Some(price.is_active))
        .into_body()?;
    let details = subscription_plans::parse_create(body, tenant.default_currency);
    let details = details.map_err(into_error)?;
    let origin = bootstrap::change_origin(tenant, Clock::System);
    let mut connection = walk.database.connection().await?;
    let tx = connection.begin();
    let context = origin.context(origin.clock.now(), &tx);
    let inserted = subscription_plans::insert_plan(&context, details).await;
    inserted.map_err(into_error)?;
    tx.commit().await?;
    Ok(())
}
