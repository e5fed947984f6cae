//! Finds and revokes sessions.
//!
//! Every request with an access token checks its session. A revoked session must be rejected
//! immediately by the instance that revoked it, and within a second by all others. Active sessions
//! are cached, but the cache is used only while the [`NotificationListener`] is caught up with the
//! revocations of other instances; otherwise each check reads the database. [`revoke`](revoke())
//! sends the notification in the transaction that revokes the session.
//!
//! A check also updates the session's row when a new generation of tokens is first used, and the
//! time of last use once a minute.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use axum::body::Bytes;
use jiff::Timestamp;
use metrics::Counter;
use perennial_domain::{Id, Session, SessionId, TenantId, User};

mod revoke;
mod session_cache;
pub mod table;

pub use revoke::{RevokeReason, revoke};

use session_cache::SessionCache;

use super::{Tenant, tokens::VerifiedToken};
use crate::db::{CellDatabase, Databases, Error, Notification, NotificationListener};

/// An active session with its user.
#[derive(Debug, Clone)]
pub struct UserSession {
    pub user: User,
    pub session: Session,
    rendered: OnceLock<Bytes>,
}

impl UserSession {
    fn new(user: User, session: Session) -> Self {
        Self {
            user,
            session,
            rendered: OnceLock::new(),
        }
    }

    /// Returns the session as JSON, rendered on first use.
    ///
    /// Hot path: cached with the session (measured: without it, a session check of a debug build
    /// has 550,000 instead of 330,000 instructions).
    pub fn rendered<E>(&self, render: impl FnOnce() -> Result<Vec<u8>, E>) -> Result<Bytes, E> {
        if let Some(json) = self.rendered.get() {
            return Ok(json.clone());
        }
        let json = render()?;
        Ok(self.rendered.get_or_init(|| json.into()).clone())
    }
}

/// Finds active sessions, in the cache or the database.
pub struct SessionStore {
    db: Arc<Databases>,
    /// Caches by cell; empty until [`SessionStore::start_listening`].
    cells: OnceLock<BTreeMap<String, CellSessions>>,
    /// Sessions whose last use is being written.
    touching: Mutex<HashSet<SessionId>>,
    cache_hits: Counter,
    database_reads: Counter,
}

/// The cache of a cell's sessions, and the listener that invalidates it.
struct CellSessions {
    cache: Arc<SessionCache>,
    listener: NotificationListener,
}

impl SessionStore {
    /// Creates a store without caches.
    pub fn new(db: Arc<Databases>) -> Self {
        let checks =
            |by: &'static str| metrics::counter!("perennial_session_checks_total", "by" => by);
        Self {
            cache_hits: checks("memory"),
            database_reads: checks("database"),
            db,
            cells: OnceLock::new(),
            touching: Mutex::default(),
        }
    }

    /// Starts listening for revoked sessions, which enables the caches.
    pub fn start_listening(&self) {
        self.cells.get_or_init(|| {
            let listen = |(cell, database): (&str, &CellDatabase)| {
                let cache = Arc::new(SessionCache::new());
                let listener_cache = cache.clone();
                let listener =
                    database.listen(table::CHANNEL, move |notification| match notification {
                        Notification::Payload(session) => match session.parse() {
                            Ok(session) => listener_cache.invalidate(session),
                            Err(_) => listener_cache.invalidate_all(),
                        },
                        Notification::MaybeMissed => listener_cache.invalidate_all(),
                    });
                (cell.to_owned(), CellSessions { cache, listener })
            };
            self.db.databases().map(listen).collect()
        });
    }

    fn cell(&self, tenant: &Tenant) -> Option<&CellSessions> {
        self.cells.get()?.get(&tenant.cell)
    }

    /// Returns the session of a token if it is active.
    pub async fn find_active(
        &self,
        tenant: &Tenant,
        token: &VerifiedToken,
        now: Timestamp,
    ) -> Result<Option<Arc<UserSession>>, Error> {
        let cell = self.cell(tenant);
        let cached = cell
            .filter(|cell| cell.listener.is_caught_up())
            .and_then(|cell| cell.cache.get(tenant.id, token.session));
        if let Some(found) = cached
            && found.user.id == token.user
            && found.session.is_active(now)
            // A newer generation than the cached one: the session was refreshed elsewhere.
            && token.generation <= found.session.generation
            && !found.session.needs_touch(token.generation, now)
        {
            self.cache_hits.increment(1);
            return Ok(Some(found));
        }
        // Hot path: boxed, so that the rarely used future does not enlarge every request's future
        // (measured: session check −7,000 instructions for all such boxes).
        Box::pin(self.load_active(cell, tenant, token, now)).await
    }

    /// Reads the session from the database and caches it if it is active.
    async fn load_active(
        &self,
        cell: Option<&CellSessions>,
        tenant: &Tenant,
        token: &VerifiedToken,
        now: Timestamp,
    ) -> Result<Option<Arc<UserSession>>, Error> {
        self.database_reads.increment(1);
        // Started before the read. Without a listener, a revocation during the read could be missed,
        // so the result is not cached.
        let lookup = cell
            .map(|cell| (cell, cell.cache.start_lookup(tenant.id, token.session)))
            .filter(|(cell, _)| cell.listener.is_listening());
        let database = self.db.cell(&tenant.cell)?;
        let Some(row) = table::find(database, tenant.id, token.session).await? else {
            return Ok(None);
        };
        let mut session = row.session;
        if !session.is_active(now) || row.user.id != token.user {
            return Ok(None);
        }
        if session.needs_touch(token.generation, now) {
            self.touch(database, tenant.id, &mut session, token, now)
                .await?;
            if !session.is_active(now) {
                return Ok(None);
            }
        }
        let found = Arc::new(UserSession::new(row.user, session));
        if let Some((cell, lookup)) = lookup {
            cell.cache.insert_if_unchanged(&lookup, found.clone());
        }
        Ok(Some(found))
    }

    /// Writes that a session was used. The first use of a generation is always written. Of
    /// concurrent requests, only one writes the time of last use. A failure to write that time does
    /// not fail the request.
    async fn touch(
        &self,
        database: &CellDatabase,
        tenant: TenantId,
        session: &mut Session,
        token: &VerifiedToken,
        now: Timestamp,
    ) -> Result<(), Error> {
        let generation = token.generation.min(session.generation);
        let is_first_use = session.confirmed < generation;
        let guard = self.start_touch(session.id);
        if guard.is_none() && !is_first_use {
            return Ok(());
        }
        let write = async {
            let connection = database.connection().await?;
            table::touch(&connection, tenant, session.id, generation, now).await
        };
        let written = match write.await {
            Err(Error::Unavailable(_) | Error::Busy(_)) if !is_first_use => return Ok(()),
            result => result?,
        };
        match written {
            Some((confirmed, last_used_at)) => {
                session.confirmed = confirmed;
                session.last_used_at = last_used_at;
            }
            // The session was revoked after it was read.
            None => session.ended_at = Some(now),
        }
        Ok(())
    }

    fn start_touch(&self, session: SessionId) -> Option<TouchGuard<'_>> {
        let mut touching = self.touching.lock().unwrap_or_else(PoisonError::into_inner);
        // Not `then_some`: dropping the unused guard would lock the mutex that is held here.
        touching.insert(session).then(|| TouchGuard(self, session))
    }

    /// Removes sessions from this instance's cache.
    pub fn invalidate(&self, tenant: &Tenant, sessions: &[SessionId]) {
        if let Some(cell) = self.cell(tenant) {
            for session in sessions {
                cell.cache.invalidate(session.uuid());
            }
        }
    }
}

/// Marks a session whose last use is being written.
struct TouchGuard<'a>(&'a SessionStore, SessionId);

impl Drop for TouchGuard<'_> {
    fn drop(&mut self) {
        let touching = self.0.touching.lock();
        touching
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.1);
    }
}
