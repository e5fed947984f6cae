//! The one way to PostgreSQL.
//!
//! Features ask for the engine *of a tenant*. Today most installations have one database; a large
//! one spreads its tenants over cells, each a PostgreSQL of its own, and features do not notice:
//! every key begins with the tenant, no statement joins two of them.
//!
//! The **home** cell also holds the directory: which tenants and clients there are, and in which
//! cell each tenant lives. All cells have the same schema.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::Context;
use secrecy::SecretString;

use crate::config::Database;

mod address;
mod engine;
mod error;
mod feed;
pub mod instance;
mod lanes;
mod lately;
mod line;
pub mod migrate;
pub mod row;
mod sql;
mod transaction;

pub use address::Address;
pub use engine::{Connection, Engine, Size};
pub use error::Error;
pub use feed::{Feed, Heard};
pub use lately::Lately;
pub use sql::Sql;
pub use transaction::Transaction;

/// How long a connection lives before it is replaced: after a failover or behind a changed address,
/// none stays where it was. Each lives a little shorter, so that they do not end together.
const LIFETIME: Duration = Duration::from_mins(30);

/// The cell that every installation has.
pub const HOME: &str = "home";

/// All databases of this installation.
pub struct Db {
    cells: BTreeMap<String, Cell>,
}

/// A database, and whether it may be used.
struct Cell {
    engine: Engine,
    /// Set while it is not known to have our schema, mode and master key.
    closed: AtomicBool,
}

impl Db {
    /// Begins to connect to all of them. Needs the runtime, but no database yet.
    pub fn start(config: &Database) -> anyhow::Result<Self> {
        let size = Size {
            pool: config.pool,
            lanes: config.lanes,
        };
        let cells = addresses(config)
            .map(|(name, url)| {
                let engine = Address::parse(url)
                    .and_then(|address| Engine::start(name, &address, size))
                    .with_context(|| format!("the database of the cell {name}"))?;
                let closed = AtomicBool::new(false);
                Ok((name.to_owned(), Cell { engine, closed }))
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Self { cells })
    }

    /// Waits until each cell has a lane, or for a moment: who connects first shall not be told to come
    /// back.
    pub async fn opened(&self) {
        for Cell { engine, .. } in self.cells.values() {
            for _ in 0..100 {
                if engine.open_lanes() > 0 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }

    /// The database that holds the directory.
    pub fn home(&self) -> Result<&Engine, Error> {
        self.cell(HOME)
    }

    /// The database of the tenants of a cell.
    pub fn cell(&self, name: &str) -> Result<&Engine, Error> {
        let unavailable = |why| Err(Error::Unavailable(format!("the cell {name} {why}")));
        match self.cells.get(name) {
            None => unavailable("is not configured in this process"),
            Some(cell) if cell.closed.load(Ordering::Acquire) => unavailable("is not prepared"),
            Some(cell) => Ok(&cell.engine),
        }
    }

    /// Keeps everybody from a cell until it is prepared, or opens it.
    pub fn set_closed(&self, name: &str, closed: bool) {
        if let Some(cell) = self.cells.get(name) {
            cell.closed.store(closed, Ordering::Release);
        }
    }

    /// All databases with the names of their cells, also those that may not be used yet.
    pub fn engines(&self) -> impl Iterator<Item = (&str, &Engine)> {
        let all = self.cells.iter();
        all.map(|(name, cell)| (name.as_str(), &cell.engine))
    }

    /// The names of all cells.
    pub fn cells(&self) -> impl Iterator<Item = &str> {
        self.cells.keys().map(String::as_str)
    }
}

/// The addresses of all cells, home first.
pub fn addresses(config: &Database) -> impl Iterator<Item = (&str, &SecretString)> {
    let others = config.cells.iter().map(|(name, url)| (name.as_str(), url));
    std::iter::once((HOME, &config.url)).chain(others)
}
