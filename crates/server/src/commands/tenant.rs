//! `perennial tenant`: the owners of data.

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use perennial_domain::{Currency, Line, TenantId};
use serde_json::json;

use super::prepare::{self, FALLBACK_CURRENCY};
use crate::{
    callers::{
        Tenant, table,
        tenants::{self, Settings},
    },
    db::{Connection, HOME},
};

/// Make, change and list tenants. Most installations have one, made at the first start.
#[derive(Debug, Subcommand)]
pub enum TenantCommand {
    /// Make a tenant
    Create {
        /// What it is called; no two have the same name
        #[arg(long)]
        name: Line<200>,
        /// The cell that holds its data, one of PERENNIAL_CELLS
        #[arg(long, default_value = HOME)]
        cell: String,
        /// The currency of amounts that name none
        #[arg(long, default_value = FALLBACK_CURRENCY)]
        default_currency: Currency,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Change a tenant's settings
    Set {
        /// Which tenant: its id or name; may be left out while there is only one
        #[arg(long)]
        tenant: Option<String>,
        /// Another name
        #[arg(long)]
        name: Option<Line<200>>,
        /// The currency of plans that name none, from now on
        #[arg(long)]
        default_currency: Option<Currency>,
        /// How many seconds ago a user must have signed in at most to delete the account; 0 for any time
        #[arg(long, value_parser = clap::value_parser!(i32).range(0..=86_400))]
        recent_sign_in: Option<i32>,
    },
    /// List all tenants
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
}

impl TenantCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, _) = prepare::open().await?;
        let mut home = db.home()?.connection().await?;
        let operator = prepare::operator();
        match self {
            Self::Create {
                name,
                cell,
                default_currency,
                json,
            } => {
                db.cell(&cell).map_err(|_| {
                    anyhow::anyhow!("there is no cell {cell}; cells are listed in PERENNIAL_CELLS")
                })?;
                let id = tenants::create(&mut home, operator, &name, &cell, default_currency)
                    .await
                    .map_err(|error| match error.constraint() {
                        Some("tenants_name") => {
                            anyhow::anyhow!("a tenant with the name {name} exists")
                        }
                        _ => error.into(),
                    })?;
                if json {
                    println!(
                        "{}",
                        json!({"id": id.to_string(), "name": name.as_str(), "cell": cell})
                    );
                } else {
                    println!("made the tenant {id}");
                }
            }
            Self::Set {
                tenant,
                name,
                default_currency,
                recent_sign_in,
            } => {
                if name.is_none() && default_currency.is_none() && recent_sign_in.is_none() {
                    bail!("nothing to set; see `perennial tenant set --help`");
                }
                let tenant = choose(&home, tenant.as_deref()).await?.id;
                tenants::set(
                    &mut home,
                    operator,
                    tenant,
                    &Settings {
                        name,
                        default_currency,
                        recent_sign_in,
                    },
                )
                .await?;
                println!("changed the tenant {tenant}; running instances follow within a second");
            }
            Self::List { json } => {
                let mut list = super::table(["ID", "NAME", "CELL", "DEFAULT CURRENCY"]);
                for (tenant, name) in table::list_tenants(&home).await? {
                    let currency = tenant.default_currency.code();
                    if json {
                        println!(
                            "{}",
                            json!({
                                "id": tenant.id.to_string(), "name": name, "cell": tenant.cell, "default_currency": currency, "recent_sign_in": tenant.recent_sign_in,
                            })
                        );
                    } else {
                        list.add_row([
                            tenant.id.to_string().as_str(),
                            &name,
                            &tenant.cell,
                            currency,
                        ]);
                    }
                }
                if !json {
                    println!("{list}");
                }
            }
        }
        Ok(())
    }
}

/// Which tenant is meant.
#[derive(Debug, Args)]
pub struct Which {
    /// Which tenant: its id or name; may be left out while there is only one
    #[arg(long)]
    tenant: Option<String>,
}

impl Which {
    /// The tenant that is meant.
    pub(super) async fn choose(&self, home: &Connection) -> anyhow::Result<TenantId> {
        Ok(self.tenant(home).await?.id)
    }

    /// The same, with what is known of it.
    pub(super) async fn tenant(&self, home: &Connection) -> anyhow::Result<Tenant> {
        choose(home, self.tenant.as_deref()).await
    }
}

/// The tenant that is meant: by its id or name, or the only one.
async fn choose(home: &Connection, given: Option<&str>) -> anyhow::Result<Tenant> {
    let all = table::list_tenants(home).await?;
    match (given, all.as_slice()) {
        (None, [(only, _)]) => Ok(only.clone()),
        (None, _) => bail!(
            "there are {} tenants; say which one by --tenant (see `perennial tenant list`)",
            all.len()
        ),
        (Some(given), all) => {
            let id = given.parse::<TenantId>().ok();
            all.iter()
                .find(|(tenant, name)| Some(tenant.id) == id || name == given)
                .map(|(tenant, _)| tenant.clone())
                .with_context(|| format!("there is no tenant {given}; see `perennial tenant list`"))
        }
    }
}
