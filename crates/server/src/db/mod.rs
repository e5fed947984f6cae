//! Access to PostgreSQL. The only module that opens connections and runs SQL.
//!
//! Tenants can be spread over several databases, called **cells**. A feature gets the database of
//! one tenant and never addresses several: every key starts with the tenant, and no statement joins
//! two tenants. All cells have the same schema. The **home** cell also stores the tenants, their API
//! clients, and the cell of each tenant.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::Context;
use secrecy::SecretString;

use crate::config::DatabaseConfig;

mod admission;
mod batcher;
mod cell_database;
mod connect_options;
mod connection;
mod encoded_param;
mod error;
pub mod instance;
mod keyset;
pub mod migrate;
mod notify;
mod pipelined;
mod read_through_cache;
pub mod roles;
mod row;
mod sql;
mod transaction;

pub use batcher::Batcher;
pub use cell_database::{CellDatabase, ConnectionLimits};
pub use connect_options::ConnectOptions;
pub use connection::PooledConnection;
pub use error::Error;
pub use keyset::{AgeKey, AgeOrder, ByAgeSql, TimeRange, uuids};
pub(crate) use keyset::{by_age, by_key, by_value};
pub use notify::{Notification, NotificationListener};
pub use read_through_cache::ReadThroughCache;
pub use row::{RowReader, check_range};
pub use sql::Sql;
pub use transaction::Transaction;

/// The name of the home cell.
pub const HOME: &str = "home";

/// The databases of all cells.
pub struct Databases {
    cells: BTreeMap<String, CellEntry>,
}

struct CellEntry {
    database: CellDatabase,
    /// Whether the database must not be used until its schema, mode and master key are verified. Set
    /// only for a cell that was unreachable at startup.
    is_closed: AtomicBool,
}

impl Databases {
    /// Starts connecting to all cells, which need not be reachable yet. Must be called in a Tokio
    /// runtime.
    pub fn start(config: &DatabaseConfig) -> anyhow::Result<Self> {
        let limits = ConnectionLimits {
            pool: config.pool,
            pipelined: config.pipelined,
        };
        let cells = cell_urls(config)
            .map(|(name, url)| {
                let database = ConnectOptions::parse(url)
                    .and_then(|options| CellDatabase::start(name, &options, limits))
                    .with_context(|| format!("the database of the cell {name}"))?;
                let is_closed = AtomicBool::new(false);
                let cell = CellEntry {
                    database,
                    is_closed,
                };
                Ok((name.to_owned(), cell))
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Self { cells })
    }

    /// Waits up to one second per cell for its first connections, so that the first requests do not
    /// fail.
    pub async fn wait_until_connected(&self) {
        for CellEntry { database, .. } in self.cells.values() {
            let connect = async {
                while database.open_pipelined_connections() == 0 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                database.open_pool().await;
            };
            let _ = tokio::time::timeout(Duration::from_secs(1), connect).await;
        }
    }

    /// Returns the database of the home cell.
    pub fn home(&self) -> Result<&CellDatabase, Error> {
        self.cell(HOME)
    }

    /// Returns the database of a cell. Fails if the cell is closed or not configured.
    pub fn cell(&self, name: &str) -> Result<&CellDatabase, Error> {
        match self.cells.get(name) {
            None => Err(Error::unknown_cell(name)),
            Some(cell) if cell.is_closed.load(Ordering::Acquire) => {
                Err(Error::Unavailable(format!("the cell {name} is not ready")))
            }
            Some(cell) => Ok(&cell.database),
        }
    }

    /// Closes a cell until it is verified, or opens it.
    pub fn set_closed(&self, name: &str, is_closed: bool) {
        if let Some(cell) = self.cells.get(name) {
            cell.is_closed.store(is_closed, Ordering::Release);
        }
    }

    /// Returns the name and the database of each cell, closed cells included.
    pub fn databases(&self) -> impl Iterator<Item = (&str, &CellDatabase)> {
        let cells = self.cells.iter();
        cells.map(|(name, cell)| (name.as_str(), &cell.database))
    }

    pub fn cell_names(&self) -> impl Iterator<Item = &str> {
        self.cells.keys().map(String::as_str)
    }
}

/// Returns the name and the URL of each cell, the home cell first.
pub fn cell_urls(config: &DatabaseConfig) -> impl Iterator<Item = (&str, &SecretString)> {
    let others = config.cells.iter().map(|(name, url)| (name.as_str(), url));
    std::iter::once((HOME, &config.url)).chain(others)
}
