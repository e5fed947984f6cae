//! The sessions of one cell, which is one of the databases that tenants are spread over: their
//! cache, and the statements that checks share.
//!
//! - Lookups of sessions that are not cached are batched, so that an instance that starts under
//!   full load sends few queries.
//! - The first use of a generation is stored before the response, because it decides whether a
//!   later use of the previous refresh token is theft. Concurrent first uses are stored together.
//! - Times of last use are stored later; see [`LastUses`].

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use jiff::Timestamp;
use perennial_domain::{Session, SessionId, TenantId};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    UserSession, Watermark,
    last_uses::{self, LastUses},
    session_cache::SessionCache,
    table::{self, SessionKey, SessionRow},
    touch_sql::{self, SessionUse, StoredUse},
};
use crate::{
    auth::{Tenant, tokens::VerifiedToken},
    db::{Batcher, Databases, Error, Notification, NotificationListener},
};

pub(super) struct CellSessions {
    db: Arc<Databases>,
    name: String,
    pub(super) cache: Arc<SessionCache>,
    lookups: Batcher<SessionKey, SessionRow>,
    first_uses: Batcher<SessionUse, StoredUse>,
    last_uses: Arc<LastUses>,
    running: OnceLock<RunningTasks>,
}

struct RunningTasks {
    /// Invalidates the cache, which is used only while the listener is caught up.
    listener: NotificationListener,
    _stops_storing_on_drop: DropGuard,
}

impl CellSessions {
    pub(super) fn new(db: Arc<Databases>, name: &str, cache_entries: usize) -> Self {
        Self {
            cache: Arc::new(SessionCache::new(cache_entries)),
            lookups: batch_lookups(db.clone(), name.to_owned()),
            first_uses: batch_first_uses(db.clone(), name.to_owned()),
            last_uses: Arc::new(LastUses::new(db.clone(), name.to_owned())),
            running: OnceLock::new(),
            name: name.to_owned(),
            db,
        }
    }

    /// Starts listening for revoked sessions and storing times of last use.
    pub(super) fn start(&self) {
        let Some((_, database)) = { self.db.databases() }.find(|(name, _)| *name == self.name)
        else {
            return;
        };
        self.running.get_or_init(|| {
            let cache = self.cache.clone();
            let listener = database.listen(table::CHANNEL, move |notification| {
                apply(&cache, notification);
            });
            let stop = CancellationToken::new();
            let storing = self.last_uses.clone().run();
            tokio::spawn(stop.clone().run_until_cancelled_owned(storing));
            RunningTasks {
                listener,
                _stops_storing_on_drop: stop.drop_guard(),
            }
        });
    }

    pub(super) async fn store_last_uses(&self) -> Result<(), Error> {
        self.last_uses.store_all().await
    }

    /// Returns whether the cache can be used, or `None` before [`start`](Self::start).
    pub(super) fn is_caught_up(&self) -> Option<bool> {
        self.listener().map(NotificationListener::is_caught_up)
    }

    fn listener(&self) -> Option<&NotificationListener> {
        self.running.get().map(|running| &running.listener)
    }

    /// Returns a session from the cache, if the cache can be used.
    pub(super) fn cached(&self, tenant: TenantId, session: SessionId) -> Option<Arc<UserSession>> {
        let listener = self.listener()?;
        if !listener.is_caught_up() {
            return None;
        }
        self.cache.get(tenant, session)
    }

    /// Changes the time of last use of a cached session, now in the cache and later in the
    /// database. Of concurrent checks, one does so.
    pub(super) fn record_use(
        &self,
        tenant: TenantId,
        found: &Arc<UserSession>,
        now: Timestamp,
    ) -> Arc<UserSession> {
        let used = Arc::new(found.used_at(now));
        if self.cache.replace(tenant, found, used.clone()) {
            self.last_uses.add((tenant, found.session.id), now);
        }
        used
    }

    /// Reads the session from the database and caches it if it is active.
    pub(super) async fn load_active(
        &self,
        tenant: &Tenant,
        token: &VerifiedToken,
        now: Timestamp,
    ) -> Result<Option<Arc<UserSession>>, Error> {
        // Started before the read. Without a listener, a revocation during the read could be
        // missed, so the result is not cached.
        let lookup = self.cache.start_lookup(tenant.id, token.session);
        let is_listening = { self.listener() }.is_some_and(NotificationListener::is_listening);
        let key = (tenant.id, token.session);
        let Some(row) = self.lookups.call(key).await? else {
            return Ok(None);
        };
        let mut session = row.session;
        session.cap_expiry(&tenant.session_lifetimes);
        if !session.is_active(now) || row.user.id != token.user {
            return Ok(None);
        }
        if session.needs_confirmation(token.generation) {
            let Some(stored) = self.store_first_use(key, &session, token, now).await? else {
                // The session was revoked after it was read.
                return Ok(None);
            };
            session.confirmed = stored.confirmed;
            session.last_used_at = stored.last_used_at;
        } else if session.needs_touch(now) {
            session.last_used_at = now;
            self.last_uses.add(key, now);
        }
        let lifetimes = tenant.session_lifetimes;
        let found = Arc::new(UserSession::new(row.user, session, row.number, lifetimes));
        if is_listening {
            self.cache.insert_if_unchanged(&lookup, found.clone());
        }
        Ok(Some(found))
    }

    /// Stores that a generation was used. Returns `None` if the session has ended.
    async fn store_first_use(
        &self,
        key: SessionKey,
        session: &Session,
        token: &VerifiedToken,
        now: Timestamp,
    ) -> Result<Option<StoredUse>, Error> {
        let generation = token.generation.min(session.generation);
        let one = SessionUse {
            key,
            generation,
            at: now,
        };
        let stored = self.first_uses.call(one).await?;
        if let Some(stored) = stored.filter(|stored| stored.confirmed >= generation) {
            return Ok(Some(stored));
        }
        // The session has ended, another transaction has locked its row, or another instance has
        // stored the use.
        let connection = self.db.cell(&self.name)?.connection().await?;
        touch_sql::touch(&connection, &one).await
    }
}

fn apply(cache: &SessionCache, notification: Notification<'_>) {
    match notification {
        Notification::Payload(payload) => {
            if let Ok(session) = payload.parse() {
                cache.invalidate(session);
            } else if let Some(watermark) = Watermark::from_payload(payload) {
                cache.apply_watermark(&watermark);
            } else {
                cache.invalidate_all();
            }
        }
        Notification::MaybeMissed => cache.invalidate_all(),
    }
}

fn batch_lookups(db: Arc<Databases>, cell: String) -> Batcher<SessionKey, SessionRow> {
    Batcher::new("lane", move |keys| {
        let (db, cell) = (db.clone(), cell.clone());
        Box::pin(async move { table::find_stored(db.cell(&cell)?, &keys).await })
    })
}

fn batch_first_uses(db: Arc<Databases>, cell: String) -> Batcher<SessionUse, StoredUse> {
    Batcher::new("connection", move |uses: Vec<SessionUse>| {
        let (db, cell) = (db.clone(), cell.clone());
        Box::pin(async move {
            let stored = last_uses::store(&db, &cell, &uses).await?;
            let stored: HashMap<_, _> = stored.into_iter().collect();
            let stored_for = |one: SessionUse| Some((one, *stored.get(&one.key)?));
            Ok(uses.into_iter().filter_map(stored_for).collect())
        })
    })
}
