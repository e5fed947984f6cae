//! Rate limits: so many in a second or a minute, for each of many.
//!
//! The generic cell rate algorithm: for each key one number is kept, the instant until which its
//! requests so far "last" if they were spread evenly. A request moves that instant on by its share of the
//! window; one that would move it further than a window ahead of now is refused. So a window's worth
//! may come at once, and a steady stream passes at exactly the rate. It costs one atomic number per
//! key, and says what is left, which the headers `RateLimit-Policy` and `RateLimit` tell the caller.

use std::{
    convert::Infallible,
    fmt::Write,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use quick_cache::sync::Cache;

use super::{
    brief::Brief,
    problem::{Code, Problem},
};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STANDING: HeaderName = HeaderName::from_static("ratelimit");
/// How many keys are remembered. Beyond, the least used are forgotten, and begin anew.
const MOST: usize = 100_000;

/// What is counted, and how much of it one may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Who is counted: a client, a peer, ….
    pub who: &'static str,
    /// What is counted: requests, sign-ins, ….
    pub what: &'static str,
    /// How many there may be in a window; 0 for no limit.
    pub most: u32,
    /// Within this time the whole quota comes back.
    pub window: Duration,
}

/// What callers are told of a quota, which is always the same.
#[derive(Debug, PartialEq, Eq)]
struct Policy {
    quota: Quota,
    /// What it is called: what counts requests by whom it counts.
    name: String,
    header: HeaderValue,
}

impl Policy {
    fn new(quota: Quota) -> Self {
        let Quota {
            who,
            what,
            most,
            window,
        } = quota;
        let name = match what {
            "requests" => who.to_owned(),
            what => format!("{what} of a {who}"),
        };
        let header = format!("\"{name}\";q={most};w={}", window.as_secs());
        Self {
            quota,
            name,
            // Kept for as long as the process runs: with every answer it is copied, and nobody need count how often.
            header: HeaderValue::from_static(header.leak()),
        }
    }
}

/// A limit on each of many: clients, peers.
pub struct RateLimit<K> {
    policy: Policy,
    began: Instant,
    /// The nanosecond since `began` by which everybody will have everything back, or a later one. After it nobody need be
    /// looked up.
    all_back: AtomicU64,
    counts: Cache<K, Count>,
}

/// What one of many has had: the instant until which its requests last, in nanoseconds since its limit began.
#[derive(Debug, Clone, Default)]
pub struct Count(Arc<AtomicU64>);

/// Where a key stands after a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Standing<'a> {
    policy: &'a Policy,
    /// How many more requests may come at once.
    remaining: u32,
    /// After how many seconds the next one may come.
    wait: u32,
    /// Whether this one may.
    pub allowed: bool,
}

impl<K: Hash + Eq + Clone> RateLimit<K> {
    /// So many for each key.
    pub fn new(quota: Quota, now: Instant) -> Self {
        Self {
            policy: Policy::new(quota),
            began: now,
            all_back: AtomicU64::new(0),
            counts: Cache::new(MOST),
        }
    }

    /// What this key has had. To be asked for anew after a window at most: by then it may have been forgotten here.
    pub fn count_of(&self, key: &K) -> Count {
        let begun = || Ok::<_, Infallible>(Count::default());
        let Ok(count) = self.counts.get_or_insert_with(key, begun);
        count
    }

    /// Counts a request of this key. `None` if there is no limit.
    pub fn take(&self, key: &K, now: Instant) -> Option<Standing<'_>> {
        self.share()?;
        self.take_of(&self.count_of(key), now)
    }

    /// Counts a request of the key that has had that.
    pub fn take_of(&self, Count(until): &Count, now: Instant) -> Option<Standing<'_>> {
        let share = self.share()?;
        let (now, window) = (self.nanos(now), nanos(self.policy.quota.window));
        let end = now + window;
        // Later than it must be, so that it is written seldom: everybody reads it.
        if self.all_back.load(Ordering::Relaxed) < end {
            self.all_back.fetch_max(end + window, Ordering::Relaxed);
        }
        let moved = until.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |until| {
            Some(until.max(now) + share).filter(|until| *until <= end)
        });
        let until = match moved {
            Ok(before) => before.max(now) + share,
            Err(before) => before,
        };
        Some(self.standing(until, now, share, moved.is_ok()))
    }

    /// Where a key stands whose requests last until then.
    fn standing(&self, until: u64, now: u64, share: u64, allowed: bool) -> Standing<'_> {
        let end = now + nanos(self.policy.quota.window);
        let left = end.saturating_sub(until) / share;
        let wait = Duration::from_nanos((until + share).saturating_sub(end));
        Standing {
            policy: &self.policy,
            remaining: u32::try_from(left).unwrap_or(u32::MAX),
            wait: u32::try_from(wait.as_secs() + 1).unwrap_or(u32::MAX),
            allowed,
        }
    }

    /// Where this key stands if its next request would be refused. Counts nothing.
    pub fn exhausted(&self, key: &K, now: Instant) -> Option<Standing<'_>> {
        let share = self.share()?;
        let now = self.nanos(now);
        if now > self.all_back.load(Ordering::Relaxed) {
            return None;
        }
        let Count(until) = self.counts.get(key)?;
        let until = until.load(Ordering::Relaxed).max(now);
        let exhausted = until + share > now + nanos(self.policy.quota.window);
        exhausted.then(|| self.standing(until, now, share, false))
    }

    /// A request's share of the window.
    fn share(&self) -> Option<u64> {
        let Quota { most, window, .. } = self.policy.quota;
        nanos(window).checked_div(u64::from(most))
    }

    /// An instant, in nanoseconds since it began.
    fn nanos(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(self.began))
    }
}

/// Nanoseconds; enough for five hundred years.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Standing<'_> {
    /// What a refused caller is told.
    pub fn refusal(&self) -> Problem {
        let Quota {
            who,
            what,
            most,
            window,
        } = self.policy.quota;
        let by = self.policy.name.clone();
        metrics::counter!("perennial_shed_total", "by" => by).increment(1);
        let every = match window.as_secs() {
            1 => "second",
            _ => "minute",
        };
        let detail = format!(
            "this {who} sends more than {most} {what} per {every}; wait as long as Retry-After says, and spread them"
        );
        Problem::try_again(Code::RateLimited, detail).in_seconds(self.wait)
    }

    /// Tells the caller, as draft-ietf-httpapi-ratelimit-headers lays it down: the quota and its window
    /// in seconds; what remains of it, and when all of it is back.
    pub fn tell(self, headers: &mut HeaderMap) {
        let Policy {
            quota,
            name,
            header,
        } = self.policy;
        let (mut remaining, mut window) = (itoa::Buffer::new(), itoa::Buffer::new());
        let parts = [
            "\"",
            name,
            "\";r=",
            remaining.format(self.remaining),
            ";t=",
            window.format(quota.window.as_secs()),
        ];
        let mut standing = Brief::new();
        let written = parts.iter().try_for_each(|part| standing.write_str(part));
        let standing = HeaderValue::from_str(standing.as_str());
        if let (Ok(()), Ok(standing)) = (written, standing) {
            headers.append(POLICY, header.clone());
            headers.append(STANDING, standing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(most: u32) -> Quota {
        Quota {
            who: "client",
            what: "requests",
            most,
            window: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_minutes_worth_says_how_long_to_wait() {
        let began = Instant::now();
        let quota = Quota {
            what: "sign-ins",
            window: Duration::from_mins(1),
            ..requests(4)
        };
        let limit = RateLimit::new(quota, began);
        for _ in 0..4 {
            assert!(limit.take(&1, began).unwrap().allowed);
        }
        let refused = limit.take(&1, began + Duration::from_secs(5)).unwrap();
        assert_eq!((refused.allowed, refused.wait), (false, 11));
        let mut headers = HeaderMap::new();
        refused.tell(&mut headers);
        let policy = headers.get(POLICY).unwrap();
        assert_eq!(policy, "\"sign-ins of a client\";q=4;w=60");
    }

    #[test]
    fn a_seconds_worth_at_once_and_then_the_rate() {
        let began = Instant::now();
        let limit = RateLimit::new(requests(10), began);
        let at = |millis| began + Duration::from_millis(millis);
        let take = |key, millis| limit.take(&key, at(millis)).unwrap();
        for left in (0..10).rev() {
            let standing = take(1, 0);
            assert_eq!((standing.allowed, standing.remaining), (true, left));
        }
        assert_eq!(limit.exhausted(&1, at(0)).unwrap().wait, 1);
        assert!(!take(1, 0).allowed && !take(1, 99).allowed);
        // Another key has its own.
        assert!(take(2, 0).allowed && limit.exhausted(&2, at(0)).is_none());
        // A tenth of a second brings one back, and what was refused cost nothing.
        assert_eq!(limit.exhausted(&1, at(100)), None);
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
        let limit = RateLimit::new(requests(0), Instant::now());
        assert_eq!(limit.take(&1, Instant::now()), None);
        assert_eq!(limit.exhausted(&1, Instant::now()), None);
    }
}
