//! One database: a pool for writes, lists and transactions, and lanes for reads by key.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use tokio_postgres::{Row, types::ToSql};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Address, Error, LIFETIME, Sql, lanes::Lanes};
use crate::randomness::varied;

/// How long a request waits for a connection before it is told that we are busy.
const WAIT: Duration = Duration::from_secs(1);

/// How many connections an engine may open.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// For writes, lists and transactions.
    pub pool: usize,
    /// Shared, for reads by key.
    pub lanes: usize,
}

/// One database. Reconnects by itself, so an engine can be made while the database is away.
pub struct Engine {
    pool: Pool,
    lanes: Lanes,
    _renewal_stops_on_drop: DropGuard,
}

/// Lets go of idle connections of the pool that are old enough; new ones are opened when needed.
async fn renew(pool: Pool) {
    loop {
        tokio::time::sleep(Duration::from_mins(1)).await;
        pool.retain(|_, connection| connection.age() < varied(LIFETIME));
    }
}

impl Engine {
    /// Begins to connect.
    pub fn start(address: &Address, size: Size) -> anyhow::Result<Self> {
        let pooled = address.clone().with_limits("pool");
        let config = ManagerConfig {
            // A transaction that was dropped half-way has its ROLLBACK queued by the driver, and
            // we set no session state: there is nothing to clean.
            recycling_method: RecyclingMethod::Fast,
        };
        let pool = Pool::builder(Manager::from_config(pooled.config, pooled.tls, config))
            .max_size(size.pool)
            .wait_timeout(Some(WAIT))
            .create_timeout(Some(Duration::from_secs(3)))
            .recycle_timeout(Some(WAIT))
            .runtime(Runtime::Tokio1)
            .build()?;
        let lanes = Lanes::open(&address.clone().with_limits("lane"), size.lanes);
        let stop = CancellationToken::new();
        tokio::spawn(stop.clone().run_until_cancelled_owned(renew(pool.clone())));
        Ok(Self {
            pool,
            lanes,
            _renewal_stops_on_drop: stop.drop_guard(),
        })
    }

    /// Reads one record by its key, over a shared lane. Only for statements that take no lock and
    /// use an index: a slow one holds up everybody.
    pub async fn read(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Error> {
        self.lanes.query_opt(sql, params).await
    }

    /// A connection of one's own, for as long as it is held.
    pub async fn connection(&self) -> Result<Connection, Error> {
        Ok(Connection(self.pool.get().await?))
    }

    /// Connections of the pool: open, and of those idle.
    pub fn pool_status(&self) -> (usize, usize) {
        let status = self.pool.status();
        (status.size, status.available)
    }

    /// How many lanes are open.
    pub fn open_lanes(&self) -> usize {
        self.lanes.count_open()
    }
}

/// A connection of one's own.
pub struct Connection(Object);

impl Connection {
    /// Begins a transaction. Dropped without a commit it is rolled back, also when the caller hangs
    /// up in the middle.
    pub async fn begin(&mut self) -> Result<Transaction<'_>, Error> {
        Ok(Transaction(self.0.transaction().await?))
    }

    /// All rows, outside any transaction.
    pub async fn query(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let statement = self.0.prepare_cached(sql.text()).await?;
        Ok(self.0.query(&statement, params).await?)
    }
}

/// A transaction: all of it, or nothing.
pub struct Transaction<'a>(deadpool_postgres::Transaction<'a>);

impl Transaction<'_> {
    /// All rows.
    pub async fn query(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let statement = self.0.prepare_cached(sql.text()).await?;
        Ok(self.0.query(&statement, params).await?)
    }

    /// How many rows were changed.
    pub async fn execute(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Error> {
        let statement = self.0.prepare_cached(sql.text()).await?;
        Ok(self.0.execute(&statement, params).await?)
    }

    /// Makes it last.
    pub async fn commit(self) -> Result<(), Error> {
        Ok(self.0.commit().await?)
    }
}
