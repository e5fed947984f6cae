//! Pauses of accounts whose payment provider is down or limits requests, in this process.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use perennial_domain::{Id, PaymentAccountId};
use uuid::Uuid;

use super::fetched_object::FetchError;
use crate::{
    http::outbound::{ApiHttpError, RetryAfter},
    randomness::jitter,
};

const FIRST_RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Short enough that everything is applied within a minute after a provider is back.
pub const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// A provider's Retry-After is obeyed up to this.
const MAX_PROVIDER_PAUSE: Duration = Duration::from_mins(2);

/// Returns the pause after this many earlier failures in a row.
pub fn retry_interval(failures: u32, max: Duration) -> Duration {
    let factor = 2_u32.saturating_pow(failures.min(16));
    jitter(FIRST_RETRY_INTERVAL.saturating_mul(factor).min(max))
}

/// The accounts with whose API key no request is sent for a while, after failed ones.
#[derive(Debug, Default)]
pub struct AccountPauses(Mutex<HashMap<PaymentAccountId, AccountPause>>);

#[derive(Debug, Clone, Copy)]
struct AccountPause {
    failures: u32,
    until: Instant,
}

impl AccountPauses {
    fn lock(&self) -> MutexGuard<'_, HashMap<PaymentAccountId, AccountPause>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the accounts that are paused now.
    pub fn paused_accounts(&self) -> Vec<Uuid> {
        self.paused_accounts_at(Instant::now())
    }

    fn paused_accounts_at(&self, now: Instant) -> Vec<Uuid> {
        let pauses = self.lock();
        { pauses.iter() }
            .filter(|(_, pause)| now < pause.until)
            .map(|(account, _)| account.uuid())
            .collect()
    }

    /// Pauses an account after a failed request, and returns for how long. `time` is that of the response.
    pub fn pause(
        &self,
        account: PaymentAccountId,
        error: &FetchError,
        time: Timestamp,
    ) -> Duration {
        self.pause_at(account, error, time, Instant::now())
    }

    fn pause_at(
        &self,
        account: PaymentAccountId,
        error: &FetchError,
        time: Timestamp,
        now: Instant,
    ) -> Duration {
        let mut pauses = self.lock();
        let pause = pauses.entry(account).or_insert(AccountPause {
            failures: 0,
            until: now,
        });
        // Requests that were in flight together count once.
        if pause.until <= now {
            let interval = retry_interval(pause.failures, MAX_RETRY_INTERVAL);
            pause.failures = pause.failures.saturating_add(1);
            pause.until = now + interval;
        }
        if let FetchError::Http(ApiHttpError::RateLimited(Some(retry_after))) = error {
            let wait = match retry_after {
                RetryAfter::Seconds(seconds) => Duration::from_secs(u64::from(*seconds)),
                RetryAfter::At(at) => at.duration_since(time).try_into().unwrap_or_default(),
            };
            pause.until = pause.until.max(now + wait.min(MAX_PROVIDER_PAUSE));
        }
        pause.until.saturating_duration_since(now)
    }

    /// Ends the pause of an account, after a request that succeeded.
    pub fn resume(&self, account: PaymentAccountId) {
        self.lock().remove(&account);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_grows_obeys_retry_after_and_ends_with_a_success() {
        let pauses = AccountPauses::default();
        let account = PaymentAccountId::new(Uuid::max());
        let now = Timestamp::UNIX_EPOCH;
        let unavailable = FetchError::Http(ApiHttpError::Unavailable(503));
        let first = pauses.pause(account, &unavailable, now);
        assert!(first <= FIRST_RETRY_INTERVAL);
        assert_eq!(pauses.paused_accounts(), [Uuid::max()]);
        let limited = |seconds| {
            let retry_after = Some(RetryAfter::Seconds(seconds));
            FetchError::Http(ApiHttpError::RateLimited(retry_after))
        };
        let second = pauses.pause(account, &limited(7), now);
        assert!(second > Duration::from_secs(6), "{second:?}");
        let longest = pauses.pause(account, &limited(86_400), now);
        assert!(longest <= MAX_PROVIDER_PAUSE, "{longest:?}");
        pauses.resume(account);
        assert!(pauses.paused_accounts().is_empty());
        for failures in [0, 1, 5, 100, u32::MAX] {
            assert!(retry_interval(failures, MAX_RETRY_INTERVAL) <= MAX_RETRY_INTERVAL);
        }
    }

    #[test]
    fn outage_of_an_hour_causes_few_attempts_and_ends_within_half_a_minute() {
        let pauses = AccountPauses::default();
        let account = PaymentAccountId::new(Uuid::max());
        let unavailable = FetchError::Http(ApiHttpError::Unavailable(500));
        let started_at = Instant::now();
        let (mut now, mut attempts) = (started_at, 0);
        while now < started_at + Duration::from_hours(1) {
            let pause = pauses.pause_at(account, &unavailable, Timestamp::UNIX_EPOCH, now);
            assert!(pause <= MAX_RETRY_INTERVAL, "{pause:?}");
            assert_eq!(pauses.paused_accounts_at(now).len(), 1);
            now += pause;
            assert!(pauses.paused_accounts_at(now).is_empty());
            attempts += 1;
        }
        assert!((120..=250).contains(&attempts), "{attempts}");
    }
}
