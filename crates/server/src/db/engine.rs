//! One database: a pool for writes, lists and transactions, and lanes for reads by key.

use std::time::{Duration, Instant};

use deadpool_postgres::TimeoutType;
use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, Timeouts,
};
use metrics::Histogram;
use tokio_postgres::{Row, types::ToSql};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use super::{
    Address, Error, Feed, LIFETIME, Sql, feed::Heard, lanes::Lanes, line::Line,
    transaction::Transaction,
};
use crate::randomness::varied;

/// How long somebody in line waits for a connection. Those who would wait for longer than a moment are
/// turned away when they arrive; this is for when nothing moves any more.
const WAIT: Duration = Duration::from_millis(1_500);

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
    address: Address,
    pool: Pool,
    line: Line,
    lanes: Lanes,
    pool_wait: Histogram,
    lane_wait: Histogram,
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
    /// Begins to connect to the database of this cell.
    pub fn start(cell: &str, address: &Address, size: Size) -> anyhow::Result<Self> {
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
        let lane = address.clone().with_limits("lane");
        let lanes = Lanes::open(&lane, size.lanes);
        let stop = CancellationToken::new();
        tokio::spawn(stop.clone().run_until_cancelled_owned(renew(pool.clone())));
        let wait = |way: &'static str| {
            let cell = cell.to_owned();
            metrics::histogram!("perennial_database_wait_seconds", "cell" => cell, "way" => way)
        };
        Ok(Self {
            address: address.clone(),
            pool,
            line: Line::new("connection"),
            lanes,
            pool_wait: wait("pool"),
            lane_wait: wait("lane"),
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
        Ok(self.read_all(sql, params).await?.pop())
    }

    /// The same, of the few records that belong to one key.
    pub async fn read_all(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let asked = Instant::now();
        let answer = self.lanes.query(sql, params);
        let answer = answer.instrument(span(sql)).await;
        self.lane_wait.record(asked.elapsed());
        answer
    }

    /// Whether it answers at all. Asked past the line: a database with too much to do is not away.
    pub async fn ping(&self) -> Result<(), Error> {
        self.lanes.ping().await
    }

    /// A connection of one's own, for as long as it is held. When all are in use one waits in line for
    /// the next, unless the line is too long already.
    pub async fn connection(&self) -> Result<Connection, Error> {
        let at_once = Timeouts {
            wait: Some(Duration::ZERO),
            ..self.pool.timeouts()
        };
        let object = match self.pool.timeout_get(&at_once).await {
            Err(PoolError::Timeout(TimeoutType::Wait)) => {
                let place = self.line.enter(Instant::now())?;
                let object = self.pool.get().await;
                // Who has waited in vain has not been served.
                let in_vain = matches!(object, Err(PoolError::Timeout(TimeoutType::Wait)));
                self.pool_wait.record(if in_vain {
                    WAIT
                } else {
                    place.served(Instant::now())
                });
                object
            }
            at_once => {
                self.pool_wait.record(0.0);
                at_once
            }
        };
        Ok(Connection(object?))
    }

    /// Listens to what other instances say on a channel, and hands it to `on`.
    pub fn listen(
        &self,
        channel: &'static str,
        on: impl Fn(Heard<'_>) + Send + Sync + 'static,
    ) -> Feed {
        let address = self.address.clone().with_limits("feed");
        Feed::start(address, self.pool.clone(), channel, on)
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

/// A statement's span. The text is a constant of ours and holds no values.
pub(super) fn span(sql: &'static Sql) -> tracing::Span {
    tracing::debug_span!("sql", db.query.text = sql.text())
}

/// A connection of one's own.
pub struct Connection(Object);

impl Connection {
    /// Begins a transaction.
    pub fn begin(&mut self) -> Transaction<'_> {
        Transaction::new(&self.0)
    }

    /// All rows, outside any transaction.
    pub async fn query(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let rows = async {
            let statement = self.0.prepare_cached(sql.text()).await?;
            Ok(self.0.query(&statement, params).await?)
        };
        rows.instrument(span(sql)).await
    }
}

// Of all statements that are prepared on the connection, only for those of this transaction.
static PLANNED_ANEW: Sql = Sql::new("SET LOCAL plan_cache_mode = force_custom_plan");

impl Connection {
    /// All rows of a statement that is planned anew each time, knowing its values: for lists with filters, of which each
    /// combination wants another index. A transaction of its own, in one trip.
    pub async fn query_planned_anew(
        &mut self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let tx = self.begin();
        tx.write(&PLANNED_ANEW, &[]).await?;
        tx.query_last(sql, params).await
    }
}
