//! `perennial tenant delete`: deletes a tenant that was never used.

use anyhow::{anyhow, bail};

use super::{SETTINGS_TTL, find};
use crate::{
    auth::tenants::{self, TenantInUse, contents_sql, table},
    clients,
    commands::{bootstrap, pluralize, terminal::print_wrapped},
    db::{Databases, PooledConnection},
};

pub async fn run(db: &Databases, home: &mut PooledConnection, given: &str) -> anyhow::Result<()> {
    let (tenant, name) = find(table::list(home).await?, given)?;
    let context = bootstrap::system_context();
    let clients = clients::table::list(home, tenant.id).await?;
    let enabled = clients.iter().filter(|client| client.disabled_at.is_none());
    let enabled = i64::try_from(enabled.count())?;
    if enabled > 0 {
        return Err(in_use(&name, &TenantInUse::Clients(enabled)));
    }
    if !clients.is_empty() {
        // A running instance may still accept a client that has just been disabled.
        tokio::time::sleep(SETTINGS_TTL).await;
    }
    let cell = db.cell(&tenant.cell)?.connection().await?;
    let contents = contents_sql::list_contents(&cell, tenant.id).await?;
    drop(cell);
    if !contents.is_empty() {
        bail!(
            "tenant {name} has {}, perhaps deleted ones, whose history is kept; only a tenant that was never used can be deleted",
            contents.join(", ")
        );
    }
    tenants::delete(home, context, tenant.id, &name)
        .await?
        .map_err(|reason| in_use(&name, &reason))?;
    print_wrapped(&format!("deleted tenant {name} ({})", tenant.id));
    Ok(())
}

fn in_use(name: &str, reason: &TenantInUse) -> anyhow::Error {
    match reason {
        TenantInUse::OnlyOne => {
            anyhow!("tenant {name} is the only one; an installation has at least one tenant")
        }
        TenantInUse::Clients(count) => anyhow!(
            "tenant {name} has {}; disable each first (`perennial client list --tenant {name}`, `perennial client disable`)",
            pluralize(count, "enabled client")
        ),
        TenantInUse::Providers(count) => anyhow!(
            "tenant {name} has {}; remove each first (`perennial provider remove --tenant {name}`)",
            pluralize(count, "identity provider")
        ),
    }
}
