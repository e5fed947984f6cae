//! Finds and revokes sessions.
//!
//! Every request with an access token checks its session. A revoked session must be rejected
//! immediately by the instance that revoked it, and within a second by all others. Active sessions
//! are cached, but the cache is used only while the [`NotificationListener`] is caught up with the
//! revocations of other instances; otherwise each check reads the database. [`revoke`](revoke())
//! sends the notification in the transaction that revokes the session. A [`watermark`] revokes any
//! number of sessions with one row and one notification.
//!
//! A check responds from memory. It stores the first use of a new generation of tokens before the
//! response, and the time of last use once a minute, later and together with other sessions. Checks
//! that must read or write the database at the same time share statements; see [`CellSessions`].

use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::body::Bytes;
use jiff::Timestamp;
use metrics::Counter;
use perennial_domain::{Id, Session, SessionId, SessionLifetimes, SessionUser};

pub mod carried_sql;
mod cell_sessions;
mod cleanup;
mod last_uses;
pub mod refresh_sql;
mod revoke;
mod session_cache;
pub mod table;
mod touch_sql;
pub mod user_sessions_sql;
mod watermark;
pub mod watermark_sql;

pub use cleanup::{delete_inactive, end_revoked};
pub use revoke::{RevokeReason, RevokedSessions, revoke, revoke_for_user, set_watermark};
pub use watermark::{SessionScope, Watermark};

use cell_sessions::CellSessions;

use super::{Tenant, tokens::VerifiedToken};
use crate::db::{Databases, Error};

/// The longest time to store pending times of last use when the process stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// An active session with its user.
#[derive(Debug)]
pub struct UserSession {
    pub user: SessionUser,
    pub session: Session,
    /// The order of sign-ins and watermarks in a cell.
    number: i64,
    /// The tenant's settings that `session.expires_at` follows.
    lifetimes: SessionLifetimes,
    rendered: OnceLock<Bytes>,
    /// The epoch of the cache in which the session was last known to be active.
    cache_epoch: AtomicU64,
}

impl UserSession {
    fn new(user: SessionUser, session: Session, number: i64, lifetimes: SessionLifetimes) -> Self {
        Self {
            user,
            session,
            number,
            lifetimes,
            rendered: OnceLock::new(),
            cache_epoch: AtomicU64::new(0),
        }
    }

    /// Returns a copy that was last used at `now`, in the same epoch.
    fn used_at(&self, now: Timestamp) -> Self {
        let session = Session {
            last_used_at: now,
            ..self.session.clone()
        };
        let copy = Self::new(self.user.clone(), session, self.number, self.lifetimes);
        let epoch = self.cache_epoch.load(Ordering::Relaxed);
        copy.cache_epoch.store(epoch, Ordering::Relaxed);
        copy
    }

    /// Returns the session as JSON, rendered on first use.
    ///
    /// Hot path: cached with the session (measured: without it, a session check of a debug build
    /// has 550,000 instead of 330,000 instructions).
    pub fn rendered<E>(&self, render: impl FnOnce() -> Result<Vec<u8>, E>) -> Result<Bytes, E> {
        if let Some(json) = self.rendered.get() {
            return Ok(json.clone());
        }
        // Copied, because the vector has up to twice the size of its contents.
        let json = Bytes::copy_from_slice(&render()?);
        Ok(self.rendered.get_or_init(|| json).clone())
    }
}

/// Finds active sessions, in the cache or the database.
pub struct SessionStore {
    cells: BTreeMap<String, CellSessions>,
    cache_hits: Counter,
    database_reads: Counter,
}

impl SessionStore {
    /// Creates a store that caches up to `cache_entries` sessions per cell, once it is started.
    pub fn new(db: &Arc<Databases>, cache_entries: usize) -> Self {
        let checks =
            |by: &'static str| metrics::counter!("perennial_session_checks_total", "by" => by);
        let cell = |name: &str| {
            let sessions = CellSessions::new(db.clone(), name, cache_entries);
            (name.to_owned(), sessions)
        };
        Self {
            cells: db.cell_names().map(cell).collect(),
            cache_hits: checks("memory"),
            database_reads: checks("database"),
        }
    }

    /// Starts listening for revoked sessions, which enables the caches, and storing times of last
    /// use.
    pub fn start(&self) {
        self.cells.values().for_each(CellSessions::start);
    }

    /// Stores the pending times of last use, before the process stops.
    pub async fn store_last_uses(&self) {
        for (cell, sessions) in &self.cells {
            let stored = tokio::time::timeout(STOP_TIMEOUT, sessions.store_last_uses()).await;
            if !matches!(stored, Ok(Ok(()))) {
                tracing::warn!(cell, "could not store when some sessions were last used");
            }
        }
    }

    /// Returns the name of each cell and the number of its cached sessions.
    pub fn cached_sessions(&self) -> impl Iterator<Item = (&str, usize)> {
        let cells = self.cells.iter();
        cells.map(|(cell, sessions)| (cell.as_str(), sessions.cache.len()))
    }

    /// Returns the name of each cell that is listened to, and whether its notifications arrive.
    pub fn caught_up_cells(&self) -> impl Iterator<Item = (&str, bool)> {
        let cells = self.cells.iter();
        cells.filter_map(|(cell, sessions)| Some((cell.as_str(), sessions.is_caught_up()?)))
    }

    /// Returns the session of a token if it is active.
    pub async fn find_active(
        &self,
        tenant: &Tenant,
        token: &VerifiedToken,
        now: Timestamp,
    ) -> Result<Option<Arc<UserSession>>, Error> {
        let cell = self.cells.get(&tenant.cell);
        let cell = cell.ok_or_else(|| Error::unknown_cell(&tenant.cell))?;
        if let Some(found) = cell.cached(tenant.id, token.session)
            && found.user.id == token.user
            && found.session.is_active(now)
            && found.lifetimes == tenant.session_lifetimes
            // A newer generation than the cached one: the session was refreshed elsewhere.
            && token.generation <= found.session.generation
            && !found.session.needs_confirmation(token.generation)
        {
            self.cache_hits.increment(1);
            return Ok(Some(if found.session.needs_touch(now) {
                cell.record_use(tenant.id, &found, now)
            } else {
                found
            }));
        }
        self.database_reads.increment(1);
        // Hot path: boxed, so that the rarely used future does not enlarge every request's future
        // (measured: session check −7,000 instructions for all such boxes).
        Box::pin(cell.load_active(tenant, token, now)).await
    }

    /// Ends the sessions of a watermark in this instance's cache.
    pub fn apply_watermark(&self, tenant: &Tenant, watermark: &Watermark) {
        if let Some(cell) = self.cells.get(&tenant.cell) {
            cell.cache.apply_watermark(watermark);
        }
    }

    /// Removes sessions from this instance's cache.
    pub fn invalidate(&self, tenant: &Tenant, sessions: &[SessionId]) {
        if let Some(cell) = self.cells.get(&tenant.cell) {
            for session in sessions {
                cell.cache.invalidate(session.uuid());
            }
        }
    }
}
