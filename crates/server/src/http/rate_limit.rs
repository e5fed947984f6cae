//! Rate limits by the generic cell rate algorithm (GCRA).
//!
//! Each key has one number: the theoretical arrival time (TAT), up to which its requests so far would
//! last if they were spread evenly. A request advances the TAT by `window / limit` and is rejected if
//! the TAT would be more than one window ahead of now. So a burst of `limit` requests is allowed, and
//! a steady stream at exactly the limit.

use std::{
    convert::Infallible,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use arrayvec::ArrayString;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use quick_cache::sync::Cache;

use super::problem::{Code, Problem};

const POLICY_HEADER: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT_HEADER: HeaderName = HeaderName::from_static("ratelimit");
/// Beyond this number the least used keys are evicted and start with a full quota again.
const MAX_KEYS: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// What the quota applies to: client, peer, ….
    pub subject: &'static str,
    /// What is counted: requests, sign-ins, ….
    pub unit: &'static str,
    /// Per window; 0 for no limit.
    pub limit: u32,
    pub window: Duration,
}

/// A quota with its name and its header RateLimit-Policy.
#[derive(Debug, PartialEq, Eq)]
struct QuotaPolicy {
    quota: Quota,
    name: String,
    header: HeaderValue,
}

impl QuotaPolicy {
    fn new(quota: Quota) -> Self {
        let Quota {
            subject,
            unit,
            limit,
            window,
        } = quota;
        let name = match unit {
            "requests" => subject.to_owned(),
            unit => format!("{unit} of a {subject}"),
        };
        let header = format!("\"{name}\";q={limit};w={}", window.as_secs());
        Self {
            quota,
            name,
            // Hot path: rendered once, and leaked because a static value needs no reference count (measured,
            // with the reserved header capacity: session check -2,500 instructions).
            header: HeaderValue::from_static(header.leak()),
        }
    }
}

/// A quota for each of many keys.
pub struct RateLimit<K> {
    policy: QuotaPolicy,
    /// All times are nanoseconds since this instant.
    epoch: Instant,
    /// An upper bound of all TATs. Hot path: once it has passed, `exhausted` needs no lookup (measured, with
    /// other removed lookups and formatting: session check 40,500 to 33,100 instructions).
    latest_tat: AtomicU64,
    counters: Cache<K, RateCounter>,
}

/// The TAT of one key.
#[derive(Debug, Clone, Default)]
pub struct RateCounter(Arc<AtomicU64>);

/// Whether a request is within its quota.
#[derive(Debug, PartialEq, Eq)]
pub struct RateLimitDecision<'a> {
    policy: &'a QuotaPolicy,
    /// The number of requests that would be allowed now.
    remaining: u32,
    /// Seconds until the next request is allowed.
    wait: u32,
    pub allowed: bool,
}

impl<K: Hash + Eq + Clone> RateLimit<K> {
    pub fn new(quota: Quota, now: Instant) -> Self {
        Self {
            policy: QuotaPolicy::new(quota),
            epoch: now,
            latest_tat: AtomicU64::new(0),
            counters: Cache::new(MAX_KEYS),
        }
    }

    /// Returns the counter of a key. A caller that keeps it should call this again every minute: the cache may
    /// evict it and create another one, and the key then has two quotas.
    pub fn counter(&self, key: &K) -> RateCounter {
        let new = || Ok::<_, Infallible>(RateCounter::default());
        let Ok(counter) = self.counters.get_or_insert_with(key, new);
        counter
    }

    /// Counts a request. Returns `None` if there is no limit.
    pub fn check(&self, key: &K, now: Instant) -> Option<RateLimitDecision<'_>> {
        self.increment()?;
        self.check_counter(&self.counter(key), now)
    }

    /// Counts a request of the key that has this counter. Returns `None` if there is no limit.
    pub fn check_counter(
        &self,
        RateCounter(tat): &RateCounter,
        now: Instant,
    ) -> Option<RateLimitDecision<'_>> {
        let increment = self.increment()?;
        let (now, window) = (self.nanos(now), nanos(self.policy.quota.window));
        let max_tat = now + window;
        // One window more than necessary, so that this shared value is seldom written.
        if self.latest_tat.load(Ordering::Relaxed) < max_tat {
            self.latest_tat
                .fetch_max(max_tat + window, Ordering::Relaxed);
        }
        let update = tat.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |tat| {
            Some(tat.max(now) + increment).filter(|tat| *tat <= max_tat)
        });
        let tat = match update {
            Ok(previous) => previous.max(now) + increment,
            Err(current) => current,
        };
        Some(self.decision(tat, now, increment, update.is_ok()))
    }

    fn decision(&self, tat: u64, now: u64, increment: u64, allowed: bool) -> RateLimitDecision<'_> {
        let max_tat = now + nanos(self.policy.quota.window);
        let remaining = max_tat.saturating_sub(tat) / increment;
        let wait = Duration::from_nanos((tat + increment).saturating_sub(max_tat));
        RateLimitDecision {
            policy: &self.policy,
            remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
            wait: u32::try_from(wait.as_secs() + 1).unwrap_or(u32::MAX),
            allowed,
        }
    }

    /// Returns a decision if the key's next request would be rejected. Counts nothing.
    pub fn exhausted(&self, key: &K, now: Instant) -> Option<RateLimitDecision<'_>> {
        let increment = self.increment()?;
        let now = self.nanos(now);
        if now > self.latest_tat.load(Ordering::Relaxed) {
            return None;
        }
        let RateCounter(tat) = self.counters.get(key)?;
        let tat = tat.load(Ordering::Relaxed).max(now);
        let exhausted = tat + increment > now + nanos(self.policy.quota.window);
        exhausted.then(|| self.decision(tat, now, increment, false))
    }

    /// Returns by how much a request advances the TAT, or `None` if there is no limit.
    fn increment(&self) -> Option<u64> {
        let Quota { limit, window, .. } = self.policy.quota;
        nanos(window).checked_div(u64::from(limit))
    }

    fn nanos(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(self.epoch))
    }
}

/// Converts a duration to nanoseconds. A `u64` is sufficient for 500 years.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl RateLimitDecision<'_> {
    /// Returns the problem of a rejected request, and counts it in the metrics.
    pub fn to_problem(&self) -> Problem {
        let Quota {
            subject,
            unit,
            limit,
            window,
        } = self.policy.quota;
        let by = self.policy.name.clone();
        metrics::counter!("perennial_shed_total", "by" => by).increment(1);
        let period = match window.as_secs() {
            1 => "second",
            _ => "minute",
        };
        // Headers and metrics keep the name "peer", which is part of the API.
        let subject = match subject {
            "peer" => "IP address",
            "peer/56" => "IPv6 network (/56)",
            "peer/48" => "IPv6 network (/48)",
            subject => subject,
        };
        let detail = format!(
            "more than {limit} {unit} per {period} from this {subject}; retry after the seconds in Retry-After"
        );
        Problem::retryable(Code::RateLimited, detail).retry_after(self.wait)
    }

    /// Appends the headers of draft-ietf-httpapi-ratelimit-headers: quota and window in seconds (`q`, `w`),
    /// what remains and when the whole quota is available again (`r`, `t`).
    pub fn write_headers(self, headers: &mut HeaderMap) {
        let QuotaPolicy {
            quota,
            name,
            header,
        } = self.policy;
        // Hot path: concatenated on the stack, without `format!` (measured, with other removed lookups and
        // formatting: session check 40,500 to 33,100 instructions).
        let (mut remaining, mut window) = (itoa::Buffer::new(), itoa::Buffer::new());
        let parts = [
            "\"",
            name,
            "\";r=",
            remaining.format(self.remaining),
            ";t=",
            window.format(quota.window.as_secs()),
        ];
        let mut limit = ArrayString::<64>::new();
        let fits = parts.iter().try_for_each(|part| limit.try_push_str(part));
        if let (Ok(()), Ok(limit)) = (fits, HeaderValue::from_str(&limit)) {
            headers.append(POLICY_HEADER, header.clone());
            headers.append(LIMIT_HEADER, limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(limit: u32) -> Quota {
        Quota {
            subject: "client",
            unit: "requests",
            limit,
            window: Duration::from_secs(1),
        }
    }

    #[test]
    fn rejected_request_reports_seconds_to_wait() {
        let start = Instant::now();
        let quota = Quota {
            unit: "sign-ins",
            window: Duration::from_mins(1),
            ..requests(4)
        };
        let limit = RateLimit::new(quota, start);
        for _ in 0..4 {
            assert!(limit.check(&1, start).unwrap().allowed);
        }
        let rejected = limit.check(&1, start + Duration::from_secs(5)).unwrap();
        assert_eq!((rejected.allowed, rejected.wait), (false, 11));
        let mut headers = HeaderMap::new();
        rejected.write_headers(&mut headers);
        let policy = headers.get(POLICY_HEADER).unwrap();
        assert_eq!(policy, "\"sign-ins of a client\";q=4;w=60");
    }

    #[test]
    fn burst_of_one_window_is_allowed_then_the_steady_rate() {
        let start = Instant::now();
        let limit = RateLimit::new(requests(10), start);
        let at = |millis| start + Duration::from_millis(millis);
        let check = |key, millis| limit.check(&key, at(millis)).unwrap();
        for left in (0..10).rev() {
            let decision = check(1, 0);
            assert_eq!((decision.allowed, decision.remaining), (true, left));
        }
        assert_eq!(limit.exhausted(&1, at(0)).unwrap().wait, 1);
        assert!(!check(1, 0).allowed && !check(1, 99).allowed);
        // Another key has its own quota.
        assert!(check(2, 0).allowed && limit.exhausted(&2, at(0)).is_none());
        // After 100 ms one request is allowed again; rejected requests cost nothing.
        assert_eq!(limit.exhausted(&1, at(100)), None);
        assert!(check(1, 100).allowed && !check(1, 100).allowed);
        // After a second or more the whole quota is available, not more.
        assert_eq!(check(1, 5_000).remaining, 9);

        let mut headers = HeaderMap::new();
        check(1, 5_000).write_headers(&mut headers);
        assert_eq!(headers.get(POLICY_HEADER).unwrap(), "\"client\";q=10;w=1");
        assert_eq!(headers.get(LIMIT_HEADER).unwrap(), "\"client\";r=8;t=1");
    }

    #[test]
    fn limit_of_zero_allows_all_requests() {
        let limit = RateLimit::new(requests(0), Instant::now());
        assert_eq!(limit.check(&1, Instant::now()), None);
        assert_eq!(limit.exhausted(&1, Instant::now()), None);
    }
}
