//! Lanes: a few connections that all point reads share.
//!
//! A connection from the pool serves one request at a time, so each read pays two trips through the
//! scheduler to borrow and return it. A lane is shared: requests write their question behind each
//! other without waiting for answers, and PostgreSQL answers them in order. Measured beside the
//! bare engine that is a fifth faster.
//!
//! The price: a slow answer holds up those behind it. So lanes carry only lock-free reads by key;
//! nothing that waits, scans, or sets session state.
//!
//! A lane's connection and its prepared statements are one thing ([`Session`]) and are replaced
//! together, by a task per lane that reconnects for as long as the engine lives.

use std::{
    collections::HashMap,
    sync::{
        Arc, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use tokio_postgres::{Client, Row, Statement, types::ToSql};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Address, Error, LIFETIME, Sql, line::Line};
use crate::randomness::varied;

/// How long a read waits for a lane when none is open: long enough for one that is being replaced,
/// short enough that a database that is away is told at once.
const LANE_TIMEOUT: Duration = Duration::from_millis(200);
/// How long opening a lane may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(3);
/// How long an answer may take; a little more than the server's own statement time-out.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(6);
/// How long to wait between attempts to reconnect: this at first, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

static PING: Sql = Sql::new("SELECT true");

/// A connection and what was prepared on it.
struct Session {
    client: Client,
    prepared: RwLock<HashMap<usize, Statement>>,
    /// Who waits for an answer. PostgreSQL answers in order, so those are behind each other.
    line: Line,
    /// Cancelled when the session is not to be used any more.
    broken: CancellationToken,
}

impl Session {
    async fn statement(&self, sql: &'static Sql) -> Result<Statement, tokio_postgres::Error> {
        let known = |prepared: &HashMap<_, _>| prepared.get(&sql.address()).cloned();
        // A poisoned lock still holds a good map: nothing panics between its changes.
        let found = known(
            &self
                .prepared
                .read()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        if let Some(statement) = found {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql.text()).await?;
        self.prepared
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .insert(sql.address(), statement.clone());
        Ok(statement)
    }

    async fn query(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.statement(sql).await?;
        self.client.query(&statement, params).await
    }
}

type Lane = Arc<ArcSwapOption<Session>>;

/// All lanes to one database.
pub struct Lanes {
    all: Vec<Lane>,
    next: AtomicUsize,
    _keepers_stop_on_drop: DropGuard,
}

impl Lanes {
    /// Opens `count` lanes, and keeps them open.
    pub fn open(address: &Address, count: usize) -> Self {
        let stop = CancellationToken::new();
        let all: Vec<Lane> = (0..count).map(|_| Lane::default()).collect();
        for lane in &all {
            tokio::spawn(keep_open(lane.clone(), address.clone(), stop.clone()));
        }
        Self {
            all,
            next: AtomicUsize::new(0),
            _keepers_stop_on_drop: stop.drop_guard(),
        }
    }

    /// Whether a lane answers, past the line of those who wait.
    pub async fn ping(&self) -> Result<(), Error> {
        let session = self.open_lane().await?;
        session.query(&PING, &[]).await?;
        Ok(())
    }

    /// The rows that `sql` finds by a key.
    pub async fn query(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let mut asked_before = false;
        loop {
            let session = self.open_lane().await?;
            let place = session.line.enter(Instant::now())?;
            let answer = tokio::time::timeout(ANSWER_TIMEOUT, session.query(sql, params)).await;
            let Ok(answer) = answer else {
                session.broken.cancel();
                return Err(Error::Unavailable("no answer in time".to_owned()));
            };
            match answer {
                Ok(rows) => {
                    place.served(Instant::now());
                    return Ok(rows);
                }
                // A read can be asked again: once, on another lane.
                Err(error) if Error::is_lost_connection(&error) && !asked_before => {
                    session.broken.cancel();
                    asked_before = true;
                }
                Err(error) => {
                    let error = Error::from(error);
                    if matches!(error, Error::Failed(_)) {
                        // Whatever the server thinks of our statement, a fresh session prepares it anew.
                        session.broken.cancel();
                    }
                    return Err(error);
                }
            }
        }
    }

    /// A lane that is open now, or within a moment.
    async fn open_lane(&self) -> Result<Arc<Session>, Error> {
        let begun = Instant::now();
        loop {
            if let Some(session) = self.pick() {
                return Ok(session);
            }
            if begun.elapsed() > LANE_TIMEOUT {
                return Err(Error::Unavailable("no connection is open".to_owned()));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// How many lanes are open.
    pub fn count_open(&self) -> usize {
        self.all.iter().filter(|lane| lane.load().is_some()).count()
    }

    /// An open lane, each in its turn; one whose answers do not come only if all are like that.
    fn pick(&self) -> Option<Arc<Session>> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let mut open = (0..self.all.len())
            .filter_map(|offset| self.all.get((turn.wrapping_add(offset)) % self.all.len()))
            .filter_map(|lane| lane.load_full())
            .filter(|session| !session.client.is_closed() && !session.broken.is_cancelled());
        let next = open.next()?;
        let now = Instant::now();
        if next.line.is_open(now) {
            return Some(next);
        }
        Some(open.find(|other| other.line.is_open(now)).unwrap_or(next))
    }
}

/// Connects, publishes the session, waits for its end, and begins again.
async fn keep_open(lane: Lane, address: Address, stop: CancellationToken) {
    let mut pause = FIRST_PAUSE;
    loop {
        let opened = tokio::select! {
            opened = tokio::time::timeout(OPEN_TIMEOUT, address.open()) => opened,
            () = stop.cancelled() => return,
        };
        match opened.unwrap_or_else(|_| Err(Error::Unavailable("no answer in time".to_owned()))) {
            Ok((client, connection)) => {
                pause = FIRST_PAUSE;
                let broken = CancellationToken::new();
                lane.store(Some(Arc::new(Session {
                    client,
                    prepared: RwLock::default(),
                    line: Line::new("lane"),
                    broken: broken.clone(),
                })));
                tokio::select! {
                    ended = connection => if let Err(error) = ended {
                        tracing::warn!(error = %Error::from(error), "lost a lane to the database");
                    },
                    () = broken.cancelled() => tracing::warn!("replacing a lane to the database"),
                    () = tokio::time::sleep(varied(LIFETIME)) => tracing::debug!("renewing a lane"),
                    () = stop.cancelled() => return,
                }
                lane.store(None);
            }
            Err(error) => {
                tracing::debug!(%error, "cannot open a lane to the database");
                tokio::time::sleep(varied(pause)).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}
