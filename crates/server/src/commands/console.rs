//! `perennial console`: signs staff members in from the command line.

use clap::{Args, Subcommand};
use perennial_domain::{Email, StaffRole, TenantId};
use serde_json::json;

use super::{bootstrap, tenant::TenantArg, terminal::eprint_wrapped};
use crate::{
    auth::staff::{self, LINK_TTL, NewStaffMember, StaffChange, StaffMember},
    config::StorageConfig,
    db::PooledConnection,
};

#[derive(Debug, Subcommand)]
pub enum ConsoleCommand {
    /// Print a link that signs a staff member in, once and within 10 minutes
    #[command(after_help = "Examples:
  perennial console link
  perennial console link --email ada@example.com
  perennial console link --email ada@example.com --role support --tenant acme

Creates the staff member if there is none with this email address, and sets
the role. Without --email, the link is for a staff member without a name,
whose changes cannot be told apart.")]
    Link(LinkArgs),
}

#[derive(Debug, Args)]
pub struct LinkArgs {
    #[command(flatten)]
    member: StaffMemberArgs,
    /// What the member may see and do: viewer, support, finance or admin
    #[arg(long, default_value = "admin")]
    role: StaffRole,
    /// The member's email address
    #[arg(long)]
    email: Option<Email>,
    /// Print one JSON object: id, and link
    #[arg(long)]
    json: bool,
}

/// The tenants that a staff member can work with.
#[derive(Debug, Args)]
pub struct StaffMemberArgs {
    /// The id or name of the member's tenant; without it, the member can work with all tenants
    #[arg(long)]
    tenant: Option<String>,
}

impl StaffMemberArgs {
    /// Returns the tenant, or `None` for all tenants.
    pub(super) async fn resolve(
        &self,
        home: &PooledConnection,
    ) -> anyhow::Result<Option<TenantId>> {
        match &self.tenant {
            Some(tenant) => Ok(Some(TenantArg::named(tenant).resolve(home).await?.id)),
            None => Ok(None),
        }
    }
}

impl ConsoleCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let Self::Link(args) = self;
        let link = SignInLink::create(&args.member, args.email.as_ref(), args.role).await?;
        link.print(args.json);
        Ok(())
    }
}

/// A staff member and a link that signs the member in.
pub(super) struct SignInLink {
    member: StaffMember,
    url: String,
}

impl SignInLink {
    /// Creates the member, unless there is one with this email address, and a link.
    pub(super) async fn create(
        member: &StaffMemberArgs,
        email: Option<&Email>,
        role: StaffRole,
    ) -> anyhow::Result<Self> {
        let (db, mode) = bootstrap::open().await?;
        let console_url = StorageConfig::console_url_from_env(mode)?;
        let mut home = db.home()?.connection().await?;
        let tenant = member.resolve(&home).await?;
        let change = staff_change();
        let tx = home.begin();
        let new = NewStaffMember {
            tenant,
            email,
            role,
            is_by_group: false,
        };
        let member = staff::ensure_member(&tx, &change, new).await?;
        let secret = staff::create_link(&tx, member.id, change.now).await?;
        tx.commit().await?;
        let url = staff::link_url(&console_url, &secret);
        Ok(Self { member, url })
    }

    pub(super) fn print(&self, json: bool) {
        if json {
            let id = self.member.id.to_string();
            println!("{}", json!({"id": id, "link": self.url}));
            return;
        }
        println!("{}", self.url);
        eprint_wrapped(&format!(
            "signs in with the role {}, once and within {} minutes",
            self.member.role,
            LINK_TTL.as_mins()
        ));
    }
}

/// Returns the context of a change by this command's operator.
pub(super) fn staff_change() -> StaffChange {
    let context = bootstrap::system_context();
    StaffChange {
        ids: context.ids,
        now: context.now,
        actor: context.actor(),
    }
}
