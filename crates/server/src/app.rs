//! The state shared by all request handlers and background tasks.

use std::{sync::Arc, time::Duration};

use crate::{
    auth::{
        AuthRateLimits, Authenticator, ClientCache, ClientMiddleware, HasAuthenticator,
        SystemContext, Tenant,
        sessions::SessionStore,
        tokens::{AccessTokens, Keyring, RefreshKey},
    },
    clock::{Clock, Clocks, IdGenerator},
    config::{Config, MasterKey, Mode},
    crypto::{self, SealingKey},
    db::{CellDatabase, Databases, Error, instance},
    http::pagination::CursorKey,
    identity_providers::{DiscoveryTiming, IdentityVerifier, SandboxProvider},
    randomness::Randomness,
};

/// How often a sandbox reads the offset of its billing clock from the database.
pub const CLOCK_POLL_INTERVAL: Duration = Duration::from_millis(200);

pub struct App {
    pub db: Arc<Databases>,
    pub client_middleware: Arc<ClientMiddleware>,
    /// Verifies this service's access tokens and their sessions.
    pub authenticator: Authenticator,
    /// Verifies tokens of identity providers.
    pub identity_verifier: IdentityVerifier,
    pub refresh_key: RefreshKey,
    pub clock: Clock,
    /// For subscriptions, payments and access. Can be advanced in a sandbox.
    pub billing_clock: Clock,
    pub ids: IdGenerator,
    /// Without a trailing slash.
    pub public_url: Arc<str>,
    /// Whether traces are exported.
    pub traced: bool,
    pub cursor_key: CursorKey,
    /// Whole months; 0 keeps events forever.
    pub event_retention_months: u16,
}

impl HasAuthenticator for Arc<App> {
    fn authenticator(&self) -> &Authenticator {
        &self.authenticator
    }
}

impl App {
    /// Creates the state. The databases need not be reachable yet.
    pub fn new(config: &Config, master: &MasterKey, clock: Clock) -> anyhow::Result<Self> {
        let db = Arc::new(Databases::start(&config.database)?);
        let public_url: Arc<str> = config.http.public_url.as_str().into();
        let keyring = Keyring::new(db.clone(), SealingKey::derive(master));
        let authenticator = Authenticator {
            tokens: AccessTokens::new(public_url.clone(), keyring),
            sessions: SessionStore::new(db.clone()),
            rate_limits: AuthRateLimits::new(&config.limits),
            clock,
        };
        let sandbox = match config.mode {
            Mode::Sandbox => Some(SandboxProvider::from_master_key(master)?),
            Mode::Live => None,
        };
        let client_cache = ClientCache::new(db.clone(), clock);
        Ok(Self {
            client_middleware: Arc::new(ClientMiddleware::new(client_cache, config.limits)),
            authenticator,
            identity_verifier: IdentityVerifier::new(
                DiscoveryTiming::default(),
                SealingKey::derive(master),
                sandbox.as_ref(),
            )?,
            refresh_key: RefreshKey(crypto::refresh_token_key(master)),
            db,
            clock,
            billing_clock: match (config.mode, clock) {
                (Mode::Sandbox, Clock::System) => Clock::adjustable(),
                (_, clock) => clock,
            },
            ids: IdGenerator(Randomness),
            public_url,
            traced: config.log.otlp.is_some(),
            cursor_key: CursorKey(crypto::cursor_key(master)),
            event_retention_months: config.work.event_retention_months,
        })
    }

    /// Returns the context for administrative changes made by the service.
    pub fn system_context(&self) -> SystemContext {
        SystemContext {
            ids: self.ids,
            now: self.clock.now(),
        }
    }

    /// Polls the offset of a sandbox's billing clock, which commands and other instances set in the
    /// database. Never returns in a sandbox.
    pub async fn poll_billing_clock(self: Arc<Self>) {
        if !matches!(self.billing_clock, Clock::Offset(_)) {
            return;
        }
        loop {
            let home = self.db.home();
            if let Ok(home) = home
                && let Ok(offset) = instance::clock_offset(home).await
            {
                self.billing_clock.set(offset);
            }
            tokio::time::sleep(CLOCK_POLL_INTERVAL).await;
        }
    }

    pub fn clocks(&self) -> Clocks {
        Clocks {
            real: self.clock,
            billing: self.billing_clock,
        }
    }

    /// Returns the database that stores a tenant's data.
    pub fn database_for(&self, tenant: &Tenant) -> Result<&CellDatabase, Error> {
        self.db.cell(&tenant.cell)
    }
}
