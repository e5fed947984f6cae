//! Times of last use that have not been stored yet.
//!
//! A session check responds from memory and adds its time here. A task stores the times every two
//! seconds, with one statement for up to 200 sessions. A crash loses the times that are not
//! stored. Nothing else depends on them: not the expiry of a session, and not the detection of
//! theft.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use tokio::time::{sleep, timeout};

use super::{
    table::SessionKey,
    touch_sql::{self, SessionUse, StoredUse},
};
use crate::{
    db::{Databases, Error},
    randomness::jitter,
};

const STORE_INTERVAL: Duration = Duration::from_secs(2);
/// The largest number of sessions of a statement, which holds the locks of their rows for a few
/// milliseconds.
const MAX_ROWS: usize = 200;
/// Further times are dropped. The cache already has them, so that they are stored a minute later.
const MAX_PENDING: usize = 200_000;
/// After a full statement, the task pauses for three times its duration, so that it is busy at most
/// a quarter of the time.
const PAUSE_FACTOR: u32 = 3;
/// A little more than the server's `statement_timeout`.
const STORE_TIMEOUT: Duration = Duration::from_secs(6);

/// The pending times of last use of a cell's sessions.
pub(super) struct LastUses {
    db: Arc<Databases>,
    cell: String,
    pending: Mutex<BTreeMap<SessionKey, Timestamp>>,
    /// Held while times are stored that are no longer in `pending`.
    storing: tokio::sync::Mutex<()>,
}

impl LastUses {
    pub(super) fn new(db: Arc<Databases>, cell: String) -> Self {
        Self {
            db,
            cell,
            pending: Mutex::default(),
            storing: tokio::sync::Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionKey, Timestamp>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a time of last use.
    pub(super) fn add(&self, key: SessionKey, at: Timestamp) {
        let mut pending = self.lock();
        if pending.len() < MAX_PENDING {
            pending.insert(key, at);
        }
    }

    /// Stores pending times every [`STORE_INTERVAL`]. Never returns.
    pub(super) async fn run(self: Arc<Self>) {
        loop {
            sleep(jitter(STORE_INTERVAL)).await;
            loop {
                let started_at = Instant::now();
                match self.store_batch().await {
                    Ok(MAX_ROWS) => sleep(started_at.elapsed() * PAUSE_FACTOR).await,
                    Ok(_) => break,
                    Err(error) => {
                        tracing::debug!(%error, "cannot store the last use of sessions; retrying");
                        break;
                    }
                }
            }
        }
    }

    /// Stores all pending times, without pauses.
    pub(super) async fn store_all(&self) -> Result<(), Error> {
        while self.store_batch().await? > 0 {}
        Ok(())
    }

    /// Stores up to [`MAX_ROWS`] times and returns their number. If the database is unavailable,
    /// they are pending again.
    async fn store_batch(&self) -> Result<usize, Error> {
        let _storing = self.storing.lock().await;
        let batch: Vec<SessionUse> = {
            let mut pending = self.lock();
            let first = std::iter::from_fn(|| pending.pop_first());
            let to_use = |(key, at)| SessionUse {
                key,
                generation: 0,
                at,
            };
            first.take(MAX_ROWS).map(to_use).collect()
        };
        if batch.is_empty() {
            return Ok(0);
        }
        if let Err(error) = store(&self.db, &self.cell, &batch).await {
            match &error {
                Error::Unavailable(_) | Error::Busy(_) => self.add_again(&batch),
                _ => tracing::error!(%error, "cannot store the last use of sessions"),
            }
            return Err(error);
        }
        Ok(batch.len())
    }

    fn add_again(&self, batch: &[SessionUse]) {
        let mut pending = self.lock();
        for one in batch {
            pending.entry(one.key).or_insert(one.at);
        }
    }
}

/// Stores uses of different sessions in one statement. Returns those that were stored.
pub(super) async fn store(
    db: &Databases,
    cell: &str,
    uses: &[SessionUse],
) -> Result<Vec<(SessionKey, StoredUse)>, Error> {
    let store = async {
        let connection = db.cell(cell)?.connection().await?;
        touch_sql::touch_many(&connection, uses).await
    };
    let timed_out = |_| Error::Unavailable("no response in time".to_owned());
    timeout(STORE_TIMEOUT, store).await.map_err(timed_out)?
}
