//! Read-through cache with a 1 s TTL, for data that most requests need and that seldom changes, such
//! as clients and identity providers.
//!
//! Concurrent misses of one key share one query. Errors and missing records are not cached. A change
//! takes effect on every instance within the TTL, without any invalidation.

use std::{
    hash::Hash,
    time::{Duration, Instant},
};

use quick_cache::sync::Cache;

use super::Error;

const TTL: Duration = Duration::from_secs(1);

pub struct ReadThroughCache<K, T>(Cache<K, CacheEntry<T>>);

#[derive(Clone)]
struct CacheEntry<T> {
    /// When the query was started.
    read_at: Instant,
    result: Result<Option<T>, Error>,
}

impl<T> CacheEntry<T> {
    fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.read_at) < TTL
    }
}

impl<K: Hash + Eq + Clone, T: Clone> ReadThroughCache<K, T> {
    /// Creates a cache of at most `capacity` entries, beyond which the least used are evicted.
    pub fn new(capacity: usize) -> Self {
        Self(Cache::new(capacity))
    }

    /// Returns the cached value, if it is fresh.
    pub fn get(&self, key: &K, now: Instant) -> Option<T> {
        let entry = self.0.get(key).filter(|entry| entry.is_fresh(now))?;
        entry.result.ok().flatten()
    }

    /// Returns the cached value, or runs `load` and caches what it finds.
    pub async fn get_or_load(
        &self,
        key: &K,
        load: impl Future<Output = Result<Option<T>, Error>>,
    ) -> Result<Option<T>, Error> {
        let now = Instant::now();
        self.0.remove_if(key, |entry| !entry.is_fresh(now));
        let placeholder = match self.0.get_value_or_guard_async(key).await {
            Ok(entry) => return entry.result,
            Err(placeholder) => placeholder,
        };
        // Read the clock after waiting: another task may have started this load and been canceled.
        let read_at = Instant::now();
        let result = load.await;
        let entry = CacheEntry {
            read_at,
            result: result.clone(),
        };
        // Fails only if the placeholder was evicted in the meantime.
        let _ = placeholder.insert(entry);
        if !matches!(result, Ok(Some(_))) {
            // The tasks that waited for this load already have the result.
            self.0.remove(key);
        }
        result
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
