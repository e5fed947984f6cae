//! `perennial tenant`: the owners of data.

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use perennial_domain::{Currency, Lifecycle, Line, TenantId};
use serde_json::json;

use super::{
    prepare::{self, FALLBACK_CURRENCY},
    screen::say,
    table::Table,
};
use crate::{
    callers::{
        Tenant,
        tenants::{self, LifecycleSettings, Settings, table},
    },
    db::{Connection, Db, HOME},
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
    Set(SetTenant),
    /// List all tenants
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
}

/// Which tenant, and what is to change.
#[derive(Debug, Args)]
pub struct SetTenant {
    /// Which tenant: its id or name; may be left out while there is only one
    #[arg(long)]
    tenant: Option<String>,
    /// Another name
    #[arg(long)]
    name: Option<Line<200>>,
    /// The currency of plans that name none, from now on
    #[arg(long)]
    default_currency: Option<Currency>,
    /// How long ago a user may have signed in to delete the account; 0 for any time
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i32).range(0..=86_400))]
    recent_sign_in: Option<i32>,
    /// Who moves time: `recorded` leaves it to you or your payment provider to say what happened; with `managed`,
    /// what no provider runs renews, is past due, unpaid and expired by itself
    #[arg(long)]
    lifecycle: Option<Mover>,
    /// Managed: how many days after its renewal was due a subscription is unpaid, and gives no access (default 7)
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i32).range(0..=3_650))]
    unpaid_after: Option<i32>,
    /// Managed: how many days after its renewal was due a subscription is over (default 30)
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i32).range(0..=3_650))]
    expired_after: Option<i32>,
}

impl SetTenant {
    async fn run(self, db: &Db, home: &mut Connection) -> anyhow::Result<()> {
        let Self {
            tenant,
            name,
            default_currency,
            recent_sign_in,
            lifecycle,
            unpaid_after,
            expired_after,
        } = self;
        let lifecycle = LifecycleSettings {
            managed: lifecycle.map(|mover| mover == Mover::Managed),
            unpaid_after,
            expired_after,
            since: prepare::clocks(db).await?.billing.now(),
        };
        if name.is_none()
            && default_currency.is_none()
            && recent_sign_in.is_none()
            && lifecycle.is_empty()
        {
            bail!("nothing to set; see `perennial tenant set --help`");
        }
        let tenant = choose(home, tenant.as_deref()).await?.id;
        tenants::set(
            home,
            prepare::operator(),
            tenant,
            &Settings {
                name,
                default_currency,
                recent_sign_in,
                lifecycle,
            },
        )
        .await
        .map_err(|error| match error.constraint() {
            Some("tenants_check") => anyhow::anyhow!(
                "what is expired after fewer days than it is unpaid after would never be unpaid; give --expired-after at least as many days as --unpaid-after"
            ),
            _ => error.into(),
        })?;
        say(&format!(
            "changed the tenant {tenant}; running instances follow within a second"
        ));
        Ok(())
    }
}

/// Who moves time for a tenant's subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mover {
    /// Callers say what happened
    Recorded,
    /// The service moves what no payment provider runs
    Managed,
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
            Self::Set(settings) => settings.run(&db, &mut home).await?,
            Self::List { json } => {
                let mut list = Table::new(["ID", "NAME", "CELL", "DEFAULT CURRENCY", "LIFECYCLE"]);
                for (tenant, name) in table::list(&home).await? {
                    let currency = tenant.default_currency.code();
                    let lifecycle = match tenant.lifecycle {
                        Lifecycle::Recorded => "recorded",
                        Lifecycle::Managed(_) => "managed",
                    };
                    if json {
                        println!(
                            "{}",
                            json!({
                                "id": tenant.id.to_string(), "name": name, "cell": tenant.cell, "default_currency": currency, "recent_sign_in": tenant.recent_sign_in,
                                "lifecycle": lifecycle,
                            })
                        );
                    } else {
                        list.add_row([
                            tenant.id.to_string().as_str(),
                            &name,
                            &tenant.cell,
                            currency,
                            lifecycle,
                        ]);
                    }
                }
                if !json {
                    list.print();
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
    let all = table::list(home).await?;
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
