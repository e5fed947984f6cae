//! `perennial staff`: lists, invites and removes staff members, who work with the console.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use perennial_domain::{Email, Rfc3339Timestamp, StaffId, StaffRole, TenantId};
use serde_json::{Value, json};

use super::{
    bootstrap,
    console::{SignInLink, StaffMemberArgs, staff_change},
    explain::date,
    terminal::print_wrapped,
    text_table::Listing,
};
use crate::{
    auth::{
        staff::{self, StaffMember, table},
        tenants,
    },
    db::PooledConnection,
};

#[derive(Debug, Subcommand)]
pub enum StaffCommand {
    /// List staff members
    List {
        #[command(flatten)]
        tenant: StaffMemberArgs,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Invite a staff member, or change the role of one, and print a sign-in link
    #[command(after_help = "Examples:
  perennial staff invite ada@example.com --role admin
  perennial staff invite bob@example.com --role support --tenant acme

Roles:
  viewer   sees users, subscriptions, payments and events
  support  also changes them
  finance  sees reports, and records and refunds payments
  admin    does everything")]
    Invite(InviteArgs),
    /// Remove a staff member and end the member's sessions
    #[command(after_help = "Examples:
  perennial staff remove ada@example.com
  perennial staff remove stf_0192f0c1a2b37c4d8e5f60718293a4b5")]
    Remove {
        /// The member's id or email address
        member: String,
    },
}

#[derive(Debug, Args)]
pub struct InviteArgs {
    /// The email address of the person
    email: Email,
    #[command(flatten)]
    tenant: StaffMemberArgs,
    /// What the member may see and do: viewer, support, finance or admin
    #[arg(long)]
    role: StaffRole,
    /// Print one JSON object: id, and link
    #[arg(long)]
    json: bool,
}

impl StaffCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::List { tenant, json } => list(&tenant, json).await,
            Self::Invite(args) => {
                let email = Some(&args.email);
                let link = SignInLink::create(&args.tenant, email, args.role).await?;
                link.print(args.json);
                Ok(())
            }
            Self::Remove { member } => remove(&member).await,
        }
    }
}

/// The names of tenants, by id.
async fn tenant_names(home: &PooledConnection) -> anyhow::Result<BTreeMap<TenantId, String>> {
    let tenants = tenants::table::list(home).await?.into_iter();
    Ok(tenants.map(|(tenant, name)| (tenant.id, name)).collect())
}

async fn list(tenant: &StaffMemberArgs, json: bool) -> anyhow::Result<()> {
    let (db, _) = bootstrap::open().await?;
    let home = db.home()?.connection().await?;
    let names = tenant_names(&home).await?;
    let members = match tenant.resolve(&home).await? {
        Some(tenant) => table::list(&home, tenant).await?,
        None => table::list_all(&home).await?,
    };
    let header = ["ID", "EMAIL", "ROLE", "TENANT", "LAST SIGN-IN"];
    let mut list = Listing::new(header, json);
    for member in &members {
        let tenant = member.tenant.and_then(|tenant| names.get(&tenant));
        let row = [
            member.id.to_string(),
            member.email.clone().unwrap_or_default(),
            member.role.to_string(),
            tenant.map_or("all", String::as_str).to_owned(),
            member
                .last_signed_in_at
                .map_or_else(|| "never".to_owned(), date),
        ];
        list.add(row, &member_json(member));
    }
    list.print_or("no staff members; `perennial console link` signs in the first one");
    Ok(())
}

fn member_json(member: &StaffMember) -> Value {
    let text = |instant| Rfc3339Timestamp::from(instant).to_string();
    json!({
        "id": member.id.to_string(),
        "email": member.email,
        "role": member.role.as_str(),
        "tenant_id": member.tenant.map(|tenant| tenant.to_string()),
        "created_at": text(member.created_at),
        "last_signed_in_at": member.last_signed_in_at.map(text),
    })
}

async fn remove(given: &str) -> anyhow::Result<()> {
    let (db, _) = bootstrap::open().await?;
    let mut home = db.home()?.connection().await?;
    let id = find(&home, given).await?;
    let tx = home.begin();
    let member = table::lock(&tx, id).await?;
    let member = member.with_context(|| format!("{id} has already been removed"))?;
    staff::remove(&tx, &staff_change(), &member).await?;
    tx.commit().await?;
    print_wrapped(&format!(
        "removed {id}; the member is signed out of running instances within a second"
    ));
    Ok(())
}

/// Returns the member with this id or email address.
async fn find(home: &PooledConnection, given: &str) -> anyhow::Result<StaffId> {
    let id = given.parse::<StaffId>().ok();
    let email = given.parse::<Email>().ok();
    let is_given = |member: &StaffMember| {
        let own = member.email.as_deref().and_then(|email| email.parse().ok());
        let same_email = |email: &Email| own.is_some_and(|own: Email| own.same_mailbox(email));
        Some(member.id) == id || email.as_ref().is_some_and(same_email)
    };
    let members = table::list_all(home).await?;
    let found: Vec<StaffId> = { members.iter() }
        .filter(|member| is_given(member))
        .map(|member| member.id)
        .collect();
    match found.as_slice() {
        [only] => Ok(*only),
        [] => bail!("there is no staff member {given}; see `perennial staff list`"),
        several => bail!(
            "{given} is a member of {} tenants; remove one by id: see `perennial staff list`",
            several.len()
        ),
    }
}
