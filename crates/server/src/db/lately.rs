//! What was read lately.
//!
//! Some things are needed by every request and seldom change: who a client is, which providers a tenant has. What was
//! read of them counts for a second. A change is therefore seen after at most that long, on every instance, with nothing
//! that has to be kept alive for it. However many ask at once, the database is asked once, and all of them are told what came of
//! it; but only what was found is remembered.

use std::{
    hash::Hash,
    time::{Duration, Instant},
};

use quick_cache::sync::Cache;

use super::Error;

/// How long it counts.
const LATELY: Duration = Duration::from_secs(1);

/// What was read lately, by what it was asked for with.
pub struct Lately<K, T>(Cache<K, Read<T>>);

#[derive(Clone)]
struct Read<T> {
    begun: Instant,
    found: Result<Option<T>, Error>,
}

impl<T> Read<T> {
    fn counts(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.begun) < LATELY
    }
}

impl<K: Hash + Eq + Clone, T: Clone> Lately<K, T> {
    /// Room for so many; beyond, the least used are forgotten.
    pub fn new(most: usize) -> Self {
        Self(Cache::new(most))
    }

    /// What was found lately, if anything was.
    pub fn get(&self, key: &K, now: Instant) -> Option<T> {
        let read = self.0.get(key).filter(|read| read.counts(now))?;
        read.found.ok().flatten()
    }

    /// The same, or else what is found now.
    pub async fn find(
        &self,
        key: &K,
        find: impl Future<Output = Result<Option<T>, Error>>,
    ) -> Result<Option<T>, Error> {
        let now = Instant::now();
        self.0.remove_if(key, |read| !read.counts(now));
        let place = match self.0.get_value_or_guard_async(key).await {
            Ok(read) => return read.found,
            Err(place) => place,
        };
        // Not before: somebody else may have begun and given up.
        let begun = Instant::now();
        let found = find.await;
        let read = Read {
            begun,
            found: found.clone(),
        };
        // It can only have been displaced by what is used more.
        let _ = place.insert(read);
        if !matches!(found, Ok(Some(_))) {
            // Whoever was waiting for it has it.
            self.0.remove(key);
        }
        found
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

    type Found = Result<Option<u8>, Error>;

    /// Asks ten times at once; how often the database was asked, and what all were told.
    async fn ten_at_once(lately: &Arc<Lately<u8, u8>>, found: Found) -> (u32, Vec<Found>) {
        let asked = Arc::new(AtomicU32::new(0));
        let asking: Vec<_> = (0..10)
            .map(|_| {
                let (lately, asked, found) = (lately.clone(), asked.clone(), found.clone());
                tokio::spawn(async move {
                    let find = async {
                        asked.fetch_add(1, Ordering::Relaxed);
                        sleep(Duration::from_millis(50)).await;
                        found
                    };
                    lately.find(&1, find).await
                })
            })
            .collect();
        let mut told = Vec::new();
        for asking in asking {
            told.push(asking.await.unwrap());
        }
        (asked.load(Ordering::Relaxed), told)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_database_is_asked_once_for_many() {
        let lately = Arc::new(Lately::new(100));
        let (asked, told) = ten_at_once(&lately, Ok(Some(7))).await;
        assert_eq!(asked, 1);
        assert!(told.iter().all(|told| matches!(told, Ok(Some(7)))));

        let now = Instant::now();
        assert_eq!(lately.get(&1, now), Some(7));
        assert_eq!(lately.get(&1, now + LATELY), None);
        assert_eq!(lately.get(&2, now), None);
        let (asked, _) = ten_at_once(&lately, Ok(Some(8))).await;
        assert_eq!(asked, 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_was_not_found_is_told_once() {
        let lately = Arc::new(Lately::new(100));
        let away = Error::Unavailable("away".to_owned());
        for nothing in [Ok(None), Err(away)] {
            let (asked, told) = ten_at_once(&lately, nothing).await;
            assert_eq!(asked, 1);
            assert!(told.iter().all(|told| !matches!(told, Ok(Some(_)))));
            assert_eq!(lately.get(&1, Instant::now()), None);
        }
        let (asked, told) = ten_at_once(&lately, Ok(Some(7))).await;
        assert_eq!((asked, told.len()), (1, 10));
    }

    #[tokio::test]
    async fn after_a_second_it_is_asked_again() {
        let lately = Lately::new(100);
        assert!(matches!(
            lately.find(&1, async { Ok(Some(7)) }).await,
            Ok(Some(7))
        ));
        sleep(LATELY).await;
        assert!(matches!(
            lately.find(&1, async { Ok(Some(8)) }).await,
            Ok(Some(8))
        ));
    }

    #[tokio::test]
    async fn whoever_gives_up_leaves_it_to_the_next() {
        let lately = Arc::new(Lately::new(100));
        let first = lately.clone();
        let first = tokio::spawn(async move { first.find(&1, pending::<Found>()).await });
        sleep(Duration::from_millis(20)).await;
        let next = tokio::spawn({
            let lately = lately.clone();
            async move { lately.find(&1, async { Ok(Some(7)) }).await }
        });
        sleep(Duration::from_millis(20)).await;
        first.abort();
        let told = timeout(Duration::from_secs(5), next).await;
        assert!(matches!(told, Ok(Ok(Ok(Some(7))))));
    }
}
