//! Getting the databases ready before a command works with them.

use std::time::Duration;

use anyhow::{Context, bail};
use perennial_domain::Currency;

use crate::{
    callers::tenants,
    clock::{Clock, Ids},
    config::{Database, MasterKey, Mode, Storage},
    db::{self, Address, Db, Engine, Size, instance, migrate},
    keys,
    randomness::Randomness,
};

/// What a tenant's amounts are in unless it says otherwise.
pub const FALLBACK_CURRENCY: &str = "USD";

/// Migrates every cell, checks that each is of this mode and (if given) of this master key, and makes
/// the first tenant. Answers the steps that were applied.
pub async fn prepare(
    database: &Database,
    mode: Mode,
    master: Option<&MasterKey>,
) -> anyhow::Result<Vec<String>> {
    let mut applied = Vec::new();
    for (cell, url) in db::addresses(database) {
        let address = Address::parse(url)?;
        let steps = migrate::run(&address)
            .await
            .with_context(|| format!("the database of the cell {cell}"))?;
        applied.extend(steps.iter().map(|step| format!("{cell}: {step}")));
        let engine = Engine::start(&address, Size { pool: 1, lanes: 1 })?;
        let mut connection = engine.connection().await?;
        let stamped = instance::stamp(&connection, mode.as_str()).await?;
        if stamped != mode.as_str() {
            bail!(
                "the database of the cell {cell} is a {stamped} one, and PERENNIAL_MODE is {mode}; \
                 set PERENNIAL_MODE={stamped}, or use another database"
            );
        }
        if let Some(master) = master
            && !instance::recognise(&connection, &keys::check_value(master)).await?
        {
            bail!(
                "the database of the cell {cell} was set up with another master key; give that one as \
                 PERENNIAL_MASTER_KEY, or use another database"
            );
        }
        if cell == db::HOME {
            let currency: Currency = FALLBACK_CURRENCY.parse()?;
            tenants::ensure_one(
                &mut connection,
                Ids(Randomness),
                Clock::System.now(),
                currency,
            )
            .await?;
        }
    }
    Ok(applied)
}

/// The same, for as long as it takes until the databases answer.
pub async fn prepare_patiently(
    database: &Database,
    mode: Mode,
    master: &MasterKey,
) -> anyhow::Result<Vec<String>> {
    let mut complained = 0_u32;
    loop {
        match prepare(database, mode, Some(master)).await {
            Err(error) if is_unavailable(&error) => {
                if complained.is_multiple_of(50) {
                    tracing::warn!(error = format!("{error:#}"), "waiting for the database");
                }
                complained += 1;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            outcome => return outcome,
        }
    }
}

fn is_unavailable(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let ours = cause.downcast_ref::<db::Error>();
        let drivers = cause.downcast_ref::<tokio_postgres::Error>();
        matches!(ours, Some(db::Error::Unavailable(_)))
            || drivers.is_some_and(tokio_postgres::Error::is_closed)
    })
}

/// The databases as a small command needs them, and the mode they were set up in. Sets up an empty
/// one; leaves an upgrade to `perennial migrate`, because others may be running on it.
pub async fn open() -> anyhow::Result<(Db, Mode)> {
    let storage = Storage::from_environment()?;
    crate::logging::start(&storage.log);
    let home = Address::parse(&storage.database.url)?;
    let state = migrate::state(&home).await.context("the database")?;
    match state {
        migrate::State::Empty => {
            prepare(&storage.database, storage.mode, None).await?;
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
