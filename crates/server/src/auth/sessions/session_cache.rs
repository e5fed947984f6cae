//! Cache of the active sessions of one cell, which is one of the databases that tenants are spread
//! over.
//!
//! A session can be revoked while a lookup is in progress, and the result of that lookup must not
//! be cached. A lookup therefore takes a [`LookupVersion`] first. [`SessionCache::insert_if_unchanged`]
//! drops the result if the session, or another one in its shard, was invalidated in between.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use perennial_domain::{Id, SessionId, TenantId};
use quick_cache::sync::Cache;
use uuid::Uuid;

use super::UserSession;

const MAX_ENTRIES: usize = 200_000;
/// Number of version counters. The last byte of a session's id selects its counter.
const SHARDS: usize = 256;

/// The session to look up, and the version of its shard when the lookup started.
pub(super) struct LookupVersion {
    tenant: TenantId,
    session: Uuid,
    version: u64,
}

#[derive(Clone)]
struct CachedSession {
    tenant: TenantId,
    session: Arc<UserSession>,
    epoch: u64,
}

pub(super) struct SessionCache {
    sessions: Cache<Uuid, CachedSession>,
    /// The version of each shard: the number of invalidations of its sessions.
    versions: [Mutex<u64>; SHARDS],
    /// Number of invalidations of the whole cache. Entries of an older epoch are ignored.
    epoch: AtomicU64,
}

impl SessionCache {
    pub(super) fn new() -> Self {
        Self {
            sessions: Cache::new(MAX_ENTRIES),
            versions: std::array::from_fn(|_| Mutex::new(0)),
            epoch: AtomicU64::new(0),
        }
    }

    fn lock_version(&self, session: Uuid) -> MutexGuard<'_, u64> {
        let [.., last_byte] = session.into_bytes();
        let [first, ..] = &self.versions;
        // Always in range: there are as many shards as values of a byte.
        let version = self.versions.get(usize::from(last_byte)).unwrap_or(first);
        version.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, tenant: TenantId, session: SessionId) -> Option<Arc<UserSession>> {
        let cached = self.sessions.get(&session.uuid())?;
        let is_current = cached.epoch == self.epoch.load(Ordering::Acquire);
        (is_current && cached.tenant == tenant).then_some(cached.session)
    }

    /// Returns the version to pass to [`Self::insert_if_unchanged`] after the lookup.
    pub(super) fn start_lookup(&self, tenant: TenantId, session: SessionId) -> LookupVersion {
        let session = session.uuid();
        let version = *self.lock_version(session);
        LookupVersion {
            tenant,
            session,
            version,
        }
    }

    /// Caches the result of a lookup, unless the session's shard has changed since the lookup started.
    pub(super) fn insert_if_unchanged(&self, lookup: &LookupVersion, session: Arc<UserSession>) {
        // The lock is held until after the insert, so that a concurrent invalidation removes it.
        let version = self.lock_version(lookup.session);
        if *version == lookup.version {
            let epoch = self.epoch.load(Ordering::Acquire);
            self.sessions.insert(
                lookup.session,
                CachedSession {
                    tenant: lookup.tenant,
                    session,
                    epoch,
                },
            );
        }
    }

    pub(super) fn invalidate(&self, session: Uuid) {
        let mut version = self.lock_version(session);
        *version += 1;
        self.sessions.remove(&session);
    }

    pub(super) fn invalidate_all(&self) {
        // The versions are incremented before the epoch. An insert that compared its version before
        // that still stores the old epoch, so `get` ignores its entry.
        for version in &self.versions {
            *version.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        }
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.sessions.clear();
    }
}
