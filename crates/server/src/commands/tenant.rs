//! `perennial tenant`: creates, changes and lists tenants. Most installations have one, created at
//! the first start.

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use perennial_domain::{Currency, Lifecycle, SingleLine, TenantId};
use serde_json::json;

use super::{
    bootstrap::{self, DEFAULT_CURRENCY},
    terminal::print_wrapped,
    text_table::Listing,
};
use crate::{
    auth::{
        Tenant,
        tenants::{self, LifecycleSettings, TenantSettings, table},
    },
    db::{Databases, HOME, PooledConnection},
};

#[derive(Debug, Subcommand)]
pub enum TenantCommand {
    /// Create a tenant
    Create {
        /// A unique name
        #[arg(long)]
        name: SingleLine<200>,
        /// The cell that stores its data, one of PERENNIAL_CELLS
        #[arg(long, default_value = HOME)]
        cell: String,
        /// The currency of amounts without a currency
        #[arg(long, default_value = DEFAULT_CURRENCY)]
        default_currency: Currency,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Change a tenant's settings
    Set(TenantSetArgs),
    /// List all tenants
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct TenantSetArgs {
    #[command(flatten)]
    tenant: TenantArg,
    /// A new unique name
    #[arg(long)]
    name: Option<SingleLine<200>>,
    /// The currency of new plans without a currency
    #[arg(long)]
    default_currency: Option<Currency>,
    /// How recently a user must have signed in to delete the account; 0 for no limit
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i32).range(0..=86_400))]
    recent_sign_in: Option<i32>,
    /// How subscriptions change status over time
    #[arg(long)]
    lifecycle: Option<LifecycleArg>,
    /// Managed lifecycle: days after the renewal date until a subscription is unpaid and gives no
    /// access (default 7)
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i32).range(0..=3_650))]
    unpaid_after: Option<i32>,
    /// Managed lifecycle: days after the renewal date until a subscription expires (default 30)
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i32).range(0..=3_650))]
    expired_after: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LifecycleArg {
    /// You or your payment provider record every change
    Recorded,
    /// The service renews subscriptions, marks them past due and unpaid, and expires them, unless a
    /// payment provider runs them
    Managed,
}

impl TenantSetArgs {
    async fn run(self, db: &Databases, home: &mut PooledConnection) -> anyhow::Result<()> {
        let lifecycle = LifecycleSettings {
            managed: self.lifecycle.map(|arg| arg == LifecycleArg::Managed),
            unpaid_after: self.unpaid_after,
            expired_after: self.expired_after,
            since: bootstrap::clocks(db).await?.billing.now(),
        };
        if self.name.is_none()
            && self.default_currency.is_none()
            && self.recent_sign_in.is_none()
            && lifecycle.is_empty()
        {
            bail!("nothing to set; see `perennial tenant set --help`");
        }
        let tenant = self.tenant.resolve(home).await?.id;
        let settings = TenantSettings {
            name: self.name,
            default_currency: self.default_currency,
            recent_sign_in: self.recent_sign_in,
            lifecycle,
        };
        tenants::update(home, bootstrap::system_context(), tenant, &settings)
            .await
            .map_err(|error| match error.constraint() {
                Some("tenants_check") => {
                    anyhow::anyhow!("--expired-after must not be less than --unpaid-after")
                }
                _ => error.into(),
            })?;
        print_wrapped(&format!(
            "changed tenant {tenant}; running instances apply it within a second"
        ));
        Ok(())
    }
}

impl TenantCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, _) = bootstrap::open().await?;
        let mut home = db.home()?.connection().await?;
        let context = bootstrap::system_context();
        match self {
            Self::Create {
                name,
                cell,
                default_currency,
                json,
            } => {
                db.cell(&cell)
                    .map_err(|_| anyhow::anyhow!("--cell: {cell} is not in PERENNIAL_CELLS"))?;
                let id = tenants::create(&mut home, context, &name, &cell, default_currency)
                    .await
                    .map_err(|error| match error.constraint() {
                        Some("tenants_name") => {
                            anyhow::anyhow!("--name: there is already a tenant {name}")
                        }
                        _ => error.into(),
                    })?;
                if json {
                    let id = id.to_string();
                    println!("{}", json!({"id": id, "name": name.as_str(), "cell": cell}));
                } else {
                    println!("created tenant {id}");
                }
            }
            Self::Set(args) => args.run(&db, &mut home).await?,
            Self::List { json } => list(&home, json).await?,
        }
        Ok(())
    }
}

async fn list(home: &PooledConnection, json: bool) -> anyhow::Result<()> {
    let header = ["ID", "NAME", "CELL", "DEFAULT CURRENCY", "LIFECYCLE"];
    let mut list = Listing::new(header, json);
    for (tenant, name) in table::list(home).await? {
        let id = tenant.id.to_string();
        let currency = tenant.default_currency.code();
        let lifecycle = match tenant.lifecycle {
            Lifecycle::Recorded => "recorded",
            Lifecycle::Managed(_) => "managed",
        };
        let object = json!({
            "id": id,
            "name": name,
            "cell": tenant.cell,
            "default_currency": currency,
            "recent_sign_in": tenant.recent_sign_in,
            "lifecycle": lifecycle,
        });
        list.add([&id, &name, &tenant.cell, currency, lifecycle], object);
    }
    list.print();
    Ok(())
}

/// The flag `--tenant`.
#[derive(Debug, Args)]
pub struct TenantArg {
    /// The tenant's id or name; optional while there is only one
    #[arg(long)]
    tenant: Option<String>,
}

impl TenantArg {
    /// Looks up the tenant by id or name; without the flag, returns the only tenant.
    pub(super) async fn resolve(&self, home: &PooledConnection) -> anyhow::Result<Tenant> {
        let tenants = table::list(home).await?;
        let Some(given) = &self.tenant else {
            return match tenants.as_slice() {
                [(only, _)] => Ok(only.clone()),
                _ => bail!(
                    "there are {} tenants; choose one with --tenant (see `perennial tenant list`)",
                    tenants.len()
                ),
            };
        };
        let id = given.parse::<TenantId>().ok();
        let tenant = tenants
            .into_iter()
            .find(|(tenant, name)| Some(tenant.id) == id || name == given);
        let tenant = tenant.map(|(tenant, _)| tenant);
        tenant.with_context(|| format!("there is no tenant {given}; see `perennial tenant list`"))
    }
}
