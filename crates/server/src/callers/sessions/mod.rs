//! Sessions: whether the sign-in behind a token still lives.
//!
//! Every call with a bearer asks that, and the answer must be right: a session that was ended here is refused
//! here at once, and on every other instance within a second. So it is remembered which sessions live, but
//! that memory counts only while the [feed](crate::db::Feed) of ended sessions is proven to arrive; in
//! every other moment the database is asked. Whoever ends a session says so in the transaction that ends it
//! ([`end`]).
//!
//! What a check finds is written down when it is news: that a generation of the session's tokens has arrived,
//! and, once a minute, that the session is in use.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use axum::body::Bytes;
use jiff::Timestamp;
use metrics::Counter;
use perennial_domain::{Id, Session, SessionId, TenantId, User};

mod ending;
mod memory;
pub mod table;

pub use ending::{Reason, end};

use memory::Memory;

use super::{Tenant, tokens::Verified};
use crate::db::{Db, Engine, Error, Feed, Heard};

/// A session and whose it is.
#[derive(Debug, Clone)]
pub struct SignedIn {
    /// Who.
    pub user: User,
    /// By which sign-in.
    pub session: Session,
    /// What is answered to whoever asks about it, made once.
    pub shown: OnceLock<Bytes>,
}

/// Knows which sessions live.
pub struct Sessions {
    db: Arc<Db>,
    /// By cell; empty until [`Sessions::watch`].
    watched: OnceLock<BTreeMap<String, Watched>>,
    /// The sessions of which something is being written down.
    noting: Mutex<HashSet<SessionId>>,
    by_memory: Counter,
    by_database: Counter,
}

/// What is remembered of a cell's sessions, and what keeps that true.
struct Watched {
    memory: Arc<Memory>,
    feed: Feed,
}

impl Sessions {
    /// One that remembers nothing, and so asks the database each time.
    pub fn new(db: Arc<Db>) -> Self {
        let by =
            |who: &'static str| metrics::counter!("perennial_session_checks_total", "by" => who);
        Self {
            by_memory: by("memory"),
            by_database: by("database"),
            db,
            watched: OnceLock::new(),
            noting: Mutex::default(),
        }
    }

    /// Begins to listen for sessions that are ended elsewhere, and so to remember those that live.
    pub fn watch(&self) {
        self.watched.get_or_init(|| {
            let watch = |(cell, engine): (&str, &Engine)| {
                let memory = Arc::new(Memory::new());
                let own = memory.clone();
                let feed = engine.listen(table::CHANNEL, move |heard| match heard {
                    Heard::Said(session) => match session.parse() {
                        Ok(session) => own.forget(session),
                        Err(_) => own.forget_all(),
                    },
                    Heard::Nothing => own.forget_all(),
                });
                (cell.to_owned(), Watched { memory, feed })
            };
            self.db.engines().map(watch).collect()
        });
    }

    /// The session behind a token, if it lives.
    pub async fn live(
        &self,
        tenant: &Tenant,
        token: &Verified,
        now: Timestamp,
    ) -> Result<Option<Arc<SignedIn>>, Error> {
        let watched = self.watched.get().and_then(|all| all.get(&tenant.cell));
        let remembered = watched
            .filter(|watched| watched.feed.is_proven())
            .and_then(|watched| watched.memory.get(tenant.id, token.session));
        if let Some(found) = remembered
            && found.user.id == token.user
            && found.session.lives(now)
            // Of a newer one than we remember: it was refreshed elsewhere.
            && token.generation <= found.session.generation
            && !found.session.is_news(token.generation, now)
        {
            self.by_memory.increment(1);
            return Ok(Some(found));
        }
        // Boxed, because it is rare and large, and every request would carry the place for it along.
        Box::pin(self.look_up(watched, tenant, token, now)).await
    }

    /// The same, by asking the database; remembered from then on.
    async fn look_up(
        &self,
        watched: Option<&Watched>,
        tenant: &Tenant,
        token: &Verified,
        now: Timestamp,
    ) -> Result<Option<Arc<SignedIn>>, Error> {
        self.by_database.increment(1);
        // What is said from here on is heard, or the place is not taken.
        let place = watched
            .map(|watched| (watched, watched.memory.place(tenant.id, token.session)))
            .filter(|(watched, _)| watched.feed.listens());
        let engine = self.db.cell(&tenant.cell)?;
        let Some(mut found) = table::find(engine, tenant.id, token.session).await? else {
            return Ok(None);
        };
        let lives = found.session.lives(now) && found.user.id == token.user;
        if lives && found.session.is_news(token.generation, now) {
            self.note(engine, tenant.id, &mut found.session, token, now)
                .await?;
        }
        if !lives || !found.session.lives(now) {
            return Ok(None);
        }
        let found = Arc::new(SignedIn {
            user: found.user,
            session: found.session,
            shown: OnceLock::new(),
        });
        if let Some((watched, place)) = place {
            watched.memory.fill(&place, found.clone());
        }
        Ok(Some(found))
    }

    /// Writes down that a session was used. Of many who use it at once, one does that; and the time of its last use
    /// is not worth a refusal.
    async fn note(
        &self,
        engine: &Engine,
        tenant: TenantId,
        session: &mut Session,
        token: &Verified,
        now: Timestamp,
    ) -> Result<(), Error> {
        let generation = token.generation.min(session.generation);
        let arrived = session.confirmed < generation;
        let noting = self.begin_noting(session.id);
        if noting.is_none() && !arrived {
            return Ok(());
        }
        let noted = async {
            let connection = engine.connection().await?;
            table::note_use(&connection, tenant, session.id, generation, now).await
        };
        let noted = match noted.await {
            Err(Error::Unavailable(_) | Error::Busy(_)) if !arrived => return Ok(()),
            noted => noted?,
        };
        match noted {
            Some((confirmed, last_used_at)) => {
                session.confirmed = confirmed;
                session.last_used_at = last_used_at;
            }
            // It was ended meanwhile.
            None => session.ended_at = Some(now),
        }
        Ok(())
    }

    fn begin_noting(&self, session: SessionId) -> Option<Noting<'_>> {
        let mut noting = self.noting.lock().unwrap_or_else(PoisonError::into_inner);
        // Made only if it is ours: a `Noting` that is dropped takes the very lock that is held here.
        noting.insert(session).then(|| Noting(self, session))
    }

    /// Forgets sessions that were ended or changed here, without waiting to hear of it.
    pub fn forget(&self, tenant: &Tenant, sessions: &[SessionId]) {
        if let Some(watched) = self.watched.get().and_then(|all| all.get(&tenant.cell)) {
            for session in sessions {
                watched.memory.forget(session.uuid());
            }
        }
    }
}

/// A session of which something is being written down.
struct Noting<'a>(&'a Sessions, SessionId);

impl Drop for Noting<'_> {
    fn drop(&mut self) {
        let noting = self.0.noting.lock();
        noting
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.1);
    }
}
