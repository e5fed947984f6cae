//! Pipelined connections, shared by all reads of a record by its key.
//!
//! A pooled connection serves one request at a time. Each read must borrow it and return it, which
//! costs two extra task switches in Tokio. A pipelined connection is shared: requests send their
//! queries without waiting for earlier responses, and PostgreSQL responds in order (measured: 0.6 of
//! the throughput of pgbench instead of 0.5; docs/decisions/0001-driver.md).
//!
//! A slow query delays all later ones on its connection. So these connections carry only reads by
//! key that take no lock, scan no table and set no session state.
//!
//! The setting `PERENNIAL_DATABASE_LANES`, the metrics and `application_name` call a pipelined
//! connection a "lane". A connection and its prepared statements ([`PipelinedConnection`]) are
//! replaced together, by one task per slot that reconnects until the [`PipelinedConnections`] are
//! dropped.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use tokio_postgres::{Client, Row, Statement, types::ToSql};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{ConnectOptions, Error, Sql, admission::AdmissionQueue, connect_options::MAX_LIFETIME};
use crate::randomness::jitter;

/// How long a read waits for a connection if none is open. Long enough for one that is being
/// replaced, short enough to fail fast when the database is down.
const ACQUIRE_TIMEOUT: Duration = Duration::from_millis(200);
/// How long an attempt to connect may take. A read waits as long for the first attempt of the process.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// A little more than the server's `statement_timeout`.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(6);
/// The pause between attempts to connect doubles from the first value up to the second.
const MIN_RECONNECT_INTERVAL: Duration = Duration::from_millis(20);
const MAX_RECONNECT_INTERVAL: Duration = Duration::from_millis(500);

static PING: Sql = Sql::new("SELECT true");

struct PipelinedConnection {
    client: Client,
    /// By the statement's [`Sql::key`].
    prepared: RwLock<HashMap<usize, Statement>>,
    /// The requests that wait for a response.
    queue: AdmissionQueue,
    /// Canceled when the connection must be replaced.
    broken: CancellationToken,
}

impl PipelinedConnection {
    async fn prepare(&self, sql: &'static Sql) -> Result<Statement, tokio_postgres::Error> {
        let key = sql.key();
        // A poisoned lock is safe to use: an insertion either happened or not.
        let cached = {
            let prepared = self.prepared.read().unwrap_or_else(PoisonError::into_inner);
            prepared.get(&key).cloned()
        };
        if let Some(statement) = cached {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql.text()).await?;
        self.prepared
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, statement.clone());
        Ok(statement)
    }

    async fn query(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.prepare(sql).await?;
        self.client.query(&statement, params).await
    }
}

/// Holds one connection; empty while it is being opened.
type ConnectionSlot = Arc<ArcSwapOption<PipelinedConnection>>;

/// All pipelined connections to one database.
pub struct PipelinedConnections {
    slots: Vec<ConnectionSlot>,
    next: AtomicUsize,
    /// Whether an attempt to connect has ended, successfully or not.
    was_tried: Arc<AtomicBool>,
    _stops_reconnecting_on_drop: DropGuard,
}

impl PipelinedConnections {
    /// Opens `count` connections and keeps them open.
    pub fn open(options: &ConnectOptions, count: usize) -> Self {
        let stop = CancellationToken::new();
        let slots: Vec<ConnectionSlot> = (0..count).map(|_| ConnectionSlot::default()).collect();
        let was_tried = Arc::<AtomicBool>::default();
        for slot in &slots {
            let (slot, was_tried) = (slot.clone(), was_tried.clone());
            tokio::spawn(keep_open(slot, options.clone(), was_tried, stop.clone()));
        }
        Self {
            slots,
            next: AtomicUsize::new(0),
            was_tried,
            _stops_reconnecting_on_drop: stop.drop_guard(),
        }
    }

    /// Checks that the database responds, bypassing the admission queue.
    pub async fn ping(&self) -> Result<(), Error> {
        let connection = self.acquire().await?;
        connection.query(&PING, &[]).await?;
        Ok(())
    }

    pub async fn query(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let mut is_retry = false;
        loop {
            let connection = self.acquire().await?;
            let queue_slot = connection.queue.enter(Instant::now())?;
            let query = connection.query(sql, params);
            let Ok(result) = tokio::time::timeout(RESPONSE_TIMEOUT, query).await else {
                connection.broken.cancel();
                return Err(Error::timed_out());
            };
            match result {
                Ok(rows) => {
                    queue_slot.served(Instant::now());
                    return Ok(rows);
                }
                // A read is idempotent: retry it once, on another connection.
                Err(error) if Error::is_lost_connection(&error) && !is_retry => {
                    connection.broken.cancel();
                    is_retry = true;
                }
                Err(error) => {
                    let error = Error::from(error);
                    if matches!(error, Error::Internal(_)) {
                        // The prepared statement may be stale; a new connection prepares it again.
                        connection.broken.cancel();
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Returns an open connection; waits up to [`ACQUIRE_TIMEOUT`] for one, but at least for the end of
    /// the first attempt to connect.
    async fn acquire(&self) -> Result<Arc<PipelinedConnection>, Error> {
        let started_at = Instant::now();
        loop {
            if let Some(connection) = self.pick() {
                return Ok(connection);
            }
            let limit = if self.was_tried.load(Ordering::Relaxed) {
                ACQUIRE_TIMEOUT
            } else {
                CONNECT_TIMEOUT
            };
            if started_at.elapsed() > limit {
                return Err(Error::Unavailable("no connection is open".to_owned()));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub fn count_open(&self) -> usize {
        self.slots
            .iter()
            .filter(|slot| slot.load().is_some())
            .count()
    }

    /// Picks an open connection round-robin. Skips those whose admission queue rejects requests,
    /// unless all do.
    fn pick(&self) -> Option<Arc<PipelinedConnection>> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let mut open = (0..self.slots.len())
            .filter_map(|offset| {
                self.slots
                    .get(first.wrapping_add(offset) % self.slots.len())
            })
            .filter_map(|slot| slot.load_full())
            .filter(|other| !other.client.is_closed() && !other.broken.is_cancelled());
        let next = open.next()?;
        let now = Instant::now();
        if next.queue.accepts(now) {
            return Some(next);
        }
        Some(open.find(|other| other.queue.accepts(now)).unwrap_or(next))
    }
}

/// Connects, publishes the connection in its slot, waits until it ends, and starts again.
async fn keep_open(
    slot: ConnectionSlot,
    options: ConnectOptions,
    was_tried: Arc<AtomicBool>,
    stop: CancellationToken,
) {
    let mut pause = MIN_RECONNECT_INTERVAL;
    loop {
        let opened = tokio::select! {
            opened = tokio::time::timeout(CONNECT_TIMEOUT, options.connect()) => opened,
            () = stop.cancelled() => return,
        };
        match opened.unwrap_or_else(|_| Err(Error::timed_out())) {
            Ok((client, connection)) => {
                pause = MIN_RECONNECT_INTERVAL;
                let broken = CancellationToken::new();
                slot.store(Some(Arc::new(PipelinedConnection {
                    client,
                    prepared: RwLock::default(),
                    queue: AdmissionQueue::new("lane"),
                    broken: broken.clone(),
                })));
                was_tried.store(true, Ordering::Relaxed);
                tokio::select! {
                    ended = connection => if let Err(error) = ended {
                        tracing::warn!(error = %Error::from(error), "lost a pipelined connection to the database");
                    },
                    () = broken.cancelled() => {
                        tracing::warn!("replacing a broken pipelined connection to the database");
                    }
                    () = tokio::time::sleep(jitter(MAX_LIFETIME)) => {
                        tracing::debug!("replacing an old pipelined connection to the database");
                    }
                    () = stop.cancelled() => return,
                }
                slot.store(None);
            }
            Err(error) => {
                was_tried.store(true, Ordering::Relaxed);
                tracing::debug!(%error, "cannot open a pipelined connection to the database");
                tokio::time::sleep(jitter(pause)).await;
                pause = (pause * 2).min(MAX_RECONNECT_INTERVAL);
            }
        }
    }
}
