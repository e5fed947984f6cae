//! Rate limits: so many requests per second, for each of many.
//!
//! The generic cell rate algorithm: for each key one number is kept, the instant until which its
//! requests so far "last" if they were spread evenly. A request moves that instant on by its share of a
//! second; one that would move it further than a second ahead of now is refused. So a second's worth
//! may come at once, and a steady stream passes at exactly the rate. It costs one atomic number per
//! key, and says what is left, which the headers `RateLimit-Policy` and `RateLimit` tell the caller.

use std::{
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use moka::sync::Cache;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STANDING: HeaderName = HeaderName::from_static("ratelimit");
/// Within this time a limit's whole quota comes back.
const WINDOW: Duration = Duration::from_secs(1);
/// How many keys are remembered. Beyond, the least used are forgotten, and begin anew.
const MOST: u64 = 100_000;

/// A limit on each of many: clients, peers.
pub struct RateLimit<K> {
    name: &'static str,
    /// 0 for no limit.
    per_second: u32,
    began: Instant,
    /// For each key the instant until which its requests last, in nanoseconds since `began`.
    until: Cache<K, Arc<AtomicU64>>,
}

/// Where a key stands after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    name: &'static str,
    per_second: u32,
    /// How many more requests may come at once.
    remaining: u32,
    /// Whether this one may.
    pub allowed: bool,
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> RateLimit<K> {
    /// So many per second, for each key; 0 is no limit.
    pub fn new(name: &'static str, per_second: u32, now: Instant) -> Self {
        Self {
            name,
            per_second,
            began: now,
            until: Cache::builder()
                .max_capacity(MOST)
                .time_to_idle(WINDOW * 2)
                .build(),
        }
    }

    /// Counts a request of this key. `None` if there is no limit.
    pub fn take(&self, key: &K, now: Instant) -> Option<Standing> {
        let share = self.share()?;
        let cell = self
            .until
            .get_with_by_ref(key, || Arc::new(AtomicU64::new(0)));
        let now = nanos(now.duration_since(self.began));
        let end = now + nanos(WINDOW);
        let moved = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |until| {
            Some(until.max(now) + share).filter(|until| *until <= end)
        });
        let until = match moved {
            Ok(before) => before.max(now) + share,
            Err(before) => before,
        };
        let left = end.saturating_sub(until) / share;
        Some(Standing {
            name: self.name,
            per_second: self.per_second,
            remaining: u32::try_from(left).unwrap_or(u32::MAX),
            allowed: moved.is_ok(),
        })
    }

    /// Whether this key's next request would be refused. Counts nothing.
    pub fn is_exhausted(&self, key: &K, now: Instant) -> bool {
        let (Some(share), Some(cell)) = (self.share(), self.until.get(key)) else {
            return false;
        };
        let now = nanos(now.duration_since(self.began));
        cell.load(Ordering::Relaxed).max(now) + share > now + nanos(WINDOW)
    }

    /// A request's share of the window.
    fn share(&self) -> Option<u64> {
        nanos(WINDOW).checked_div(u64::from(self.per_second))
    }
}

/// Nanoseconds; enough for five hundred years.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Standing {
    /// Whether this is a client's or a peer's.
    pub fn counted_by(self) -> &'static str {
        self.name
    }

    /// What a refused caller is told.
    pub fn refusal(self) -> String {
        format!(
            "this {} sends more than {} requests per second; wait a moment, and spread them",
            self.name, self.per_second
        )
    }

    /// Tells the caller, as draft-ietf-httpapi-ratelimit-headers lays it down: the quota and its window
    /// in seconds; what remains of it, and when all of it is back.
    pub fn tell(self, headers: &mut HeaderMap) {
        let window = WINDOW.as_secs();
        let Self {
            name,
            per_second,
            remaining,
            ..
        } = self;
        let lines = [
            (POLICY, format!("\"{name}\";q={per_second};w={window}")),
            (STANDING, format!("\"{name}\";r={remaining};t={window}")),
        ];
        for (header, line) in lines {
            if let Ok(value) = HeaderValue::try_from(line) {
                headers.append(header, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seconds_worth_at_once_and_then_the_rate() {
        let began = Instant::now();
        let limit = RateLimit::new("client", 10, began);
        let at = |millis| began + Duration::from_millis(millis);
        let take = |key, millis| limit.take(&key, at(millis)).unwrap();
        for left in (0..10).rev() {
            let standing = take(1, 0);
            assert_eq!((standing.allowed, standing.remaining), (true, left));
        }
        assert!(limit.is_exhausted(&1, at(0)));
        assert!(!take(1, 0).allowed && !take(1, 99).allowed);
        // Another key has its own.
        assert!(take(2, 0).allowed && !limit.is_exhausted(&2, at(0)));
        // A tenth of a second brings one back, and what was refused cost nothing.
        assert!(!limit.is_exhausted(&1, at(100)));
        assert!(take(1, 100).allowed && !take(1, 100).allowed);
        // A second's rest brings all back, a longer one no more than that.
        assert_eq!(take(1, 5_000).remaining, 9);

        let mut headers = HeaderMap::new();
        take(1, 5_000).tell(&mut headers);
        assert_eq!(headers.get(POLICY).unwrap(), "\"client\";q=10;w=1");
        assert_eq!(headers.get(STANDING).unwrap(), "\"client\";r=8;t=1");
    }

    #[test]
    fn zero_is_no_limit() {
        let limit = RateLimit::new("client", 0, Instant::now());
        assert_eq!(limit.take(&1, Instant::now()), None);
        assert!(!limit.is_exhausted(&1, Instant::now()));
    }
}
