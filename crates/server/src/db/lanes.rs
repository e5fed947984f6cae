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
    time::Duration,
};

use arc_swap::ArcSwapOption;
use tokio_postgres::{Client, Row, Statement, types::ToSql};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Address, Error, Sql};

/// How long an answer may take; a little more than the server's own statement time-out.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(6);
/// How long to wait between attempts to reconnect: this at first, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A connection and what was prepared on it.
struct Session {
    client: Client,
    prepared: RwLock<HashMap<usize, Statement>>,
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

    async fn query_opt(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Error> {
        let statement = self.statement(sql).await?;
        Ok(self.client.query_opt(&statement, params).await?)
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

    /// The row that `sql` finds by its key, if there is one.
    pub async fn query_opt(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Error> {
        // A lane may have been lost a moment ago; a read can be asked again on another one.
        let mut last = Error::Unavailable("no connection is open".to_owned());
        for _ in 0..2 {
            let Some(session) = self.pick() else { break };
            match tokio::time::timeout(ANSWER_TIMEOUT, session.query_opt(sql, params)).await {
                Ok(Err(error)) if session.client.is_closed() => last = error,
                Ok(Err(error @ Error::Unavailable(_))) => return Err(error),
                Ok(Err(error)) => {
                    // Whatever the server thinks of our statement, a fresh session prepares it anew.
                    session.broken.cancel();
                    return Err(error);
                }
                Ok(answer) => return answer,
                Err(_) => {
                    session.broken.cancel();
                    return Err(Error::Unavailable("no answer in time".to_owned()));
                }
            }
        }
        Err(last)
    }

    /// How many lanes are open.
    pub fn count_open(&self) -> usize {
        self.all.iter().filter(|lane| lane.load().is_some()).count()
    }

    /// An open lane, each in its turn.
    fn pick(&self) -> Option<Arc<Session>> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        (0..self.all.len())
            .filter_map(|offset| self.all.get((turn.wrapping_add(offset)) % self.all.len()))
            .filter_map(|lane| lane.load_full())
            .find(|session| !session.client.is_closed() && !session.broken.is_cancelled())
    }
}

/// Connects, publishes the session, waits for its end, and begins again.
#[expect(
    clippy::disallowed_methods,
    reason = "this is `db`, the one place that connects"
)]
async fn keep_open(lane: Lane, address: Address, stop: CancellationToken) {
    let mut pause = FIRST_PAUSE;
    while !stop.is_cancelled() {
        match address.config.connect(address.tls.clone()).await {
            Ok((client, connection)) => {
                pause = FIRST_PAUSE;
                let broken = CancellationToken::new();
                lane.store(Some(Arc::new(Session {
                    client,
                    prepared: RwLock::default(),
                    broken: broken.clone(),
                })));
                tokio::select! {
                    ended = connection => if let Err(error) = ended {
                        tracing::warn!(error = %Error::from(error), "lost a lane to the database");
                    },
                    () = broken.cancelled() => tracing::warn!("replacing a lane to the database"),
                    () = stop.cancelled() => {}
                }
                lane.store(None);
            }
            Err(error) => {
                tracing::debug!(error = %Error::from(error), "cannot open a lane to the database");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}
