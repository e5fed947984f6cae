//! One PostgreSQL database: a connection pool for writes, lists and transactions, and pipelined
//! connections for reads by key.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType,
    Timeouts,
};
use metrics::Histogram;
use tokio::task::JoinSet;
use tokio_postgres::{Row, types::ToSql};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use super::{
    ConnectOptions, Error, Notification, NotificationListener, PooledConnection, Sql,
    admission::AdmissionQueue, connect_options::MAX_LIFETIME, notify::NotificationSession,
    pipelined::PipelinedConnections,
};
use crate::randomness::jitter;

/// The longest wait for a pooled connection. Admission control rejects requests that would wait for
/// longer than 200 ms; this limit applies when no connection is returned at all.
const POOL_TIMEOUT: Duration = Duration::from_millis(1_500);

/// The number of pooled connections that are opened at startup.
const INITIAL_CONNECTIONS: usize = 8;

/// The number of connections that requests do not use: one for the sequencer of the event log, which keeps it, and one
/// for metrics.
const BACKGROUND_CONNECTIONS: usize = 2;

/// A plan that was made when a partition was empty scans it as a whole. The sequencer keeps its plans for long, and most
/// of its statements find little in large tables.
const WITHOUT_SEQUENTIAL_SCANS: &str = "-c enable_seqscan=off";

/// The maximum number of connections to one database.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    pub pool: usize,
    pub pipelined: usize,
}

/// One database. Connects in the background and reconnects when needed, so it can be created while
/// PostgreSQL is unreachable.
pub struct CellDatabase {
    cell: String,
    options: ConnectOptions,
    pool: Pool,
    background_pool: Pool,
    pool_queue: AdmissionQueue,
    pipelined: PipelinedConnections,
    pool_wait: Histogram,
    pipelined_wait: Histogram,
    /// Opened by the first listener.
    notifications: OnceLock<NotificationSession>,
    _stops_cleanup_on_drop: DropGuard,
}

/// Closes idle pooled connections that have reached their lifetime.
async fn close_old_connections(pool: Pool) {
    loop {
        tokio::time::sleep(Duration::from_mins(1)).await;
        pool.retain(|_, connection| connection.age() < jitter(MAX_LIFETIME));
    }
}

fn build_pool(options: &ConnectOptions, purpose: &str, size: usize) -> anyhow::Result<Pool> {
    let options = options.clone().with_session_limits(purpose);
    let config = ManagerConfig {
        // No session state needs a reset: none is set, and the driver has queued a ROLLBACK for
        // each transaction that was dropped.
        recycling_method: RecyclingMethod::Fast,
    };
    let pool = Pool::builder(Manager::from_config(options.config, options.tls, config))
        .max_size(size)
        .wait_timeout(Some(POOL_TIMEOUT))
        .create_timeout(Some(Duration::from_secs(3)))
        .recycle_timeout(Some(POOL_TIMEOUT))
        .runtime(Runtime::Tokio1)
        .build()?;
    Ok(pool)
}

impl CellDatabase {
    /// Starts connecting to the database of this cell.
    pub fn start(
        cell: &str,
        options: &ConnectOptions,
        limits: ConnectionLimits,
    ) -> anyhow::Result<Self> {
        let pool = build_pool(options, "pool", limits.pool)?;
        let pipelined_options = options.clone().with_session_limits("lane");
        let pipelined = PipelinedConnections::open(&pipelined_options, limits.pipelined);
        let stop = CancellationToken::new();
        let cleanup = close_old_connections(pool.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(cleanup));
        let wait_histogram = |way: &'static str| {
            let cell = cell.to_owned();
            metrics::histogram!("perennial_database_wait_seconds", "cell" => cell, "way" => way)
        };
        Ok(Self {
            cell: cell.to_owned(),
            options: options.clone(),
            pool,
            // Opens a connection when it is first used.
            background_pool: build_pool(
                &options.clone().with_options(WITHOUT_SEQUENTIAL_SCANS),
                "background",
                BACKGROUND_CONNECTIONS,
            )?,
            pool_queue: AdmissionQueue::new("connection"),
            pipelined,
            pool_wait: wait_histogram("pool"),
            pipelined_wait: wait_histogram("lane"),
            notifications: OnceLock::new(),
            _stops_cleanup_on_drop: stop.drop_guard(),
        })
    }

    /// Reads at most one record by its key over a pipelined connection. The statement must take no
    /// lock and use an index, because a slow one delays all others on that connection.
    pub async fn read(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Error> {
        Ok(self.read_all(sql, params).await?.pop())
    }

    /// Reads the few records of one key, or up to 200 records by their keys, over a pipelined
    /// connection, under the rules of [`CellDatabase::read`].
    pub async fn read_all(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let started_at = Instant::now();
        let result = self.pipelined.query(sql, params);
        let result = result.instrument(sql.span()).await;
        self.pipelined_wait.record(started_at.elapsed());
        result
    }

    /// Checks that the database responds. Bypasses admission control, because an overloaded database
    /// is not down.
    pub async fn ping(&self) -> Result<(), Error> {
        self.pipelined.ping().await
    }

    /// Borrows a connection from the pool. Waits if all are in use, unless admission control rejects
    /// the request.
    pub async fn connection(&self) -> Result<PooledConnection, Error> {
        let without_waiting = Timeouts {
            wait: Some(Duration::ZERO),
            ..self.pool.timeouts()
        };
        let connection = match self.pool.timeout_get(&without_waiting).await {
            Err(PoolError::Timeout(TimeoutType::Wait)) => {
                let slot = self.pool_queue.enter(Instant::now())?;
                let connection = self.pool.get().await;
                let timed_out = matches!(connection, Err(PoolError::Timeout(TimeoutType::Wait)));
                self.pool_wait.record(if timed_out {
                    POOL_TIMEOUT
                } else {
                    slot.served(Instant::now())
                });
                connection
            }
            connection => {
                self.pool_wait.record(0.0);
                connection
            }
        };
        Ok(PooledConnection(connection?))
    }

    /// Opens the first pooled connections, so that the first writes after a restart do not wait for them.
    pub(super) async fn open_pool(&self) {
        let count = INITIAL_CONNECTIONS.min(self.pool.status().max_size);
        let pools = (0..count).map(|_| self.pool.clone());
        let opening: JoinSet<_> = pools.map(|pool| async move { pool.get().await }).collect();
        // All are held until the last is open: one that is returned earlier would be borrowed again.
        drop(opening.join_all().await);
    }

    /// Borrows a connection that requests do not use. Bypasses admission control and its metrics.
    pub async fn background_connection(&self) -> Result<PooledConnection, Error> {
        let connection = self.background_pool.get().await?;
        if Object::metrics(&connection).age() < MAX_LIFETIME {
            return Ok(PooledConnection(connection));
        }
        // Closes it.
        drop(Object::take(connection));
        Ok(PooledConnection(self.background_pool.get().await?))
    }

    /// Returns the name of the cell.
    pub fn cell(&self) -> &str {
        &self.cell
    }

    /// Listens to a channel and passes each notification to `on_notification`, which must not block,
    /// for as long as this database is in use.
    pub fn listen(
        &self,
        channel: &'static str,
        on_notification: impl Fn(Notification<'_>) + Send + Sync + 'static,
    ) -> NotificationListener {
        let session = self.notifications.get_or_init(|| {
            let options = self.options.clone().with_session_limits("feed");
            NotificationSession::start(options, self.pool.clone())
        });
        session.listen(channel, on_notification)
    }

    /// Returns the number of open pooled connections and how many of them are idle.
    pub fn pool_status(&self) -> (usize, usize) {
        let status = self.pool.status();
        (status.size, status.available)
    }

    pub fn open_pipelined_connections(&self) -> usize {
        self.pipelined.count_open()
    }
}
