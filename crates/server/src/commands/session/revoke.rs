//! `perennial session revoke`

use anyhow::{Context, bail};
use clap::Args;
use jiff::Timestamp;

use super::super::{
    bootstrap, pluralize,
    tenant::TenantArg,
    terminal::{eprint_wrapped, print_wrapped},
    user_selector::{UserIdent, UserSelector},
};
use crate::{
    auth::{
        Tenant,
        sessions::{self, RevokeReason, SessionScope, watermark_sql},
        tenants,
    },
    db::{CellDatabase, Databases},
    tenant_providers::SIGN_IN_TIMEOUT,
    users,
};

#[derive(Debug, Args)]
pub struct SessionRevokeArgs {
    /// The id of a session; or a user's email address or an id as in `user show`, to revoke all of
    /// the user's sessions
    #[arg(value_name = "SESSION|USER")]
    target: Option<UserIdent>,
    /// Revoke all sessions of this user: an email address, or an id as in `user show`
    #[arg(long, conflicts_with = "target")]
    user: Option<UserIdent>,
    /// Revoke all sessions that a tenant's users created with tokens of this issuer
    #[arg(long, value_name = "URL", conflicts_with_all = ["target", "user"])]
    issuer: Option<String>,
    #[command(flatten)]
    tenant: TenantArg,
    /// Revoke all sessions of all tenants
    #[arg(long, conflicts_with_all = ["target", "user", "issuer", "tenant"])]
    all: bool,
    /// Revoke the sessions of an issuer, a tenant or all tenants; without this flag, only show how many
    #[arg(long)]
    yes: bool,
}

impl SessionRevokeArgs {
    pub(super) async fn run(self, db: &Databases) -> anyhow::Result<()> {
        if let Some(user) = self.target.or(self.user) {
            return revoke_for_user(db, &UserSelector::new(user, self.tenant)).await;
        }
        let home = db.home()?.connection().await?;
        if self.all {
            let tenants = tenants::table::list(&home).await?;
            let tenants = tenants.into_iter().map(|(tenant, _)| tenant).collect();
            return revoke_installation(db, tenants, self.yes).await;
        }
        if self.issuer.is_none() && !self.tenant.is_given() {
            bail!(
                "nothing to revoke; name a session or user, or use --issuer, --tenant or --all (see `perennial session revoke --help`)"
            );
        }
        let tenant = self.tenant.resolve(&home).await?;
        let database = db.cell(&tenant.cell)?;
        let issuer = self.issuer.as_deref();
        if !self.yes {
            print_preview(count_active(database, &tenant, issuer).await?);
            return Ok(());
        }
        let scope = match issuer {
            Some(issuer) => SessionScope::Issuer(tenant.id, issuer.to_owned()),
            None => SessionScope::Tenant(tenant.id),
        };
        let (valid_from, set_at) = revoke_scope(database, &scope, RevokeReason::Operator).await?;
        let connection = database.connection().await?;
        let scope = (tenant.id, issuer);
        let count = watermark_sql::count(&connection, scope, valid_from, set_at).await?;
        print_revoked(count);
        Ok(())
    }
}

fn print_preview(count: i64) {
    let sessions = pluralize(count, "session");
    print_wrapped(&format!(
        "would revoke {sessions}; the users must sign in again. Add --yes to do it"
    ));
}

fn print_revoked(count: i64) {
    let sessions = pluralize(count, "session");
    print_wrapped(&format!(
        "revoked {sessions}; running instances apply it within a second"
    ));
}

/// Revokes the session by which the user was named, or all sessions of the user.
async fn revoke_for_user(db: &Databases, selector: &UserSelector) -> anyhow::Result<()> {
    let mut record = selector.find(db).await?;
    let context = bootstrap::system_context();
    let (tenant, user, ids) = (&record.tenant, record.user.id, context.ids);
    let cause = (RevokeReason::Operator, &context.actor());
    let tx = record.connection.begin();
    let count = if let Some(session) = selector.session() {
        let revoked = sessions::revoke(&tx, ids, tenant.id, &[session], cause, context.now).await?;
        i64::try_from(revoked.len()).unwrap_or(i64::MAX)
    } else {
        users::lock_sql::lock_known(&tx, tenant.id, user).await?;
        let now = context.now;
        let revoked = sessions::revoke_for_user(&tx, ids, tenant, user, None, cause, now).await?;
        revoked.count
    };
    tx.commit().await?;
    print_revoked(count);
    Ok(())
}

/// Revokes all sessions of all cells. An unavailable cell does not keep the others from it.
async fn revoke_installation(
    db: &Databases,
    tenants: Vec<Tenant>,
    is_confirmed: bool,
) -> anyhow::Result<()> {
    let (mut count, mut failed) = (0, Vec::new());
    for (cell, database) in db.databases() {
        let tenants: Vec<&Tenant> = tenants
            .iter()
            .filter(|tenant| tenant.cell == cell)
            .collect();
        let revoked = async {
            let watermark = if is_confirmed {
                let scope = SessionScope::Installation;
                Some(revoke_scope(database, &scope, RevokeReason::Operator).await?)
            } else {
                None
            };
            let connection = database.connection().await?;
            let (valid_from, since) =
                watermark.unwrap_or((i64::MAX, bootstrap::system_context().now));
            let mut count = 0;
            for tenant in tenants {
                let scope = (tenant.id, None);
                count += watermark_sql::count(&connection, scope, valid_from, since).await?;
            }
            anyhow::Ok(count)
        };
        match revoked.await {
            Ok(revoked) => count += revoked,
            Err(error) => failed.push(format!("{cell}: {error:#}")),
        }
    }
    if is_confirmed {
        print_revoked(count);
    } else {
        print_preview(count);
    }
    if !failed.is_empty() {
        bail!(
            "not done in {}; repeat the command:\n  {}",
            pluralize(failed.len(), "cell"),
            failed.join("\n  ")
        );
    }
    Ok(())
}

async fn count_active(
    database: &CellDatabase,
    tenant: &Tenant,
    issuer: Option<&str>,
) -> anyhow::Result<i64> {
    let connection = database.connection().await?;
    let now = bootstrap::system_context().now;
    let scope = (tenant.id, issuer);
    Ok(watermark_sql::count(&connection, scope, i64::MAX, now).await?)
}

/// Sets a watermark as this command's operator.
async fn revoke_scope(
    database: &CellDatabase,
    scope: &SessionScope,
    reason: RevokeReason,
) -> anyhow::Result<(i64, Timestamp)> {
    let actor = bootstrap::system_context().actor();
    Ok(sessions::set_watermark(database, scope, (reason, &actor)).await?)
}

/// Ends the sessions of an identity provider that has just been removed. Returns how many.
///
/// Instances accept the provider's tokens until their caches have expired and requests in progress are
/// done. So the sessions are ended at once, and those created in the meantime at the end of that time.
pub async fn end_provider_sessions(
    db: &Databases,
    tenant: &Tenant,
    issuer: &str,
) -> anyhow::Result<i64> {
    let database = db.cell(&tenant.cell)?;
    let scope = SessionScope::Issuer(tenant.id, issuer.to_owned());
    let reason = RevokeReason::ProviderRemoved;
    let end = async {
        let (_, since) = revoke_scope(database, &scope, reason).await?;
        eprint_wrapped(&format!(
            "revoked its sessions; waiting {} seconds for sign-ins in progress",
            SIGN_IN_TIMEOUT.as_secs()
        ));
        tokio::time::sleep(SIGN_IN_TIMEOUT).await;
        let (valid_from, _) = revoke_scope(database, &scope, reason).await?;
        let connection = database.connection().await?;
        let scope = (tenant.id, Some(issuer));
        let count = watermark_sql::count(&connection, scope, valid_from, since).await?;
        anyhow::Ok(count)
    };
    end.await.with_context(|| {
        format!(
            "the provider was removed, but not all of its sessions were revoked; run `perennial session revoke --issuer {issuer} --yes`"
        )
    })
}
