//! Opening and preparing the databases before a command uses them.
//!
//! The data of tenants can be spread over several databases, called cells. The home cell also stores
//! the list of tenants, their API clients and the signing keys.
//!
//! Preparing a cell means: apply migrations, check that it was set up with the configured mode (live
//! or sandbox) and master key, and in the home cell create the first tenant and signing key. A new
//! cell is set up with that mode and key.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, bail};
use perennial_domain::Currency;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::operator;
use crate::{
    app::App,
    auth::{SystemContext, Tenant, tenants, tokens::ensure_signing_key},
    clock::{Clock, Clocks, IdGenerator},
    config::{Config, DatabaseConfig, Mode, StorageConfig},
    crypto::DerivedKeys,
    db::{
        self, CellDatabase, ConnectOptions, ConnectionLimits, Databases, PooledConnection,
        instance, migrate,
    },
    health::check_master_keys,
    randomness::Randomness,
    record::ChangeOrigin,
};

/// The default currency of a new tenant.
pub const DEFAULT_CURRENCY: &str = "USD";

/// The delay before an unavailable database is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// The number of failed attempts per logged warning.
const ATTEMPTS_PER_WARNING: u32 = 50;

/// Returns the context of changes made by a command instead of an API client.
pub fn system_context() -> SystemContext {
    SystemContext {
        ids: IdGenerator(Randomness),
        now: Clock::System.now(),
        operator: Some(operator::current()),
    }
}

/// Returns the origin of a change to a tenant's records by this command's operator.
pub fn change_origin(tenant: &Tenant, clock: Clock) -> ChangeOrigin<'_> {
    let context = system_context();
    ChangeOrigin {
        tenant,
        actor: context.actor(),
        ids: context.ids,
        clock,
    }
}

/// The mode and master keys that each database must have been set up with.
#[derive(Clone)]
pub struct ExpectedSetup {
    pub mode: Mode,
    /// If `None`, the master key is not checked and no signing key is created.
    pub keys: Option<DerivedKeys>,
}

/// Prepares every cell and returns the applied migrations.
pub async fn prepare(
    database: &DatabaseConfig,
    expected: &ExpectedSetup,
) -> anyhow::Result<Vec<String>> {
    let mut applied = Vec::new();
    for (cell, url) in db::cell_urls(database) {
        applied.extend(prepare_cell(cell, url, expected).await?);
    }
    Ok(applied)
}

/// The application that the commands `serve` and `work` run.
pub struct StartedApp {
    pub app: Arc<App>,
    pub migrations_applied: usize,
}

/// Prepares the databases and builds the application. Returns `None` if `stop` is cancelled first.
///
/// Waits for the home cell for as long as it is unavailable. Any other unavailable cell is closed:
/// requests for its tenants fail until it is prepared in the background. The tenants of other cells
/// are not affected.
pub async fn start_app(
    config: &Config,
    stop: &CancellationToken,
) -> anyhow::Result<Option<StartedApp>> {
    let keys = DerivedKeys::new(&config.master_key.load_or_create(Randomness)?);
    let expected = ExpectedSetup {
        mode: config.mode,
        keys: Some(keys.clone()),
    };
    let (applied, unavailable) = tokio::select! {
        outcome = prepare_available(&config.database, &expected) => outcome?,
        () = stop.cancelled() => return Ok(None),
    };
    let app = Arc::new(App::new(config, &keys, Clock::System)?);
    for (cell, url) in unavailable {
        open_when_available(&app.db, cell, url, expected.clone());
    }
    tokio::spawn(app.clone().poll_billing_clock());
    tokio::spawn(app.clone().poll_master_key());
    let migrations_applied = applied.len();
    Ok(Some(StartedApp {
        app,
        migrations_applied,
    }))
}

/// Prepares every cell that is available, and waits for the home cell. Returns the applied
/// migrations and the unavailable cells.
async fn prepare_available(
    database: &DatabaseConfig,
    expected: &ExpectedSetup,
) -> anyhow::Result<(Vec<String>, Vec<(String, SecretString)>)> {
    let (mut applied, mut unavailable) = (Vec::new(), Vec::new());
    for (cell, url) in db::cell_urls(database) {
        if cell == db::HOME {
            applied.extend(prepare_when_available(cell, url, expected).await?);
            continue;
        }
        match prepare_cell(cell, url, expected).await {
            Err(error) if is_unavailable(&error) => {
                unavailable.push((cell.to_owned(), url.clone()));
            }
            outcome => applied.extend(outcome?),
        }
    }
    Ok((applied, unavailable))
}

/// Closes a cell, so that requests for its tenants fail, until it is available and prepared. A cell
/// that cannot be prepared stays closed.
fn open_when_available(
    db: &Arc<Databases>,
    cell: String,
    url: SecretString,
    expected: ExpectedSetup,
) {
    db.set_closed(&cell, true);
    let db = db.clone();
    tokio::spawn(async move {
        match prepare_when_available(&cell, &url, &expected).await {
            Ok(_) => db.set_closed(&cell, false),
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(cell, error, "cell cannot be used");
            }
        }
    });
}

/// Prepares a cell, and retries while its database is unavailable.
async fn prepare_when_available(
    cell: &str,
    url: &SecretString,
    expected: &ExpectedSetup,
) -> anyhow::Result<Vec<String>> {
    let mut attempts = 0_u32;
    loop {
        match prepare_cell(cell, url, expected).await {
            Err(error) if is_unavailable(&error) => {
                if attempts.is_multiple_of(ATTEMPTS_PER_WARNING) {
                    let error = format!("{error:#}");
                    tracing::warn!(cell, error, "waiting for the database");
                }
                attempts += 1;
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            outcome => return outcome,
        }
    }
}

/// Returns whether the error was caused by an unreachable database.
pub fn is_unavailable(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let error = cause.downcast_ref::<db::Error>();
        let driver_error = cause.downcast_ref().map(db::Error::from_driver);
        matches!(
            error.or(driver_error.as_ref()),
            Some(db::Error::Unavailable(_))
        )
    })
}

async fn prepare_cell(
    cell: &str,
    url: &SecretString,
    expected: &ExpectedSetup,
) -> anyhow::Result<Vec<String>> {
    let address = ConnectOptions::parse(url)?;
    let describe = || format!("cell {cell}, {}", address.name());
    let wrong_mode = |mode: &str| {
        anyhow::anyhow!(
            "the database of cell {cell} was set up in {mode} mode, but PERENNIAL_MODE is {}; \
             set PERENNIAL_MODE={mode} or use another database",
            expected.mode
        )
    };
    // Checked before migrating, so that a wrong DATABASE_URL does not upgrade another installation.
    let mode = migrate::stored_mode(&address)
        .await
        .with_context(describe)?;
    if let Some(mode) = mode.filter(|mode| mode != expected.mode.as_str()) {
        return Err(wrong_mode(&mode));
    }
    let migrations = migrate::apply(&address, migrate::MIGRATIONS)
        .await
        .with_context(describe)?;
    let database = CellDatabase::start(
        cell,
        &address,
        ConnectionLimits {
            pool: 1,
            pipelined: 0,
        },
    )?;
    let mut connection = database.connection().await?;
    let mode = instance::get_or_init_mode(&connection, expected.mode.as_str()).await?;
    if mode != expected.mode.as_str() {
        return Err(wrong_mode(&mode));
    }
    if let Some(keys) = &expected.keys {
        select_master_key(cell, &connection, keys).await?;
    }
    if cell == db::HOME {
        let currency: Currency = DEFAULT_CURRENCY.parse()?;
        tenants::ensure_default(&mut connection, system_context(), currency).await?;
        if let Some(keys) = &expected.keys {
            ensure_signing_key(&mut connection, system_context(), keys).await?;
        }
    }
    let migrations = migrations.iter();
    Ok(migrations.map(|name| format!("{cell}: {name}")).collect())
}

/// Opens the databases for a short-lived command and returns the mode they were set up in.
///
/// Prepares an empty database. Does not migrate an existing one, because running instances may use
/// it.
pub async fn open() -> anyhow::Result<(Databases, Mode)> {
    let storage = StorageConfig::from_env()?;
    crate::logging::init_for_command(&storage.log);
    let home = ConnectOptions::parse(&storage.database.url)?;
    let state = migrate::state(&home, migrate::MIGRATIONS)
        .await
        .with_context(|| format!("DATABASE_URL, {}", home.name()))?;
    match state {
        migrate::SchemaState::Empty => {
            let expected = ExpectedSetup {
                mode: storage.mode,
                keys: None,
            };
            prepare(&storage.database, &expected).await?;
        }
        migrate::SchemaState::Behind { .. } => {
            bail!("the database schema is older than this binary; run `perennial migrate` first");
        }
        migrate::SchemaState::Current => {}
    }
    let db = connect(&storage.database)?;
    let mode =
        instance::get_or_init_mode(&db.home()?.connection().await?, storage.mode.as_str()).await?;
    let mode = mode.parse().map_err(anyhow::Error::msg)?;
    Ok((db, mode))
}

/// Opens the databases with the few connections that a short-lived command needs.
pub fn connect(database: &DatabaseConfig) -> anyhow::Result<Databases> {
    let small = DatabaseConfig {
        pool: 2,
        pipelined: 1,
        ..database.clone()
    };
    Databases::start(&small)
}

/// Returns the real clock and the billing clock, which subscriptions, payments and access use. In
/// sandbox mode, `perennial sandbox clock` can set the billing clock ahead.
pub async fn clocks(db: &Databases) -> anyhow::Result<Clocks> {
    let billing = Clock::adjustable();
    billing.set(instance::clock_offset(db.home()?).await?);
    let real = Clock::System;
    Ok(Clocks { real, billing })
}

/// Returns the keys derived from the configured master keys. In sandbox mode, if none is configured,
/// reads or creates a key file. Fails if the database needs another master key.
pub async fn derived_keys(home: &PooledConnection, mode: Mode) -> anyhow::Result<DerivedKeys> {
    let masters = StorageConfig::master_key_from_env(mode)?.load_or_create(Randomness)?;
    let keys = DerivedKeys::new(&masters);
    select_master_key(db::HOME, home, &keys).await?;
    Ok(keys)
}

/// Stores the check value of the master key in a new database. Selects the master key that the home
/// cell uses. Fails if a master key that the cell needs is not configured.
async fn select_master_key(
    cell: &str,
    connection: &PooledConnection,
    keys: &DerivedKeys,
) -> anyhow::Result<()> {
    instance::init_master_key(connection, &keys.in_use().check).await?;
    let state = instance::master_key_state(connection).await?;
    if let Err((message, fix)) = check_master_keys(keys, &state) {
        bail!("the database of cell {cell} {message}; {fix}");
    }
    // A killed `keys rewrap` may have changed the home cell only.
    if cell == db::HOME
        && let Some(check) = &state.check
    {
        keys.select(check);
    }
    Ok(())
}
