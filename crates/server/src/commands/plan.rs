//! `perennial plan`: lists, shows, creates and updates plans, as the API does.

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use perennial_domain::{BillingCycle, Currency, Plan, Slug};

use super::{
    bootstrap,
    explain::{date, money, print_metadata},
    pluralize,
    request_fields::{MetadataArgs, RequestFields, into_error},
    tenant::TenantArg,
    terminal::print_wrapped,
    text_table::Listing,
};
use crate::{
    auth::Tenant,
    db::Databases,
    http::etag::IfMatch,
    record::ChangeOrigin,
    subscription_plans::{self, PlanView, table},
};

#[derive(Debug, Subcommand)]
pub enum PlanCommand {
    /// List all plans, lowest tier first
    List {
        #[command(flatten)]
        tenant: TenantArg,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show a plan
    Show {
        /// The plan's slug
        slug: Slug,
        #[command(flatten)]
        tenant: TenantArg,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Create a plan, as POST /subscription-plans does
    #[command(after_help = "Example:
  perennial plan create pro --name Pro --price 19.99 --billing-cycle monthly \\
    --features 'SSO, Audit log'")]
    Create(PlanCreateArgs),
    /// Change a plan; a new price or trial applies to new subscriptions only
    #[command(after_help = "Examples:
  perennial plan update pro --price 24.99
  perennial plan update pro --is-active false      no new subscriptions")]
    Update(PlanUpdateArgs),
}

#[derive(Debug, Args)]
#[command(
    override_usage = "perennial plan create [OPTIONS] --name <NAME> --price <PRICE>
       --billing-cycle <CYCLE> <SLUG>"
)]
pub struct PlanCreateArgs {
    /// The plan's name in URLs: letters, digits, '.', '_' and '-'; cannot change
    slug: Slug,
    /// Display name
    #[arg(long)]
    name: String,
    /// Price of one billing cycle, such as 19.99
    #[arg(long)]
    price: String,
    /// How often subscriptions renew, such as monthly
    #[arg(long, value_name = "CYCLE")]
    billing_cycle: BillingCycle,
    /// ISO 4217 code; cannot change [default: the tenant's]
    #[arg(long)]
    currency: Option<Currency>,
    #[command(flatten)]
    options: PlanOptionArgs,
    #[command(flatten)]
    tenant: TenantArg,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct PlanUpdateArgs {
    /// The plan's slug
    slug: Slug,
    /// Display name
    #[arg(long)]
    name: Option<String>,
    /// Price of one billing cycle, such as 19.99
    #[arg(long)]
    price: Option<String>,
    /// How often subscriptions renew, such as monthly
    #[arg(long, value_name = "CYCLE")]
    billing_cycle: Option<BillingCycle>,
    #[command(flatten)]
    options: PlanOptionArgs,
    #[command(flatten)]
    tenant: TenantArg,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The fields with a default.
#[derive(Debug, Args)]
pub struct PlanOptionArgs {
    /// Length of the free trial in days; 0 is none
    #[arg(long, value_name = "DAYS")]
    trial_days: Option<i64>,
    /// The product at the payment provider; empty clears it
    #[arg(long)]
    product_id: Option<String>,
    /// A variant of the product (repeatable; replaces all)
    #[arg(long = "variant", value_name = "VARIANT")]
    variants: Option<Vec<String>>,
    /// Link to a page about the plan; empty clears it
    #[arg(long, value_name = "URL")]
    href: Option<String>,
    /// Description for customers; empty clears it
    #[arg(long)]
    description: Option<String>,
    /// Number of nodes a subscriber may run; -1 is unlimited
    #[arg(long, value_name = "NODES", allow_negative_numbers = true)]
    node_quota: Option<i64>,
    /// The included features, separated by commas; empty clears them
    #[arg(long)]
    features: Option<String>,
    /// Whether a pricing page should highlight the plan
    #[arg(long, value_name = "BOOL")]
    most_popular: Option<bool>,
    /// Rank among the plans; higher tiers include more
    #[arg(long)]
    tier: Option<i64>,
    /// Whether new subscriptions are allowed
    #[arg(long, value_name = "BOOL")]
    is_active: Option<bool>,
    #[command(flatten)]
    metadata: MetadataArgs,
}

impl PlanOptionArgs {
    fn into_fields(self) -> RequestFields {
        RequestFields::default()
            .with("trial_days", self.trial_days)
            .with_nullable("product_id", self.product_id)
            .with("variants", self.variants)
            .with_nullable("href", self.href)
            .with_nullable("description", self.description)
            .with("node_quota", self.node_quota)
            .with_nullable("features", self.features)
            .with("most_popular", self.most_popular)
            .with("tier", self.tier)
            .with("is_active", self.is_active)
            .with_metadata(self.metadata)
    }
}

impl PlanCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, _) = bootstrap::open().await?;
        db.wait_until_connected().await;
        match self {
            Self::List { tenant, json } => {
                let tenant = tenant.resolve(&db.home()?.connection().await?).await?;
                list(&db, &tenant, json).await
            }
            Self::Show { slug, tenant, json } => {
                let tenant = tenant.resolve(&db.home()?.connection().await?).await?;
                let plan = table::find(db.cell(&tenant.cell)?, tenant.id, &slug).await?;
                let plan = plan.with_context(|| unknown(&slug))?;
                if json {
                    println!("{}", serde_json::to_string(&PlanView::from(&plan))?);
                } else {
                    print(&plan);
                }
                Ok(())
            }
            Self::Create(args) => args.run(&db).await,
            Self::Update(args) => args.run(&db).await,
        }
    }
}

fn unknown(slug: &Slug) -> String {
    format!("there is no plan with the slug {slug}; see `perennial plan list`")
}

async fn list(db: &Databases, tenant: &Tenant, json: bool) -> anyhow::Result<()> {
    let connection = db.cell(&tenant.cell)?.connection().await?;
    let header = ["SLUG", "NAME", "PRICE", "CYCLE", "TRIAL", "TIER", "STATE"];
    let mut list = Listing::new(header, json);
    for plan in subscription_plans::list_all(&connection, tenant.id).await? {
        let details = &plan.details;
        let row = [
            details.slug.to_string(),
            details.name.to_string(),
            money(details.price),
            details.billing_cycle.to_string(),
            trial(&plan),
            details.tier.get().to_string(),
            state(&plan).to_owned(),
        ];
        list.add(row, &serde_json::to_string(&PlanView::from(&plan))?);
    }
    list.print_or("no plans; create one with `perennial plan create`");
    Ok(())
}

fn state(plan: &Plan) -> &'static str {
    if plan.details.is_active {
        "active"
    } else {
        "inactive"
    }
}

fn trial(plan: &Plan) -> String {
    match plan.details.trial_days.get() {
        0 => "none".to_owned(),
        days => pluralize(days, "day"),
    }
}

fn summary(plan: &Plan) -> String {
    let (slug, cycle) = (&plan.details.slug, plan.details.billing_cycle);
    let price = money(plan.details.price);
    format!("{}  {slug}, {price}, {cycle}, {}", plan.id, state(plan))
}

fn print(plan: &Plan) {
    let details = &plan.details;
    println!("{}", summary(plan));
    let quota = match details.node_quota.get() {
        -1 => "unlimited".to_owned(),
        quota => quota.to_string(),
    };
    let variants: Vec<&str> = details.variants.iter().collect();
    let highlighted = if details.most_popular { "yes" } else { "no" };
    let optional = |text: Option<String>| text.unwrap_or_default();
    let lines = [
        ("name", details.name.to_string()),
        ("tier", details.tier.get().to_string()),
        ("node quota", quota),
        ("trial", trial(plan)),
        ("most popular", highlighted.to_owned()),
        (
            "features",
            optional(
                details
                    .features
                    .as_ref()
                    .map(|features| features.as_str().to_owned()),
            ),
        ),
        (
            "description",
            optional(details.description.as_ref().map(ToString::to_string)),
        ),
        (
            "href",
            optional(details.href.as_ref().map(|href| href.as_str().to_owned())),
        ),
        (
            "product",
            optional(details.product_id.as_ref().map(ToString::to_string)),
        ),
        ("variants", variants.join(", ")),
        ("created", date(plan.created_at)),
        ("updated", date(plan.updated_at)),
    ];
    for (name, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        print_wrapped(&format!("    {name}: {value}"));
    }
    print_metadata("    ", &details.metadata);
}

impl PlanCreateArgs {
    async fn run(self, db: &Databases) -> anyhow::Result<()> {
        let tenant = self.tenant.resolve(&db.home()?.connection().await?).await?;
        let body = { self.options.into_fields() }
            .with("slug", Some(self.slug.to_string()))
            .with("name", Some(self.name))
            .with("price", Some(self.price))
            .with("billing_cycle", Some(self.billing_cycle.as_str()))
            .with("currency", self.currency.map(Currency::code))
            .into_body()?;
        let details = subscription_plans::parse_create(body, tenant.default_currency);
        let details = details.map_err(into_error)?;
        let origin = origin(&tenant);
        let mut connection = db.cell(&tenant.cell)?.connection().await?;
        let tx = connection.begin();
        let context = origin.context(origin.clock.now(), &tx);
        let plan = subscription_plans::insert_plan(&context, details).await;
        let plan = plan.map_err(into_error)?;
        tx.commit().await?;
        if self.json {
            println!("{}", serde_json::to_string(&PlanView::from(&plan))?);
        } else {
            print_wrapped(&summary(&plan));
        }
        Ok(())
    }
}

impl PlanUpdateArgs {
    async fn run(self, db: &Databases) -> anyhow::Result<()> {
        let fields = { self.options.into_fields() }
            .with("name", self.name)
            .with("price", self.price)
            .with(
                "billing_cycle",
                self.billing_cycle.map(BillingCycle::as_str),
            );
        if fields.is_empty() {
            bail!("nothing to change; see `perennial plan update --help`");
        }
        let tenant = self.tenant.resolve(&db.home()?.connection().await?).await?;
        let database = db.cell(&tenant.cell)?;
        let plan = table::find(database, tenant.id, &self.slug).await?;
        plan.with_context(|| unknown(&self.slug))?;
        let (origin, body) = (origin(&tenant), fields.into_body()?);
        let view =
            subscription_plans::update_plan(database, &origin, &self.slug, &IfMatch::ABSENT, body)
                .await
                .map_err(into_error)?;
        if self.json {
            println!("{}", serde_json::to_string(&view)?);
            return Ok(());
        }
        let plan = table::find(database, tenant.id, &self.slug).await?;
        let plan = plan.with_context(|| unknown(&self.slug))?;
        print_wrapped(&summary(&plan));
        Ok(())
    }
}

fn origin(tenant: &Tenant) -> ChangeOrigin<'_> {
    bootstrap::change_origin(tenant, crate::clock::Clock::System)
}
