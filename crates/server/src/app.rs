//! The state shared by all request handlers and background tasks.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::body::Bytes;
use perennial_domain::TenantId;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::{
    auth::{
        AuthRateLimits, Authenticator, ClientCache, ClientMiddleware, HasAuthenticator,
        PaymentAccountCache, SystemContext, Tenant,
        sessions::SessionStore,
        tokens::{AccessTokens, Keyring, RefreshKeys},
    },
    clock::{Clock, Clocks, IdGenerator},
    config::{Config, ConsoleConfig, DocsAccess, Mode, PaymentApisConfig},
    crypto::DerivedKeys,
    db::{CellDatabase, Databases, Error, instance},
    events::log::LogWatch,
    http::{
        allowed_hosts::AllowedHosts,
        concurrency_limit::ConcurrencyLimit,
        outbound::{ApiHttpClient, OutboundClient},
        pagination::CursorKey,
        same_origin::OwnOrigin,
    },
    identity_providers::{DiscoveryTiming, IdentityVerifier, SandboxProvider},
    randomness::Randomness,
};

/// How often a sandbox reads the offset of its billing clock from the database.
pub const CLOCK_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// How often an instance reads which master key is in use.
pub const MASTER_KEY_POLL_INTERVAL: Duration = Duration::from_millis(500);

pub struct App {
    pub db: Arc<Databases>,
    pub client_middleware: Arc<ClientMiddleware>,
    /// The accounts that receive payment notifications.
    pub payment_accounts: PaymentAccountCache,
    /// Verifies this service's access tokens and their sessions.
    pub authenticator: Authenticator,
    /// Verifies tokens of identity providers.
    pub identity_verifier: IdentityVerifier,
    pub refresh_keys: RefreshKeys,
    pub clock: Clock,
    /// For subscriptions, payments and access. Can be advanced in a sandbox.
    pub billing_clock: Clock,
    pub ids: IdGenerator,
    /// Without a trailing slash.
    pub public_url: Arc<str>,
    /// The hosts of the API's listener.
    pub allowed_hosts: AllowedHosts,
    /// The hosts of the console's own listener, if it has one.
    pub console_hosts: Option<AllowedHosts>,
    pub mode: Mode,
    pub docs: DocsAccess,
    pub console: ConsoleConfig,
    /// The client id that the API explorer shows. `None` in live mode.
    pub explorer_client_id: Option<SecretString>,
    /// Whether traces are exported.
    pub traced: bool,
    pub cursor_key: CursorKey,
    /// Limits the requests that wait for events.
    pub event_readers: ConcurrencyLimit<TenantId>,
    /// Ends the requests that wait for events. Canceled when the API listener closes.
    pub closing: CancellationToken,
    /// Encrypts and decrypts secrets in the database.
    pub keys: DerivedKeys,
    /// Sends webhook requests.
    pub outbound: OutboundClient,
    /// Sends requests to payment providers.
    pub payment_client: ApiHttpClient,
    pub payment_apis: PaymentApisConfig,
    /// Whole months; 0 keeps events forever.
    /// Locked while the clock of a sandbox advances or demo data is created.
    pub sandbox_changes: Arc<tokio::sync::Mutex<()>>,
    /// The latest results of `GET /health` by tenant, with the time of the checks. Locked while checks run.
    pub health_reports: tokio::sync::Mutex<Vec<(TenantId, Instant, Bytes)>>,
    pub event_retention_months: u16,
    /// By cell.
    log_watches: BTreeMap<String, LogWatch>,
}

impl HasAuthenticator for Arc<App> {
    fn authenticator(&self) -> &Authenticator {
        &self.authenticator
    }
}

impl App {
    /// Creates the state. The databases need not be reachable yet.
    pub fn new(config: &Config, keys: &DerivedKeys, clock: Clock) -> anyhow::Result<Self> {
        let db = Arc::new(Databases::start(&config.database)?);
        let public_url: Arc<str> = config.http.public_url.as_str().into();
        let keyring = Keyring::new(db.clone(), keys.clone());
        let cached_sessions = config.limits.session_cache_entries;
        let cached_tokens = cached_sessions.saturating_mul(db.cell_names().count());
        let authenticator = Authenticator {
            tokens: AccessTokens::new(public_url.clone(), keyring, cached_tokens),
            sessions: SessionStore::new(&db, cached_sessions),
            rate_limits: AuthRateLimits::new(&config.limits),
            clock,
        };
        let sandbox = match config.mode {
            Mode::Sandbox => Some(SandboxProvider::new(keys)?),
            Mode::Live => None,
        };
        let outbound = OutboundClient::new(&config.webhooks.networks, config.mode == Mode::Live)?;
        let client_cache = ClientCache::new(db.clone(), clock);
        // The API explorer of a sandbox uses the sandbox's secret client.
        let own_origin = (config.mode == Mode::Sandbox).then(|| OwnOrigin::new(&public_url));
        let client_middleware = ClientMiddleware::new(client_cache, config.limits, own_origin);
        Ok(Self {
            client_middleware: Arc::new(client_middleware),
            payment_accounts: PaymentAccountCache::new(db.clone(), config.limits.rate_per_client),
            authenticator,
            identity_verifier: IdentityVerifier::new(
                DiscoveryTiming::default(),
                keys.clone(),
                sandbox.as_ref(),
                outbound.guard.clone(),
            )?,
            refresh_keys: RefreshKeys(keys.clone()),
            log_watches: { db.cell_names() }
                .map(|cell| (cell.to_owned(), LogWatch::new(db.clone(), cell)))
                .collect(),
            db,
            clock,
            billing_clock: match (config.mode, clock) {
                (Mode::Sandbox, Clock::System) => Clock::adjustable(),
                (_, clock) => clock,
            },
            ids: IdGenerator(Randomness),
            allowed_hosts: AllowedHosts::new(
                &public_url,
                config.http.listen,
                &config.http.allowed_hosts,
            ),
            console_hosts: { config.console.own_listener() }.map(|address| {
                AllowedHosts::new(&config.console.url, address, &config.http.allowed_hosts)
            }),
            mode: config.mode,
            docs: config.http.docs,
            console: config.console.clone(),
            explorer_client_id: config.http.explorer_client_id.clone(),
            public_url,
            traced: config.log.otlp.is_some(),
            cursor_key: CursorKey(keys.clone()),
            event_readers: ConcurrencyLimit::new(
                config.limits.event_readers_per_tenant,
                config.limits.event_readers,
            ),
            closing: CancellationToken::new(),
            keys: keys.clone(),
            outbound,
            payment_client: ApiHttpClient::new()?,
            payment_apis: config.payment_apis.clone(),
            sandbox_changes: Arc::default(),
            health_reports: tokio::sync::Mutex::default(),
            event_retention_months: config.work.event_retention_months,
        })
    }

    /// Starts listening for the database's notifications of changed clients, changed payment accounts and
    /// revoked sessions, which enables the caches, and storing times of last use.
    pub fn start_caches(&self) {
        self.client_middleware.start();
        self.payment_accounts.start();
        self.authenticator.sessions.start();
    }

    /// Returns the context for administrative changes made by the service.
    pub fn system_context(&self) -> SystemContext {
        SystemContext {
            ids: self.ids,
            now: self.clock.now(),
            operator: None,
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

    /// Polls which master key is in use, so that all instances change to a new one within about a second
    /// of `perennial keys rewrap`. Never returns.
    pub async fn poll_master_key(self: Arc<Self>) {
        let keys = &self.refresh_keys.0;
        loop {
            tokio::time::sleep(MASTER_KEY_POLL_INTERVAL).await;
            let Ok(home) = self.db.home() else { continue };
            let Ok(state) = instance::poll_master_key_state(home).await else {
                continue;
            };
            let was_replaced = keys.is_replaced();
            let Some(check) = state.check else { continue };
            if !keys.select(&check) && !was_replaced {
                tracing::error!(
                    "the master key was replaced by one that this instance does not have; set \
                     PERENNIAL_MASTER_KEY and restart it"
                );
            }
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

    /// Returns the waiting readers of a cell's event logs.
    pub fn log_watch(&self, cell: &str) -> Result<&LogWatch, Error> {
        self.log_watches
            .get(cell)
            .ok_or_else(|| Error::unknown_cell(cell))
    }
}
