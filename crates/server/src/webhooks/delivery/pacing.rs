//! How many requests an endpoint gets at a time, and when it is left alone.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::randomness::jitter;

/// Requests in flight to one endpoint.
const MAX_WINDOW: usize = 8;
/// After this many failures in a row without a success, requests pause.
const MAX_FAILURES_IN_A_ROW: u32 = 10;
const FIRST_PAUSE_INTERVAL: Duration = Duration::from_secs(5);
const MAX_PAUSE_INTERVAL: Duration = Duration::from_mins(5);
/// The longest pause that an endpoint can request with Retry-After.
const MAX_REQUESTED_PAUSE_INTERVAL: Duration = Duration::from_hours(1);
/// An endpoint whose median response takes longer is slow, and a request without a response for longer.
pub const SLOW_RESPONSE: Duration = Duration::from_secs(1);
/// The number of responses that the median is taken of.
const MAX_SAMPLES: usize = 15;

/// The pace of requests to one endpoint: doubles with each success, halves with each sign of overload.
#[derive(Debug)]
pub struct Pacing {
    window: usize,
    failures_in_a_row: u32,
    paused_until: Option<Instant>,
    durations: VecDeque<Duration>,
}

impl Pacing {
    /// Continues after this many failures in a row and with the rest of a pause.
    pub fn new(failures_in_a_row: u32, pause: Duration, now: Instant) -> Self {
        Self {
            window: 1,
            failures_in_a_row,
            paused_until: Some(now + pause),
            durations: VecDeque::new(),
        }
    }

    /// Returns the number of requests that may be in flight. While an endpoint is down, it is 1.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Returns until when no request may be started.
    pub fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.paused_until.filter(|until| *until > now)
    }

    /// Returns whether the endpoint has responded slowly.
    pub fn is_slow(&self) -> bool {
        let mut sorted: Vec<Duration> = self.durations.iter().copied().collect();
        sorted.sort_unstable();
        let median = sorted.get(sorted.len() / 2);
        median.is_some_and(|median| *median > SLOW_RESPONSE)
    }

    /// Returns whether requests were paused because of failures.
    pub fn is_down(&self) -> bool {
        self.failures_in_a_row >= MAX_FAILURES_IN_A_ROW
    }

    pub fn record_success(&mut self, duration: Duration) {
        self.record_duration(duration);
        self.window = (self.window * 2).min(MAX_WINDOW);
        self.failures_in_a_row = 0;
        self.paused_until = None;
    }

    /// Returns the number of failures in a row after another one, and the pause that it causes.
    pub fn next_failure(&self, requested_pause: Option<Duration>) -> (u32, Option<Duration>) {
        let failures_in_a_row = self.failures_in_a_row.saturating_add(1);
        let requested = requested_pause.map(|pause| pause.min(MAX_REQUESTED_PAUSE_INTERVAL));
        let Some(exponent) = failures_in_a_row.checked_sub(MAX_FAILURES_IN_A_ROW) else {
            return (failures_in_a_row, requested);
        };
        let factor = 2_u32.saturating_pow(exponent.min(20));
        let backoff = FIRST_PAUSE_INTERVAL.saturating_mul(factor);
        let backoff = jitter(backoff.min(MAX_PAUSE_INTERVAL));
        (failures_in_a_row, requested.max(Some(backoff)))
    }

    /// Records a failure and the pause that it causes.
    pub fn record_failure(
        &mut self,
        duration: Duration,
        is_overloaded: bool,
        pause: Option<Duration>,
        now: Instant,
    ) {
        self.record_duration(duration);
        if is_overloaded {
            self.window = (self.window / 2).max(1);
        }
        self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
        if self.is_down() {
            self.window = 1;
        }
        if let Some(pause) = pause {
            self.paused_until = Some(now + pause);
        }
    }

    fn record_duration(&mut self, duration: Duration) {
        if self.durations.len() == MAX_SAMPLES {
            self.durations.pop_front();
        }
        self.durations.push_back(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Duration = Duration::from_millis(20);

    fn new_pacing() -> Pacing {
        Pacing::new(0, Duration::ZERO, Instant::now())
    }

    fn fail(pacing: &mut Pacing, requested_pause: Option<Duration>, now: Instant) {
        let (_, pause) = pacing.next_failure(requested_pause);
        pacing.record_failure(FAST, true, pause, now);
    }

    #[test]
    fn window_doubles_on_success_and_halves_on_overload() {
        let mut pacing = new_pacing();
        let mut windows = vec![pacing.window()];
        for _ in 0..4 {
            pacing.record_success(FAST);
            windows.push(pacing.window());
        }
        assert_eq!(windows, [1, 2, 4, 8, 8]);
        let now = Instant::now();
        pacing.record_failure(FAST, false, None, now);
        assert_eq!(pacing.window(), 8);
        for expected in [4, 2, 1, 1] {
            fail(&mut pacing, None, now);
            assert_eq!(pacing.window(), expected);
        }
        assert_eq!(pacing.paused_until(now), None);
    }

    #[test]
    fn endpoint_that_is_down_gets_one_request_per_pause() {
        let (mut pacing, now) = (new_pacing(), Instant::now());
        for _ in 0..9 {
            fail(&mut pacing, None, now);
        }
        assert_eq!(pacing.paused_until(now), None);
        fail(&mut pacing, None, now);
        let pause = pacing.paused_until(now).unwrap() - now;
        assert!(pause <= FIRST_PAUSE_INTERVAL && pause >= FIRST_PAUSE_INTERVAL / 2);
        for _ in 0..100 {
            fail(&mut pacing, None, now);
        }
        let pause = pacing.paused_until(now).unwrap() - now;
        assert!(pause <= MAX_PAUSE_INTERVAL && pause >= MAX_PAUSE_INTERVAL / 2);
        pacing.record_success(FAST);
        assert_eq!((pacing.paused_until(now), pacing.window()), (None, 2));
    }

    #[test]
    fn pace_continues_in_another_process() {
        let now = Instant::now();
        let pause = Duration::from_mins(3);
        let pacing = Pacing::new(30, pause, now);
        assert_eq!(pacing.paused_until(now), Some(now + pause));
        assert!(pacing.is_down());
        let (failures, pause) = pacing.next_failure(None);
        assert_eq!(failures, 31);
        assert!(pause.unwrap() >= MAX_PAUSE_INTERVAL / 2);
    }

    #[test]
    fn requested_pause_is_limited() {
        let (mut pacing, now) = (new_pacing(), Instant::now());
        fail(&mut pacing, Some(Duration::from_secs(30)), now);
        assert_eq!(
            pacing.paused_until(now).unwrap() - now,
            Duration::from_secs(30)
        );
        fail(&mut pacing, Some(Duration::from_hours(48)), now);
        assert_eq!(
            pacing.paused_until(now).unwrap() - now,
            Duration::from_hours(1)
        );
    }

    #[test]
    fn endpoint_is_slow_by_its_median_response() {
        let mut pacing = new_pacing();
        assert!(!pacing.is_slow());
        pacing.record_success(FAST);
        assert!(!pacing.is_slow());
        for _ in 0..2 {
            pacing.record_success(Duration::from_secs(2));
        }
        assert!(pacing.is_slow());
        for _ in 0..MAX_SAMPLES {
            pacing.record_success(FAST);
        }
        assert!(!pacing.is_slow());
    }
}
