//! `perennial keys rewrap`: puts a new master key into use.
//!
//! 1. The database names the new key, and all instances change to it. They have both keys.
//! 2. Sealed secrets are decrypted with the old key and encrypted with the new one.
//! 3. Each session gets a new salt and the new key. Digests of its outstanding refresh tokens are stored,
//!    because they cannot be computed without the old key and salt.
//! 4. The database stores that it no longer needs the old key.
//!
//! Each step changes only what still needs the old key, so an interrupted run can be repeated.

use std::time::Duration;

use anyhow::{Context, bail};
use jiff::SignedDuration;
use perennial_domain::TenantId;
use secrecy::ExposeSecret;
use uuid::Uuid;

use super::{
    rewrap_payments_sql::{self, PaymentSecret, PaymentSecretPlace},
    rewrap_sql,
};
use crate::{
    app::MASTER_KEY_POLL_INTERVAL,
    auth::{
        Tenant,
        sessions::carried_sql::{self, CarriedSessions, SessionToCarry},
        tenants,
        tokens::{RefreshKeys, sealing_owner},
    },
    commands::{bootstrap, pluralize, progress::ProgressBar, terminal::print_wrapped},
    crypto::{DerivedKeys, SealedSecret},
    db::{Databases, PooledConnection, instance},
    randomness::Randomness,
    webhooks,
};

/// The number of sessions per transaction.
const BATCH: i64 = 1_000;
/// The number of bodies of payment notifications that are read at a time. A body has up to 1 MiB.
const BODY_BATCH: i64 = 50;
/// The maximum number of passes over all sessions. A second one finds sessions that a request had
/// locked.
const MAX_PASSES: usize = 10;
/// How long the previous key must stay configured: a device whose response was lost can repeat its
/// refresh for 10 minutes.
const KEEP_PREVIOUS: SignedDuration = SignedDuration::from_mins(11);

/// What still needs the previous master key.
#[derive(Debug, Default)]
struct Remaining {
    signing_keys: usize,
    client_secrets: usize,
    webhook_secrets: usize,
    /// API keys and secrets of payment accounts, and the bodies of their notifications.
    payment_secrets: usize,
    sessions: usize,
}

impl Remaining {
    fn is_empty(&self) -> bool {
        let secrets = self.client_secrets + self.webhook_secrets + self.payment_secrets;
        self.signing_keys + secrets + self.sessions == 0
    }

    fn describe(&self) -> String {
        format!(
            "{}, {}, {}, {}, {}",
            pluralize(self.signing_keys, "signing key"),
            pluralize(self.client_secrets, "client secret"),
            pluralize(self.webhook_secrets, "webhook secret"),
            pluralize(self.payment_secrets, "payment secret"),
            pluralize(self.sessions, "session")
        )
    }
}

pub(super) async fn run(status: bool) -> anyhow::Result<()> {
    let (db, mode) = bootstrap::open().await?;
    let home = db.home()?.connection().await?;
    let keys = bootstrap::derived_keys(&home, mode).await?;
    let tenants = tenants::table::list(&home).await?;
    let rewrap = Rewrap {
        tenants: tenants.into_iter().map(|(tenant, _)| tenant).collect(),
        home,
        db,
        keys,
    };
    let remaining = rewrap.remaining().await?;
    if status || (remaining.is_empty() && !rewrap.is_incomplete().await?) {
        let needs = if remaining.is_empty() {
            "nothing".to_owned()
        } else {
            remaining.describe()
        };
        print_wrapped(&format!(
            "not yet protected by PERENNIAL_MASTER_KEY: {needs}"
        ));
        return Ok(());
    }
    println!("to rewrap: {}", remaining.describe());
    rewrap
        .run(&remaining)
        .await
        .context("interrupted; run `perennial keys rewrap` again to continue")
}

struct Rewrap {
    db: Databases,
    home: PooledConnection,
    keys: DerivedKeys,
    tenants: Vec<Tenant>,
}

impl Rewrap {
    async fn run(&self, before: &Remaining) -> anyhow::Result<()> {
        let check = &self.keys.present().check;
        // The home cell first: instances poll it.
        instance::replace_master_key(&self.home, check).await?;
        for cell in self.db.cell_names() {
            let connection = self.db.cell(cell)?.connection().await?;
            instance::replace_master_key(&connection, check).await?;
        }
        self.keys.select(check);
        // Until then, an instance may still issue a value of the previous key.
        tokio::time::sleep(MASTER_KEY_POLL_INTERVAL * 2 + Duration::from_secs(1)).await;

        self.reseal_signing_keys().await?;
        self.reseal_client_secrets().await?;
        self.reseal_webhook_secrets().await?;
        self.reseal_payment_secrets().await?;
        self.carry_sessions(before.sessions).await?;

        let after = self.remaining().await?;
        if !after.is_empty() {
            bail!("{} still need the previous master key", after.describe());
        }
        for cell in self.db.cell_names() {
            let connection = self.db.cell(cell)?.connection().await?;
            instance::forget_previous_master_key(&connection).await?;
        }
        println!("rewrapped: {}; remaining: nothing", before.describe());
        if self.keys.previous().is_some() {
            let from = bootstrap::system_context()
                .now
                .saturating_add(KEEP_PREVIOUS)?;
            print_wrapped(&format!(
                "From {from:.0} on, remove PERENNIAL_MASTER_KEY_PREVIOUS and restart every instance. Then the previous \
                 key is useless, except with a backup from before."
            ));
        }
        Ok(())
    }

    /// Returns whether the present key is not in use yet, or an earlier run was interrupted.
    async fn is_incomplete(&self) -> anyhow::Result<bool> {
        let present = self.keys.present().check;
        for cell in self.db.cell_names() {
            let connection = self.db.cell(cell)?.connection().await?;
            let state = instance::master_key_state(&connection).await?;
            let is_in_use = state.check.as_deref() == Some(present.as_slice());
            if !is_in_use || state.previous_check.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn remaining(&self) -> anyhow::Result<Remaining> {
        let is_old = |sealed: &SealedSecret| !self.keys.is_sealed_with_present(sealed);
        let signing_keys = rewrap_sql::list_signing_keys(&self.home).await?;
        let mut remaining = Remaining {
            signing_keys: signing_keys.iter().filter(|(_, key)| is_old(key)).count(),
            ..Remaining::default()
        };
        for tenant in &self.tenants {
            let secrets = rewrap_sql::list_client_secrets(&self.home, tenant.id).await?;
            remaining.client_secrets += secrets.iter().filter(|(_, key)| is_old(key)).count();
            let cell = self.db.cell(&tenant.cell)?.connection().await?;
            let secrets = rewrap_sql::list_webhook_secrets(&cell, tenant.id).await?;
            remaining.webhook_secrets += secrets.iter().filter(|(_, _, key)| is_old(key)).count();
            remaining.payment_secrets += self
                .for_each_payment_secret(&cell, tenant.id, async |_| Ok(()))
                .await?;
            drop(cell);
            remaining.sessions += self.for_each_page(tenant, async |_, _, _| Ok(())).await?;
        }
        Ok(remaining)
    }

    async fn reseal_signing_keys(&self) -> anyhow::Result<()> {
        for (id, old) in rewrap_sql::list_signing_keys(&self.home).await? {
            if let Some(new) = self.reseal(&old, &sealing_owner(id))? {
                rewrap_sql::update_signing_key(&self.home, id, &old, &new).await?;
            }
        }
        Ok(())
    }

    async fn reseal_client_secrets(&self) -> anyhow::Result<()> {
        for tenant in &self.tenants {
            for (issuer, old) in rewrap_sql::list_client_secrets(&self.home, tenant.id).await? {
                if let Some(new) = self.reseal(&old, &issuer)? {
                    let (home, tenant) = (&self.home, tenant.id);
                    rewrap_sql::update_client_secret(home, tenant, &issuer, &old, &new).await?;
                }
            }
        }
        Ok(())
    }

    async fn reseal_webhook_secrets(&self) -> anyhow::Result<()> {
        for tenant in &self.tenants {
            let cell = self.db.cell(&tenant.cell)?.connection().await?;
            for (id, column, old) in rewrap_sql::list_webhook_secrets(&cell, tenant.id).await? {
                if let Some(new) = self.reseal(&old, &webhooks::secrets::sealing_owner(id))? {
                    let key = (tenant.id, id);
                    rewrap_sql::update_webhook_secret(&cell, key, column, &old, &new).await?;
                }
            }
        }
        Ok(())
    }

    async fn reseal_payment_secrets(&self) -> anyhow::Result<()> {
        for tenant in &self.tenants {
            let cell = self.db.cell(&tenant.cell)?.connection().await?;
            self.for_each_payment_secret(&cell, tenant.id, async |secret| {
                if let Some(new) = self.reseal(&secret.sealed, &secret.owner())? {
                    rewrap_payments_sql::update(&cell, tenant.id, secret, &new).await?;
                }
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// Calls `visit` with each API key, secret and notification of a tenant's payment accounts that needs the previous
    /// key. Returns how many there are.
    async fn for_each_payment_secret(
        &self,
        connection: &PooledConnection,
        tenant: TenantId,
        mut visit: impl AsyncFnMut(&PaymentSecret) -> anyhow::Result<()>,
    ) -> anyhow::Result<usize> {
        let mut found = 0;
        let mut page = rewrap_payments_sql::list_account_secrets(connection, tenant).await?;
        let mut after = None;
        loop {
            for secret in &page {
                if !self.keys.is_sealed_with_present(&secret.sealed) {
                    found += 1;
                    visit(secret).await?;
                }
            }
            page = rewrap_payments_sql::list_bodies(connection, tenant, after, BODY_BATCH).await?;
            after = match page.last().map(|secret| &secret.place) {
                Some(PaymentSecretPlace::Body { created_at, id }) => Some((*created_at, *id)),
                _ => return Ok(found),
            };
        }
    }

    /// Encrypts a secret with the present key. Returns `None` if it already is.
    fn reseal(&self, old: &SealedSecret, owner: &str) -> anyhow::Result<Option<SealedSecret>> {
        if self.keys.is_sealed_with_present(old) {
            return Ok(None);
        }
        let secret = self.keys.open(old, owner);
        let secret = secret.with_context(|| format!("the secret of {owner}"))?;
        Ok(Some(self.keys.seal(secret.expose_secret(), owner)))
    }

    async fn carry_sessions(&self, total: usize) -> anyhow::Result<()> {
        let bar = ProgressBar::new(total);
        let mut done = 0;
        for _ in 0..MAX_PASSES {
            let mut found = 0;
            for tenant in &self.tenants {
                found += self
                    .for_each_page(tenant, async |connection, tenant, sessions| {
                        self.carry(connection, tenant, sessions).await?;
                        done += sessions.len();
                        bar.update(done.min(total), &format!("{done} of {total} sessions"));
                        Ok(())
                    })
                    .await?;
            }
            if found == 0 {
                break;
            }
        }
        bar.clear();
        Ok(())
    }

    async fn carry(
        &self,
        connection: &PooledConnection,
        tenant: TenantId,
        sessions: &[SessionToCarry],
    ) -> anyhow::Result<()> {
        let refresh_keys = RefreshKeys(self.keys.clone());
        let mut carried = CarriedSessions::default();
        for session in sessions {
            let SessionToCarry {
                id,
                salt,
                generation,
            } = session;
            let digests = refresh_keys.digests_to_carry(tenant, *id, salt, *generation);
            let digests =
                digests.with_context(|| format!("session {id} needs another master key"))?;
            carried.push(session, &refresh_keys.new_salt(Randomness), &digests);
        }
        let present = self.keys.present().id;
        Ok(carried_sql::carry(connection, tenant, &carried, present).await?)
    }

    /// Calls `visit` with each page of a tenant's sessions that need the previous key. Returns how many
    /// there are.
    async fn for_each_page(
        &self,
        tenant: &Tenant,
        mut visit: impl AsyncFnMut(&PooledConnection, TenantId, &[SessionToCarry]) -> anyhow::Result<()>,
    ) -> anyhow::Result<usize> {
        let connection = self.db.cell(&tenant.cell)?.connection().await?;
        let present = self.keys.present().id;
        let (mut found, mut after) = (0, Uuid::nil());
        loop {
            let page =
                carried_sql::list_page(&connection, tenant.id, after, present, BATCH).await?;
            let Some(last) = page.last else {
                return Ok(found);
            };
            after = last;
            found += page.to_carry.len();
            if !page.to_carry.is_empty() {
                visit(&connection, tenant.id, &page.to_carry).await?;
            }
        }
    }
}
