//! `perennial tenant`: creates, changes, lists and deletes tenants. Most installations have one, created at
//! the first start.

use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use perennial_domain::{Currency, Lifecycle, SingleLine, TenantId, suggest};
use serde_json::json;

use super::{
    bootstrap::{self, DEFAULT_CURRENCY},
    pluralize,
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

mod delete;
pub mod subscriptions_sql;

/// How long running instances may use old settings: the TTL of their cache, and a margin for requests
/// under way.
const SETTINGS_TTL: Duration = Duration::from_millis(1_500);

/// How many tenants an error lists.
const MAX_NAMED_TENANTS: usize = 10;

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
    /// Delete a tenant that was never used: one without users, plans, subscriptions, enabled
    /// clients and identity providers
    #[command(after_help = "Example:
  perennial tenant delete acme

Its disabled clients are deleted too. Its events are kept.")]
    Delete {
        /// The tenant's id or name
        tenant: String,
    },
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
    /// How recently a user must have authenticated at the identity provider to delete the account;
    /// 0 for no limit
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i32).range(0..=86_400))]
    recent_sign_in: Option<i32>,
    /// How long a session lasts without a refresh (default 1209600, 14 days). A longer timeout takes
    /// effect at a session's next refresh, a shorter one within a second
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i32).range(1_800..=31_536_000))]
    session_idle_timeout: Option<i32>,
    /// How long a session lasts after the sign-in, however often it is refreshed (default 2592000, 30
    /// days). Takes effect like --session-idle-timeout
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i32).range(1_800..=31_536_000))]
    session_absolute_timeout: Option<i32>,
    /// Whether users can cancel their own subscriptions in your web page or app, and undo that until
    /// the end (default off)
    #[arg(long, value_name = "on|off")]
    self_service: Option<SwitchArg>,
    /// What changes subscriptions over time
    #[arg(long)]
    lifecycle: Option<LifecycleArg>,
    /// Managed: days from the due date until a subscription with an unpaid period gives no access
    /// (default 7)
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i32).range(0..=3_650))]
    unpaid_after: Option<i32>,
    /// Managed: days from the due date until a subscription with an unpaid period expires, and days
    /// that a pending one waits for its first payment (default 30)
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i32).range(0..=3_650))]
    expired_after: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LifecycleArg {
    /// You or your payment provider record every change
    Recorded,
    /// The service charges each period from the subscription's credit when it starts. Without enough
    /// credit, the subscription is past due, then unpaid, then expires. Subscriptions with an
    /// external id are left to their payment provider
    Managed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SwitchArg {
    On,
    Off,
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
            && self.session_idle_timeout.is_none()
            && self.session_absolute_timeout.is_none()
            && self.self_service.is_none()
            && lifecycle.is_empty()
        {
            bail!("nothing to set; see `perennial tenant set --help`");
        }
        let tenant = self.tenant.resolve(home).await?;
        let was_managed = tenant.lifecycle != Lifecycle::Recorded;
        let is_managed = lifecycle.managed.unwrap_or(was_managed);
        let changes_dunning = lifecycle.unpaid_after.is_some() || lifecycle.expired_after.is_some();
        if is_managed && !was_managed {
            check_can_be_managed(db, &tenant, lifecycle.since).await?;
        }
        let (id, since) = (tenant.id, lifecycle.since);
        let settings = TenantSettings {
            name: self.name,
            default_currency: self.default_currency,
            recent_sign_in: self.recent_sign_in,
            session_idle_timeout: self.session_idle_timeout,
            session_absolute_timeout: self.session_absolute_timeout,
            self_service: self.self_service.map(|arg| arg == SwitchArg::On),
            lifecycle,
        };
        tenants::update(home, bootstrap::system_context(), id, &settings)
            .await
            .map_err(|error| match error.constraint() {
                Some("tenants_dunning") => {
                    anyhow::anyhow!("--expired-after must not be less than --unpaid-after")
                }
                _ => error.into(),
            })?;
        if is_managed && (changes_dunning || !was_managed) {
            if was_managed {
                // A change that an instance makes with the old deadlines would store an old date.
                tokio::time::sleep(SETTINGS_TTL).await;
            }
            let mut cell = db.cell(&tenant.cell)?.connection().await?;
            subscriptions_sql::reset_due_dates(&mut cell, id, since).await?;
        }
        print_wrapped(&format!(
            "changed tenant {id}; running instances apply it within a second"
        ));
        Ok(())
    }
}

/// Refuses a switch to managed while live subscriptions lack what is needed to charge them.
pub async fn check_can_be_managed(
    db: &Databases,
    tenant: &Tenant,
    now: Timestamp,
) -> anyhow::Result<()> {
    let connection = db.cell(&tenant.cell)?.connection().await?;
    let incomplete = subscriptions_sql::find_incomplete(&connection, tenant.id, now).await?;
    let Some(incomplete) = incomplete else {
        return Ok(());
    };
    let counts = [
        (incomplete.without_price, "without a price"),
        (incomplete.without_renewal, "without renews_at"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, lack)| format!("{} {lack}", pluralize(count, "subscription")))
        .collect();
    let counts = counts.join(" and ");
    let examples: Vec<String> = incomplete
        .examples
        .iter()
        .map(ToString::to_string)
        .collect();
    let examples = examples.join("\n  ");
    bail!(
        "the service could not charge {counts}; nothing was changed
PUT /subscriptions/{{id}} sets renews_at, and price, which is missing where the billing cycle differs from the \
plan's. For example:
  {examples}"
    )
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
            Self::Delete { tenant } => delete::run(&db, &mut home, &tenant).await?,
            Self::List { json } => list(&home, json).await?,
        }
        Ok(())
    }
}

async fn list(home: &PooledConnection, json: bool) -> anyhow::Result<()> {
    let header = [
        "ID",
        "NAME",
        "CELL",
        "DEFAULT CURRENCY",
        "LIFECYCLE",
        "SELF-SERVICE",
    ];
    let mut list = Listing::new(header, json);
    for (tenant, name) in table::list(home).await? {
        let id = tenant.id.to_string();
        let currency = tenant.default_currency.code();
        let lifecycle = match tenant.lifecycle {
            Lifecycle::Recorded => "recorded",
            Lifecycle::Managed(_) => "managed",
        };
        let self_service = if tenant.self_service { "on" } else { "off" };
        let object = json!({
            "id": id,
            "name": name,
            "cell": tenant.cell,
            "default_currency": currency,
            "recent_sign_in": tenant.recent_sign_in,
            "session_idle_timeout": tenant.session_lifetimes.idle_timeout.as_secs(),
            "session_absolute_timeout": tenant.session_lifetimes.absolute_timeout.as_secs(),
            "lifecycle": lifecycle,
            "self_service": tenant.self_service,
        });
        list.add(
            [&id, &name, &tenant.cell, currency, lifecycle, self_service],
            &object,
        );
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
    /// Creates the argument with this id or name.
    pub(super) fn named(tenant: &str) -> Self {
        Self {
            tenant: Some(tenant.to_owned()),
        }
    }

    pub(super) fn is_given(&self) -> bool {
        self.tenant.is_some()
    }

    /// Looks up the tenant by id or name; without the flag, returns the only tenant.
    pub(super) async fn resolve(&self, home: &PooledConnection) -> anyhow::Result<Tenant> {
        let tenants = table::list(home).await?;
        let Some(given) = &self.tenant else {
            return match tenants.as_slice() {
                [(only, _)] => Ok(only.clone()),
                several => bail!(
                    "there are {} tenants; choose one with --tenant NAME:\n{}",
                    several.len(),
                    name_list(several)
                ),
            };
        };
        find(tenants, given).map(|(tenant, _)| tenant)
    }
}

/// Returns the tenant with this id or name, and its name.
fn find(tenants: Vec<(Tenant, String)>, given: &str) -> anyhow::Result<(Tenant, String)> {
    let id = given.parse::<TenantId>().ok();
    let is_given =
        |(tenant, name): &(Tenant, String)| Some(tenant.id) == id || name.as_str() == given;
    if let Some(index) = tenants.iter().position(is_given) {
        return tenants.into_iter().nth(index).context("the tenant is gone");
    }
    let names = tenants.iter().map(|(_, name)| name.as_str());
    let hint = suggest(given, names).map_or_else(
        || format!("there are:\n{}", name_list(&tenants)),
        |name| format!("did you mean {name}?"),
    );
    bail!("there is no tenant {given}; {hint}")
}

/// Lists the names and ids of tenants, one per line.
fn name_list(tenants: &[(Tenant, String)]) -> String {
    let mut lines: Vec<String> = tenants
        .iter()
        .take(MAX_NAMED_TENANTS)
        .map(|(tenant, name)| format!("  {}  {name}", tenant.id))
        .collect();
    let omitted = tenants.len().saturating_sub(MAX_NAMED_TENANTS);
    if omitted > 0 {
        lines.push(format!("  … {omitted} more: `perennial tenant list`"));
    }
    lines.join("\n")
}
