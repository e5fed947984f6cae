//! Limits how many requests are in progress at the same time: of one key, and of all keys together.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A limit whose permits are counted until they are dropped.
pub struct ConcurrencyLimit<K> {
    permits: Arc<Mutex<PermitCounts<K>>>,
    max_per_key: usize,
    max_total: usize,
}

struct PermitCounts<K> {
    /// Without keys that have no permits.
    by_key: HashMap<K, usize>,
    total: usize,
}

/// The limit that a request would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExceededLimit {
    PerKey,
    Total,
}

/// Counts a request until dropped.
pub struct ConcurrencyPermit<K: Hash + Eq> {
    key: K,
    permits: Arc<Mutex<PermitCounts<K>>>,
}

impl<K: Hash + Eq + Copy> ConcurrencyLimit<K> {
    pub fn new(max_per_key: usize, max_total: usize) -> Self {
        let permits = PermitCounts {
            by_key: HashMap::new(),
            total: 0,
        };
        Self {
            permits: Arc::new(Mutex::new(permits)),
            max_per_key,
            max_total,
        }
    }

    /// Returns a permit, unless the key or all keys together have reached their limit.
    pub fn acquire(&self, key: K) -> Result<ConcurrencyPermit<K>, ExceededLimit> {
        let mut counts = lock(&self.permits);
        let of_key = counts.by_key.get(&key).copied().unwrap_or(0);
        if of_key >= self.max_per_key {
            return Err(ExceededLimit::PerKey);
        }
        if counts.total >= self.max_total {
            return Err(ExceededLimit::Total);
        }
        counts.by_key.insert(key, of_key + 1);
        counts.total += 1;
        drop(counts);
        Ok(ConcurrencyPermit {
            key,
            permits: self.permits.clone(),
        })
    }

    /// Returns the number of permits of all keys.
    pub fn in_use(&self) -> usize {
        lock(&self.permits).total
    }

    pub fn max_per_key(&self) -> usize {
        self.max_per_key
    }
}

impl<K: Hash + Eq> Drop for ConcurrencyPermit<K> {
    fn drop(&mut self) {
        let mut counts = lock(&self.permits);
        counts.total = counts.total.saturating_sub(1);
        if let Some(count) = counts.by_key.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.by_key.remove(&self.key);
            }
        }
    }
}

fn lock<K>(permits: &Mutex<PermitCounts<K>>) -> MutexGuard<'_, PermitCounts<K>> {
    permits.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_limited_per_key_and_in_total_until_they_are_dropped() {
        let limit = ConcurrencyLimit::new(2, 3);
        let first = limit.acquire("a").unwrap();
        let _second = limit.acquire("a").unwrap();
        assert_eq!(limit.acquire("a").err(), Some(ExceededLimit::PerKey));
        let third = limit.acquire("b").unwrap();
        assert_eq!(limit.acquire("b").err(), Some(ExceededLimit::Total));
        drop(third);
        assert_eq!(limit.in_use(), 2);
        drop(first);
        let _fourth = limit.acquire("a").unwrap();
        assert_eq!(lock(&limit.permits).by_key.len(), 1);
    }
}
