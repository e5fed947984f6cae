//! Rate limits: so many in a second or a minute, for each of many.
//!
//! The generic cell rate algorithm: for each key one number is kept, the instant until which its
//! requests so far "last" if they were spread evenly. A request moves that instant on by its share of the
//! window; one that would move it further than a window ahead of now is refused. So a window's worth
//! may come at once, and a steady stream passes at exactly the rate. It costs one atomic number per
//! key, and says what is left, which the headers `RateLimit-Policy` and `RateLimit` tell the caller.

use std::{
    hash::Hash,
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use moka::sync::Cache;

use super::problem::{Code, Problem};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STANDING: HeaderName = HeaderName::from_static("ratelimit");
/// How many keys are remembered. Beyond, the least used are forgotten, and begin anew.
const MOST: u64 = 100_000;

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

impl Quota {
    /// The name of the policy, in quotation marks; what counts requests is called by whom it counts.
    fn name(self) -> String {
        match self.what {
            "requests" => format!("\"{}\"", self.who),
            what => format!("\"{} of a {}\"", what, self.who),
        }
    }
}

/// A limit on each of many: clients, peers.
pub struct RateLimit<K> {
    quota: Quota,
    /// The header that tells of the quota, which is always the same.
    policy: Option<HeaderValue>,
    began: Instant,
    /// The nanosecond after which something was last counted, since `began`; 0 if nothing was. While that is long ago, nobody
    /// need be looked up.
    last_taken: AtomicU64,
    /// For each key the instant until which its requests last, in nanoseconds since `began`.
    until: Cache<K, Arc<AtomicU64>>,
}

/// Where a key stands after a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    quota: Quota,
    policy: Option<HeaderValue>,
    /// How many more requests may come at once.
    remaining: u32,
    /// After how many seconds the next one may come.
    wait: u32,
    /// Whether this one may.
    pub allowed: bool,
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> RateLimit<K> {
    /// So many for each key.
    pub fn new(quota: Quota, now: Instant) -> Self {
        let (name, most, window) = (quota.name(), quota.most, quota.window.as_secs());
        Self {
            quota,
            policy: HeaderValue::try_from(format!("{name};q={most};w={window}")).ok(),
            began: now,
            last_taken: AtomicU64::new(0),
            until: Cache::builder()
                .max_capacity(MOST)
                .time_to_idle(quota.window * 2)
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
        self.last_taken.fetch_max(now + 1, Ordering::Relaxed);
        let end = now + nanos(self.quota.window);
        let moved = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |until| {
            Some(until.max(now) + share).filter(|until| *until <= end)
        });
        let until = match moved {
            Ok(before) => before.max(now) + share,
            Err(before) => before,
        };
        Some(self.standing(until, now, share, moved.is_ok()))
    }

    /// Where a key stands whose requests last until then.
    fn standing(&self, until: u64, now: u64, share: u64, allowed: bool) -> Standing {
        let end = now + nanos(self.quota.window);
        let left = end.saturating_sub(until) / share;
        let wait = Duration::from_nanos((until + share).saturating_sub(end));
        Standing {
            quota: self.quota,
            policy: self.policy.clone(),
            remaining: u32::try_from(left).unwrap_or(u32::MAX),
            wait: u32::try_from(wait.as_secs() + 1).unwrap_or(u32::MAX),
            allowed,
        }
    }

    /// Where this key stands if its next request would be refused. Counts nothing.
    pub fn exhausted(&self, key: &K, now: Instant) -> Option<Standing> {
        let share = self.share()?;
        let now = nanos(now.duration_since(self.began));
        let last = self.last_taken.load(Ordering::Relaxed);
        if last == 0 || now > last + nanos(self.quota.window) {
            return None;
        }
        let cell = self.until.get(key)?;
        let until = cell.load(Ordering::Relaxed).max(now);
        let exhausted = until + share > now + nanos(self.quota.window);
        exhausted.then(|| self.standing(until, now, share, false))
    }

    /// A request's share of the window.
    fn share(&self) -> Option<u64> {
        nanos(self.quota.window).checked_div(u64::from(self.quota.most))
    }
}

/// Nanoseconds; enough for five hundred years.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Standing {
    /// What a refused caller is told.
    pub fn refusal(&self) -> Problem {
        let Quota {
            who,
            what,
            most,
            window,
        } = self.quota;
        let by = self.quota.name().replace('"', "");
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
        let Some(policy) = self.policy else { return };
        // The name of the policy, which ends with the second quotation mark, stands before both.
        let quoted = policy.as_bytes().split(|byte| *byte == b';').next();
        let mut standing = quoted.unwrap_or_default().to_vec();
        let (remaining, window) = (self.remaining, self.quota.window.as_secs());
        // Into memory, which does not fail.
        let _ = write!(standing, ";r={remaining};t={window}");
        if let Ok(standing) = HeaderValue::try_from(standing) {
            headers.append(POLICY, policy);
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
