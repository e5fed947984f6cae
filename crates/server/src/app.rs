//! The one shared state: what a handler or a task can reach.

use std::{sync::Arc, time::Duration};

use crate::{
    callers::{
        Attempts, Bearers, Directory, Gate, KnowsBearers, Operator, Tenant,
        sessions::Sessions,
        tokens::{Keyring, RefreshKey, Tokens},
    },
    clock::{Clock, Clocks, Ids},
    config::{Config, MasterKey, Mode},
    db::{Db, Engine, Error, instance},
    http::page::CursorKey,
    keys::{self, SealingKey},
    providers::{Patience, Providers, Sandbox},
    randomness::Randomness,
};

/// How soon a moved clock is followed.
pub const FOLLOWED: Duration = Duration::from_millis(200);

/// Everything that the service is made of while it runs.
pub struct App {
    /// The databases.
    pub db: Arc<Db>,
    /// What every request passes.
    pub gate: Arc<Gate>,
    /// Our own tokens, and which sign-ins live.
    pub bearers: Bearers,
    /// Whom an outside token proves.
    pub providers: Providers,
    /// Proves refresh tokens.
    pub refresh_key: RefreshKey,
    /// What time it is.
    pub clock: Clock,
    /// What time it is for subscriptions, payments and access, which a sandbox can move.
    pub billing: Clock,
    /// New identifiers.
    pub ids: Ids,
    /// Our own address, without a slash at its end.
    pub public_url: Arc<str>,
    /// Whether spans go to a collector.
    pub traced: bool,
    /// The key that signs cursors.
    pub cursor_key: CursorKey,
    /// Whole months of events to keep; 0 is for ever.
    pub event_retention_months: u16,
}

impl KnowsBearers for Arc<App> {
    fn bearers(&self) -> &Bearers {
        &self.bearers
    }
}

impl App {
    /// Puts it together; the databases need not be there yet.
    pub fn new(config: &Config, master: &MasterKey, clock: Clock) -> anyhow::Result<Self> {
        let db = Arc::new(Db::start(&config.database)?);
        let public_url: Arc<str> = config.http.public_url.as_str().into();
        let keyring = Keyring::new(db.clone(), SealingKey::of(master));
        let bearers = Bearers {
            tokens: Tokens::new(public_url.clone(), keyring),
            sessions: Sessions::new(db.clone()),
            attempts: Attempts::new(&config.limits),
            clock,
        };
        let sandbox = match config.mode {
            Mode::Sandbox => Some(Sandbox::of(master)?),
            Mode::Live => None,
        };
        let directory = Directory::new(db.clone(), clock);
        Ok(Self {
            gate: Arc::new(Gate::new(directory, config.limits)),
            bearers,
            providers: Providers::new(
                Patience::default(),
                SealingKey::of(master),
                sandbox.as_ref(),
            )?,
            refresh_key: RefreshKey(keys::refresh_key(master)),
            db,
            clock,
            billing: match (config.mode, clock) {
                (Mode::Sandbox, Clock::System) => Clock::movable(),
                (_, clock) => clock,
            },
            ids: Ids(Randomness),
            public_url,
            traced: config.log.traces.is_some(),
            cursor_key: CursorKey(keys::cursor_key(master)),
            event_retention_months: config.work.event_retention_months,
        })
    }

    /// The service itself, as somebody who changes the directory.
    pub fn operator(&self) -> Operator {
        Operator {
            ids: self.ids,
            now: self.clock.now(),
        }
    }

    /// Follows a sandbox's clock, whoever moves it, for as long as the service runs.
    pub async fn follow_billing_time(self: Arc<Self>) {
        if !matches!(self.billing, Clock::Ahead(_)) {
            return;
        }
        loop {
            let home = self.db.home();
            if let Ok(home) = home
                && let Ok(ahead) = instance::clock_ahead(home).await
            {
                self.billing.set(ahead);
            }
            tokio::time::sleep(FOLLOWED).await;
        }
    }

    /// Both clocks.
    pub fn clocks(&self) -> Clocks {
        Clocks {
            real: self.clock,
            billing: self.billing,
        }
    }

    /// The engine that holds a tenant's data.
    pub fn engine_of(&self, tenant: &Tenant) -> Result<&Engine, Error> {
        self.db.cell(&tenant.cell)
    }
}
