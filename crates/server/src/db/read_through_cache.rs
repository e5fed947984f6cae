//! Read-through cache for data that most requests need and that seldom changes, such as clients and
//! identity providers.
//!
//! Concurrent misses of one key share one query. Errors and missing records are not cached.
//!
//! - **By TTL.** An entry is used for 1 s. A change takes effect on every instance within that time,
//!   without any invalidation.
//! - **By notification**, once [`ReadThroughCache::use_listener`] is called. A notification
//!   invalidates entries, and entries are used while the listener is caught up. Otherwise an entry is
//!   used for as long as a heartbeat, because the query that read it proves as much as a heartbeat at
//!   that time.

use std::{
    hash::Hash,
    sync::{OnceLock, PoisonError, RwLock},
    time::{Duration, Instant},
};

use quick_cache::sync::Cache;

use super::{Error, NotificationListener, notify::MAX_HEARTBEAT_AGE};

const TTL: Duration = Duration::from_secs(1);
/// Applies while notifications arrive. Limits the effect of changes that send no notification, such
/// as an UPDATE by hand.
const NOTIFIED_TTL: Duration = Duration::from_mins(1);

pub struct ReadThroughCache<K, T> {
    entries: Cache<K, CacheEntry<T>>,
    /// The number of invalidations. Held for reading while an entry is inserted.
    version: RwLock<u64>,
    listener: OnceLock<NotificationListener>,
}

#[derive(Clone)]
struct CacheEntry<T> {
    /// When the query was started.
    read_at: Instant,
    /// Zero if a notification arrived during the query, whose result may be outdated.
    ttl: Duration,
    result: Result<Option<T>, Error>,
}

impl<T> CacheEntry<T> {
    fn is_fresh(&self, now: Instant, ttl: Duration) -> bool {
        now.saturating_duration_since(self.read_at) < self.ttl.min(ttl)
    }
}

impl<K: Hash + Eq + Clone, T: Clone> ReadThroughCache<K, T> {
    /// Creates a cache of at most `capacity` entries, beyond which the least used are evicted.
    pub fn new(capacity: usize) -> Self {
        Self {
            entries: Cache::new(capacity),
            version: RwLock::new(0),
            listener: OnceLock::new(),
        }
    }

    /// Uses entries for longer than 1 s while this listener is caught up. It must call
    /// [`Self::invalidate`] or [`Self::invalidate_all`] for every notification.
    pub fn use_listener(&self, listener: NotificationListener) {
        let _ = self.listener.set(listener);
    }

    fn ttl(&self, is_reliable: impl Fn(&NotificationListener) -> bool) -> Duration {
        match self.listener.get() {
            None => TTL,
            Some(listener) if is_reliable(listener) => NOTIFIED_TTL,
            Some(_) => MAX_HEARTBEAT_AGE,
        }
    }

    fn current_ttl(&self) -> Duration {
        self.ttl(NotificationListener::is_caught_up)
    }

    /// Returns the cached value, if it is fresh.
    pub fn get(&self, key: &K, now: Instant) -> Option<T> {
        let entry = self.entries.get(key)?;
        if !entry.is_fresh(now, self.current_ttl()) {
            return None;
        }
        entry.result.ok().flatten()
    }

    /// Returns the cached value, or runs `load` and caches what it finds.
    pub async fn get_or_load(
        &self,
        key: &K,
        load: impl Future<Output = Result<Option<T>, Error>>,
    ) -> Result<Option<T>, Error> {
        let called_at = Instant::now();
        let placeholder = loop {
            let (now, ttl) = (Instant::now(), self.current_ttl());
            self.entries
                .remove_if(key, |entry| !entry.is_fresh(now, ttl));
            match self.entries.get_value_or_guard_async(key).await {
                Err(placeholder) => break placeholder,
                Ok(entry) => {
                    // The result of another task's load, which may have started before this call and
                    // be outdated by now. Then the next load has started after this call.
                    let is_fresh = entry.is_fresh(Instant::now(), self.current_ttl());
                    if is_fresh || entry.read_at >= called_at {
                        return entry.result;
                    }
                }
            }
        };
        let version = *self.version.read().unwrap_or_else(PoisonError::into_inner);
        // Read after the version: if the session ends in between, the version changes.
        let ttl = self.ttl(NotificationListener::is_listening);
        // Read the clock after waiting: another task may have started this load and been canceled.
        let read_at = Instant::now();
        let result = load.await;
        // Held until after the insert, so that a concurrent invalidation removes the entry.
        let current_version = self.version.read().unwrap_or_else(PoisonError::into_inner);
        let is_current = *current_version == version;
        let entry = CacheEntry {
            read_at,
            ttl: if is_current { ttl } else { Duration::ZERO },
            result: result.clone(),
        };
        // Fails only if the placeholder was evicted in the meantime.
        let _ = placeholder.insert(entry);
        drop(current_version);
        if !is_current || !matches!(result, Ok(Some(_))) {
            // The tasks that waited for this load already have the result.
            self.entries
                .remove_if(key, |entry| entry.read_at == read_at);
        }
        result
    }

    /// Removes the values to which `is_affected` applies. The results of loads in progress are not
    /// cached.
    pub fn invalidate(&self, is_affected: impl Fn(&T) -> bool) {
        let mut version = self.version.write().unwrap_or_else(PoisonError::into_inner);
        *version += 1;
        self.entries
            .retain(|_, entry| !matches!(&entry.result, Ok(Some(value)) if is_affected(value)));
    }

    /// Removes all values. The results of loads in progress are not cached.
    pub fn invalidate_all(&self) {
        self.invalidate(|_| true);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
    };

    use tokio::time::{sleep, timeout};

    use super::*;

    type LoadResult = Result<Option<u8>, Error>;

    /// Runs ten concurrent lookups; returns the number of loads and the results.
    async fn ten_lookups(
        cache: &Arc<ReadThroughCache<u8, u8>>,
        result: LoadResult,
    ) -> (u32, Vec<LoadResult>) {
        let loads = Arc::new(AtomicU32::new(0));
        let lookups: Vec<_> = (0..10)
            .map(|_| {
                let (cache, loads, result) = (cache.clone(), loads.clone(), result.clone());
                tokio::spawn(async move {
                    let load = async {
                        loads.fetch_add(1, Ordering::Relaxed);
                        sleep(Duration::from_millis(50)).await;
                        result
                    };
                    cache.get_or_load(&1, load).await
                })
            })
            .collect();
        let mut results = Vec::new();
        for lookup in lookups {
            results.push(lookup.await.unwrap());
        }
        (loads.load(Ordering::Relaxed), results)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn concurrent_lookups_share_one_load() {
        let cache = Arc::new(ReadThroughCache::new(100));
        let (loads, results) = ten_lookups(&cache, Ok(Some(7))).await;
        assert_eq!(loads, 1);
        assert!(results.iter().all(|result| matches!(result, Ok(Some(7)))));

        let now = Instant::now();
        assert_eq!(cache.get(&1, now), Some(7));
        assert_eq!(cache.get(&1, now + TTL), None);
        assert_eq!(cache.get(&2, now), None);
        let (loads, _) = ten_lookups(&cache, Ok(Some(8))).await;
        assert_eq!(loads, 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn errors_and_missing_records_are_not_cached() {
        let cache = Arc::new(ReadThroughCache::new(100));
        let unavailable = Error::Unavailable("down".to_owned());
        for miss in [Ok(None), Err(unavailable)] {
            let (loads, results) = ten_lookups(&cache, miss).await;
            assert_eq!(loads, 1);
            assert!(results.iter().all(|result| !matches!(result, Ok(Some(_)))));
            assert_eq!(cache.get(&1, Instant::now()), None);
        }
        let (loads, results) = ten_lookups(&cache, Ok(Some(7))).await;
        assert_eq!((loads, results.len()), (1, 10));
    }

    #[tokio::test]
    async fn expired_entry_is_loaded_again() {
        let cache = ReadThroughCache::new(100);
        assert!(matches!(
            cache.get_or_load(&1, async { Ok(Some(7)) }).await,
            Ok(Some(7))
        ));
        sleep(TTL).await;
        assert!(matches!(
            cache.get_or_load(&1, async { Ok(Some(8)) }).await,
            Ok(Some(8))
        ));
    }

    #[tokio::test]
    async fn invalidation_removes_affected_values_only() {
        let cache = ReadThroughCache::new(100);
        for key in [1, 2] {
            let loaded = cache.get_or_load(&key, async { Ok(Some(key)) }).await;
            assert_eq!(loaded.unwrap(), Some(key));
        }
        cache.invalidate(|value| *value == 1);
        let now = Instant::now();
        assert_eq!((cache.get(&1, now), cache.get(&2, now)), (None, Some(2)));
        cache.invalidate_all();
        assert_eq!(cache.get(&2, now), None);
    }

    /// A call before the invalidation gets what the load has read. A call after it does not.
    #[tokio::test]
    async fn load_during_an_invalidation_is_repeated_for_later_calls() {
        let cache = Arc::new(ReadThroughCache::new(100));
        let (finish, finished) = tokio::sync::oneshot::channel::<()>();
        let first = cache.clone();
        let first = tokio::spawn(async move {
            let load = async {
                finished.await.unwrap();
                Ok(Some(7))
            };
            first.get_or_load(&1, load).await
        });
        sleep(Duration::from_millis(20)).await;
        cache.invalidate_all();
        let later = cache.clone();
        let later = tokio::spawn(async move { later.get_or_load(&1, async { Ok(Some(8)) }).await });
        sleep(Duration::from_millis(20)).await;
        finish.send(()).unwrap();
        assert_eq!(first.await.unwrap().unwrap(), Some(7));
        assert_eq!(later.await.unwrap().unwrap(), Some(8));
        assert_eq!(cache.get(&1, Instant::now()), Some(8));
    }

    #[tokio::test]
    async fn canceled_load_does_not_block_waiters() {
        let cache = Arc::new(ReadThroughCache::new(100));
        let first = cache.clone();
        let first =
            tokio::spawn(async move { first.get_or_load(&1, pending::<LoadResult>()).await });
        sleep(Duration::from_millis(20)).await;
        let next = tokio::spawn({
            let cache = cache.clone();
            async move { cache.get_or_load(&1, async { Ok(Some(7)) }).await }
        });
        sleep(Duration::from_millis(20)).await;
        first.abort();
        let result = timeout(Duration::from_secs(5), next).await;
        assert!(matches!(result, Ok(Ok(Ok(Some(7))))));
    }
}
