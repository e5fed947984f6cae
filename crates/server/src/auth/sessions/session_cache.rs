//! Cache of the active sessions of one cell, which is one of the databases that tenants are spread
//! over.
//!
//! A session can be revoked while a lookup is in progress, and the result of that lookup must not
//! be cached. A lookup therefore takes a [`LookupVersion`] first. [`SessionCache::insert_if_unchanged`]
//! drops the result if the session, or another one in its shard, was invalidated in between.
//!
//! A watermark ends any number of sessions, so it does not remove them one by one. It starts a new
//! epoch. An entry of an older epoch is compared with the known watermarks when it is used next.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard,
    atomic::{AtomicU64, Ordering},
};

use perennial_domain::{Id, SessionId, TenantId};
use quick_cache::sync::Cache;
use uuid::Uuid;

use super::{
    UserSession,
    watermark::{Watermark, Watermarks},
};

/// When there are more, the cache is cleared, and no watermark is needed any more.
const MAX_WATERMARKS: usize = 10_000;
/// Number of version counters. The last byte of a session's id selects its counter.
const SHARDS: usize = 256;

/// The session to look up, and the version of its shard and the epoch when the lookup started.
pub(super) struct LookupVersion {
    tenant: TenantId,
    session: Uuid,
    version: u64,
    epoch: u64,
}

#[derive(Clone)]
struct CachedSession {
    tenant: TenantId,
    session: Arc<UserSession>,
}

/// The watermarks received since `oldest_epoch`.
struct EpochState {
    /// Entries of an older epoch are ignored, because a watermark may have been missed.
    oldest_epoch: u64,
    watermarks: Watermarks,
}

pub(super) struct SessionCache {
    sessions: Cache<Uuid, CachedSession>,
    /// The version of each shard: the number of invalidations of its sessions.
    versions: [Mutex<u64>; SHARDS],
    /// Number of watermarks and of invalidations of the whole cache. Changes only while `epoch_state`
    /// is locked for writing.
    epoch: AtomicU64,
    epoch_state: RwLock<EpochState>,
}

impl SessionCache {
    /// Creates a cache of up to `max_entries` sessions, beyond which the least used are evicted.
    pub(super) fn new(max_entries: usize) -> Self {
        Self {
            sessions: Cache::new(max_entries),
            versions: std::array::from_fn(|_| Mutex::new(0)),
            epoch: AtomicU64::new(0),
            epoch_state: RwLock::new(EpochState {
                oldest_epoch: 0,
                watermarks: Watermarks::default(),
            }),
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
        let entry_epoch = cached.session.cache_epoch.load(Ordering::Relaxed);
        let is_current =
            entry_epoch == self.epoch.load(Ordering::Acquire) || self.verify(&cached, entry_epoch);
        (is_current && cached.tenant == tenant).then_some(cached.session)
    }

    /// Compares an entry of an older epoch with the watermarks received since. Returns whether it is
    /// still valid, and moves it to the current epoch if so.
    fn verify(&self, cached: &CachedSession, entry_epoch: u64) -> bool {
        let state = self.epoch_state.read();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let CachedSession { tenant, session } = cached;
        let is_valid = entry_epoch >= state.oldest_epoch
            && !(state.watermarks).end(*tenant, &session.session, session.number);
        if is_valid {
            // The lock is still held, so the epoch belongs to the watermarks that were compared.
            let epoch = self.epoch.load(Ordering::Acquire);
            session.cache_epoch.store(epoch, Ordering::Relaxed);
        }
        is_valid
    }

    /// Returns the version to pass to [`Self::insert_if_unchanged`] after the lookup.
    pub(super) fn start_lookup(&self, tenant: TenantId, session: SessionId) -> LookupVersion {
        let session = session.uuid();
        let version = *self.lock_version(session);
        LookupVersion {
            tenant,
            session,
            version,
            epoch: self.epoch.load(Ordering::Acquire),
        }
    }

    /// Caches the result of a lookup, unless the session's shard has changed since the lookup started.
    pub(super) fn insert_if_unchanged(&self, lookup: &LookupVersion, session: Arc<UserSession>) {
        // The lock is held until after the insert, so that a concurrent invalidation removes it.
        let version = self.lock_version(lookup.session);
        if *version == lookup.version {
            // The epoch of the lookup's start: watermarks received since then are still compared.
            session.cache_epoch.store(lookup.epoch, Ordering::Relaxed);
            let tenant = lookup.tenant;
            let entry = CachedSession { tenant, session };
            self.sessions.insert(lookup.session, entry);
        }
    }

    /// Replaces an entry by a changed copy of it, which must have its epoch. Returns false if the
    /// entry was replaced, invalidated or evicted before.
    pub(super) fn replace(
        &self,
        tenant: TenantId,
        entry: &Arc<UserSession>,
        copy: Arc<UserSession>,
    ) -> bool {
        let id = entry.session.id.uuid();
        // The lock is held until after the insert, so that a concurrent invalidation removes the
        // copy. An invalidation of all entries does not take the lock, but ignores the copy, whose
        // epoch is older.
        let _version = self.lock_version(id);
        let current = self.sessions.peek(&id);
        let is_current = current.is_some_and(|cached| Arc::ptr_eq(&cached.session, entry));
        if is_current {
            let session = copy;
            self.sessions.insert(id, CachedSession { tenant, session });
        }
        is_current
    }

    /// Returns the number of cached sessions.
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn invalidate(&self, session: Uuid) {
        let mut version = self.lock_version(session);
        *version += 1;
        self.sessions.remove(&session);
    }

    /// Ends the cached sessions that a watermark applies to.
    pub(super) fn apply_watermark(&self, watermark: &Watermark) {
        let mut state = self.lock_epoch();
        if state.watermarks.len() >= MAX_WATERMARKS {
            self.clear(&mut state);
        } else if state.watermarks.add(watermark) {
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
    }

    pub(super) fn invalidate_all(&self) {
        self.clear(&mut self.lock_epoch());
    }

    fn lock_epoch(&self) -> RwLockWriteGuard<'_, EpochState> {
        let state = self.epoch_state.write();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts an epoch in which all entries of earlier ones are ignored. A lookup that is in progress
    /// stores the epoch of its start, so its entry is ignored too.
    fn clear(&self, state: &mut EpochState) {
        state.oldest_epoch = self.epoch.fetch_add(1, Ordering::AcqRel) + 1;
        state.watermarks.clear();
        self.sessions.clear();
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use perennial_domain::{ClientId, Session, SessionLifetimes, SessionUser, UserId};

    use super::*;

    const TENANT: Uuid = Uuid::from_u128(1);

    /// A session with the number 10, of a user with the same id.
    fn session(id: u128) -> Arc<UserSession> {
        let (id, now) = (Uuid::from_u128(id), Timestamp::UNIX_EPOCH);
        let (issuer, address) = ("a".to_owned(), [192, 0, 2, 1].into());
        let lifetimes = SessionLifetimes::DEFAULT;
        let (user, client) = (UserId::new(id), ClientId::new(id));
        let session = SessionId::new(id);
        let session = Session::new(session, user, client, issuer, address, &lifetimes, now);
        let user = SessionUser {
            id: user,
            external_id: None,
            email: Some("ada@example.com".parse().unwrap()),
            created_at: now,
        };
        Arc::new(UserSession::new(user, session, 10, lifetimes))
    }

    fn insert(cache: &SessionCache, id: u128) {
        let session = session(id);
        let lookup = cache.start_lookup(TenantId::new(TENANT), session.session.id);
        cache.insert_if_unchanged(&lookup, session);
    }

    fn is_cached(cache: &SessionCache, id: u128) -> bool {
        let session = SessionId::new(Uuid::from_u128(id));
        cache.get(TenantId::new(TENANT), session).is_some()
    }

    fn revoke_user(cache: &SessionCache, user: u128, number: usize) {
        let payload = format!("{TENANT} {number} - user:{}", Uuid::from_u128(user));
        cache.apply_watermark(&Watermark::from_payload(&payload).unwrap());
    }

    #[test]
    fn watermark_ends_cached_sessions_of_its_scope_only() {
        let cache = SessionCache::new(100_000);
        insert(&cache, 2);
        insert(&cache, 3);
        revoke_user(&cache, 2, 11);
        assert!(!is_cached(&cache, 2));
        assert!(is_cached(&cache, 3));
        revoke_user(&cache, 3, 10);
        assert!(is_cached(&cache, 3), "its number is not less than 10");
    }

    #[test]
    fn watermark_during_a_lookup_ends_its_result() {
        let cache = SessionCache::new(100_000);
        let found = session(2);
        let lookup = cache.start_lookup(TenantId::new(TENANT), found.session.id);
        revoke_user(&cache, 2, 11);
        cache.insert_if_unchanged(&lookup, found);
        assert!(!is_cached(&cache, 2));
    }

    #[test]
    fn lookup_during_an_invalidation_of_all_is_ignored() {
        let cache = SessionCache::new(100_000);
        let found = session(2);
        let lookup = cache.start_lookup(TenantId::new(TENANT), found.session.id);
        cache.invalidate_all();
        cache.insert_if_unchanged(&lookup, found);
        assert!(!is_cached(&cache, 2));
        insert(&cache, 2);
        assert!(is_cached(&cache, 2));
    }

    #[test]
    fn entry_is_replaced_unless_it_was_invalidated() {
        let cache = SessionCache::new(100_000);
        let tenant = TenantId::new(TENANT);
        let get = |id| cache.get(tenant, SessionId::new(Uuid::from_u128(id)));
        let later = Timestamp::UNIX_EPOCH + SignedDuration::from_mins(1);
        let replace = |entry: &Arc<UserSession>| {
            let copy = Arc::new(entry.used_at(later));
            cache.replace(tenant, entry, copy)
        };
        insert(&cache, 2);
        let entry = get(2).unwrap();
        assert!(replace(&entry));
        assert_eq!(get(2).unwrap().session.last_used_at, later);
        assert!(!replace(&entry), "it was replaced before");

        let entry = get(2).unwrap();
        cache.invalidate(entry.session.id.uuid());
        assert!(!replace(&entry));
        assert!(!is_cached(&cache, 2));

        // A watermark does not remove the entry, but applies to the copy too.
        insert(&cache, 2);
        let entry = get(2).unwrap();
        revoke_user(&cache, 2, 11);
        assert!(replace(&entry));
        assert!(!is_cached(&cache, 2));

        // An invalidation of all entries between the comparison and the insert.
        insert(&cache, 3);
        let entry = get(3).unwrap();
        cache.invalidate_all();
        let session = Arc::new(entry.used_at(later));
        let id = session.session.id.uuid();
        (cache.sessions).insert(id, CachedSession { tenant, session });
        assert!(!is_cached(&cache, 3));
    }

    #[test]
    fn too_many_watermarks_clear_the_cache() {
        let cache = SessionCache::new(100_000);
        insert(&cache, 2);
        for user in (1_000..).take(MAX_WATERMARKS) {
            revoke_user(&cache, user, 11);
        }
        assert!(is_cached(&cache, 2));
        revoke_user(&cache, 3, 11);
        assert!(!is_cached(&cache, 2));
        assert_eq!(cache.lock_epoch().watermarks.len(), 0);
    }
}
