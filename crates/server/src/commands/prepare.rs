//! Getting the databases ready before a command works with them.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, bail};
use perennial_domain::Currency;
use secrecy::SecretString;

use crate::{
    callers::{Operator, tenants, tokens::ensure_key},
    clock::{Clock, Clocks, Ids},
    config::{Database, MasterKey, Mode, Storage},
    db::{self, Address, Connection, Db, Engine, Size, instance, migrate},
    keys::{self, SealingKey},
    randomness::Randomness,
};

/// What a tenant's amounts are in unless it says otherwise.
pub const FALLBACK_CURRENCY: &str = "USD";

/// Whoever runs this command.
pub fn operator() -> Operator {
    Operator {
        ids: Ids(Randomness),
        now: Clock::System.now(),
    }
}

/// What every database is held against.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The mode that it must be of.
    pub mode: Mode,
    /// The master key that it must have been set up with, where that is known.
    pub master: Option<MasterKey>,
}

/// Prepares every cell; answers the steps that were applied.
pub async fn prepare(database: &Database, expected: &Expected) -> anyhow::Result<Vec<String>> {
    let mut applied = Vec::new();
    for (cell, url) in db::addresses(database) {
        applied.extend(prepare_cell(cell, url, expected).await?);
    }
    Ok(applied)
}

/// What came of preparing all cells.
pub struct Prepared {
    /// The steps that were applied.
    pub applied: Vec<String>,
    /// The cells that were away, and where they will be.
    away: Vec<(String, SecretString)>,
}

/// Prepares every cell: home for as long as it takes until it answers; another one that is away is
/// left for [`Prepared::open_when_back`].
pub async fn prepare_patiently(
    database: &Database,
    expected: &Expected,
) -> anyhow::Result<Prepared> {
    let (mut applied, mut away) = (Vec::new(), Vec::new());
    for (cell, url) in db::addresses(database) {
        match prepare_cell(cell, url, expected).await {
            Err(error) if is_unavailable(&error) && cell == db::HOME => {
                applied.extend(wait_and_prepare(cell, url, expected).await?);
            }
            Err(error) if is_unavailable(&error) => away.push((cell.to_owned(), url.clone())),
            outcome => applied.extend(outcome?),
        }
    }
    Ok(Prepared { applied, away })
}

impl Prepared {
    /// Closes the cells that were away, and opens each when it is back and prepared: its tenants wait
    /// for it, the others do not. One that is back and is not what was expected stays closed.
    pub fn open_when_back(self, db: &Arc<Db>, expected: &Expected) {
        for (cell, url) in self.away {
            db.set_closed(&cell, true);
            let (db, expected) = (db.clone(), expected.clone());
            tokio::spawn(async move {
                match wait_and_prepare(&cell, &url, &expected).await {
                    Ok(_) => db.set_closed(&cell, false),
                    Err(error) => {
                        tracing::error!(
                            cell,
                            error = format!("{error:#}"),
                            "a cell cannot be used"
                        );
                    }
                }
            });
        }
    }
}

async fn wait_and_prepare(
    cell: &str,
    url: &SecretString,
    expected: &Expected,
) -> anyhow::Result<Vec<String>> {
    let mut attempts = 0_u32;
    loop {
        match prepare_cell(cell, url, expected).await {
            Err(error) if is_unavailable(&error) => {
                if attempts.is_multiple_of(50) {
                    tracing::warn!(
                        cell,
                        error = format!("{error:#}"),
                        "waiting for the database"
                    );
                }
                attempts += 1;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            outcome => return outcome,
        }
    }
}

/// Whether the database could not be reached.
pub fn is_unavailable(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let ours = cause.downcast_ref::<db::Error>();
        let drivers = cause.downcast_ref().map(db::Error::of);
        matches!(ours.or(drivers.as_ref()), Some(db::Error::Unavailable(_)))
    })
}

/// Migrates a cell, checks that it is what is expected, and makes the first tenant in the home cell.
async fn prepare_cell(
    cell: &str,
    url: &SecretString,
    expected: &Expected,
) -> anyhow::Result<Vec<String>> {
    let address = Address::parse(url)?;
    let refuse = |stamped: &str| {
        anyhow::anyhow!(
            "the database of the cell {cell} is a {stamped} one, and PERENNIAL_MODE is {}; \
             set PERENNIAL_MODE={stamped}, or use another database",
            expected.mode
        )
    };
    // Another mode's is left as it is: who mistakes one for the other must not upgrade it.
    let stamped = migrate::stamped_mode(&address)
        .await
        .with_context(|| format!("the cell {cell}, {}", address.name()))?;
    if let Some(stamped) = stamped.filter(|stamped| stamped != expected.mode.as_str()) {
        return Err(refuse(&stamped));
    }
    let steps = migrate::run(&address)
        .await
        .with_context(|| format!("the cell {cell}, {}", address.name()))?;
    let engine = Engine::start(cell, &address, Size { pool: 1, lanes: 0 })?;
    let mut connection = engine.connection().await?;
    let stamped = instance::stamp(&connection, expected.mode.as_str()).await?;
    if stamped != expected.mode.as_str() {
        return Err(refuse(&stamped));
    }
    if let Some(master) = &expected.master
        && !instance::recognise(&connection, &keys::check_value(master)).await?
    {
        bail!(
            "the database of the cell {cell} was set up with another master key; give that one as \
             PERENNIAL_MASTER_KEY, or use another database"
        );
    }
    if cell == db::HOME {
        let currency: Currency = FALLBACK_CURRENCY.parse()?;
        tenants::ensure_one(&mut connection, operator(), currency).await?;
        if let Some(master) = &expected.master {
            ensure_key(&mut connection, operator(), &SealingKey::of(master)).await?;
        }
    }
    Ok(steps.iter().map(|step| format!("{cell}: {step}")).collect())
}

/// The databases as a small command needs them, and the mode they were set up in. Sets up an empty
/// one; leaves an upgrade to `perennial migrate`, because others may be running on it.
pub async fn open() -> anyhow::Result<(Db, Mode)> {
    let storage = Storage::from_environment()?;
    crate::logging::start_lines(&storage.log);
    let home = Address::parse(&storage.database.url)?;
    let state = migrate::state(&home)
        .await
        .with_context(|| format!("DATABASE_URL, {}", home.name()))?;
    match state {
        migrate::State::Empty => {
            let expected = Expected {
                mode: storage.mode,
                master: None,
            };
            prepare(&storage.database, &expected).await?;
        }
        migrate::State::Behind { .. } => {
            bail!("the database's schema is older than this binary; run `perennial migrate` first");
        }
        migrate::State::Current => {}
    }
    let small = Database {
        pool: 2,
        lanes: 1,
        ..storage.database
    };
    let db = Db::start(&small)?;
    let stamped = instance::stamp(&db.home()?.connection().await?, storage.mode.as_str()).await?;
    let mode = stamped.parse().map_err(anyhow::Error::msg)?;
    Ok((db, mode))
}

/// What time it is, also for subscriptions, where a sandbox may have moved it.
pub async fn clocks(db: &Db) -> anyhow::Result<Clocks> {
    let billing = Clock::movable();
    billing.set(instance::clock_ahead(db.home()?).await?);
    let real = Clock::System;
    Ok(Clocks { real, billing })
}

/// The key that seals secrets.
pub async fn sealing_key(home: &Connection, mode: Mode) -> anyhow::Result<SealingKey> {
    Ok(SealingKey::of(&master_key(home, mode).await?))
}

/// The master key that the database was set up with.
pub async fn master_key(home: &Connection, mode: Mode) -> anyhow::Result<MasterKey> {
    let master = Storage::keys_from_environment(mode)?.master(Randomness)?;
    if !instance::recognise(home, &keys::check_value(&master)).await? {
        bail!(
            "the database was set up with another master key; give that one as PERENNIAL_MASTER_KEY"
        );
    }
    Ok(master)
}
