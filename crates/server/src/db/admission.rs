//! Admission control: rejects a request whose estimated queueing time exceeds 200 ms.
//!
//! Under overload an unbounded queue grows until all waiting clients have given up, and the database
//! then works on requests without a client. Rejecting early keeps the queue short, and the requests
//! in it are served in time.
//!
//! Bursts are accepted: a queue that was empty within the last 200 ms accepts every request. After
//! that, the estimate is the queue's length times the recent service time per request. A queue that
//! has not served any request for 500 ms accepts none.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::Error;

/// The longest acceptable estimated queueing time. Also the duration of a burst and the minimum
/// duration of a measurement.
const MAX_WAIT: Duration = Duration::from_millis(200);
/// A queue that serves no request for this long is stalled. A healthy disk pauses for less.
const STALL_TIMEOUT: Duration = Duration::from_millis(500);

pub struct AdmissionQueue {
    name: &'static str,
    state: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    waiting: usize,
    nonempty_since: Option<Instant>,
    /// When a request was last served, or when the queue became nonempty.
    last_progress: Option<Instant>,
    /// The start of the current measurement.
    measured_since: Option<Instant>,
    /// The requests served during the current measurement.
    served: u32,
    /// The longest time without progress during the current measurement.
    longest_gap: Duration,
    /// The service time per request by the last complete measurement.
    service_time: Duration,
}

impl QueueState {
    /// Returns whether another request would be served in time.
    fn accepts(&self, now: Instant) -> bool {
        let ahead = u32::try_from(self.waiting).unwrap_or(u32::MAX);
        let older_than = |limit: Duration| move |since: Instant| now.duration_since(since) > limit;
        let is_stalled = self.last_progress.is_some_and(older_than(STALL_TIMEOUT));
        let is_past_burst = self.nonempty_since.is_some_and(older_than(MAX_WAIT));
        let is_too_long = is_past_burst && self.service_time.saturating_mul(ahead) > MAX_WAIT;
        ahead == 0 || !(is_stalled || is_too_long)
    }

    fn on_first_request(&mut self, now: Instant) {
        self.nonempty_since = Some(now);
        self.last_progress = Some(now);
        self.restart_measurement(now);
    }

    fn restart_measurement(&mut self, now: Instant) {
        self.measured_since = Some(now);
        self.served = 0;
        self.longest_gap = Duration::ZERO;
    }

    /// Counts a served request. The longest gap of a measurement is left out, so that a single
    /// pause of the machine does not count as slow service.
    fn on_served(&mut self, now: Instant) {
        let since =
            |earlier: Option<Instant>| earlier.map_or(Duration::ZERO, |at| now.duration_since(at));
        self.longest_gap = self.longest_gap.max(since(self.last_progress));
        self.last_progress = Some(now);
        let measured = since(self.measured_since).saturating_sub(self.longest_gap);
        if self.served > 0 && measured >= MAX_WAIT {
            self.service_time = measured / self.served;
            self.restart_measurement(now);
        } else {
            self.served += 1;
        }
    }
}

impl AdmissionQueue {
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            state: Mutex::default(),
        }
    }

    /// Returns whether another request would be served in time.
    pub fn accepts(&self, now: Instant) -> bool {
        self.lock().accepts(now)
    }

    /// Takes a slot at the end of the queue, or fails with [`Error::Busy`].
    pub fn enter(&self, now: Instant) -> Result<QueueSlot<'_>, Error> {
        let mut state = self.lock();
        if !state.accepts(now) {
            return Err(Error::Busy(self.name));
        }
        if state.waiting == 0 {
            state.on_first_request(now);
        }
        state.waiting += 1;
        Ok(QueueSlot {
            queue: self,
            entered_at: now,
        })
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request's slot in the queue. Dropping it leaves the queue without counting as served.
pub struct QueueSlot<'a> {
    queue: &'a AdmissionQueue,
    entered_at: Instant,
}

impl QueueSlot<'_> {
    /// Leaves the queue as served and returns the time spent in it.
    pub fn served(self, now: Instant) -> Duration {
        self.queue.lock().on_served(now);
        now.duration_since(self.entered_at)
    }
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.queue.lock().waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn at(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn burst_is_accepted_and_stalled_queue_rejects() {
        let queue = AdmissionQueue::new("lane");
        let start = Instant::now();
        let first = queue.enter(start).unwrap();
        let burst: Vec<_> = (0..1_000).map(|_| queue.enter(start).unwrap()).collect();
        drop(queue.enter(at(start, 500)).unwrap());
        let late = queue.enter(at(start, 501));
        assert!(matches!(late, Err(Error::Busy("lane"))));
        // A dropped slot is no progress; a served one is.
        drop(first);
        assert!(!queue.accepts(at(start, 501)));
        for slot in burst {
            slot.served(at(start, 502));
        }
        drop(queue.enter(at(start, 503)).unwrap());
        drop(queue.enter(at(start, 9_000)).unwrap());
    }

    /// Five requests arrive for each one that is served.
    #[test]
    fn overloaded_queue_keeps_wait_near_the_limit() {
        let queue = AdmissionQueue::new("connection");
        let start = Instant::now();
        let (mut slots, mut longest, mut served) = (VecDeque::new(), Duration::ZERO, 0);
        for millis in 0..10_000 {
            let now = at(start, millis);
            slots.extend(queue.enter(now));
            if millis % 5 == 0
                && let Some(slot) = slots.pop_front()
            {
                let waited = slot.served(now);
                if millis > 2_000 {
                    longest = longest.max(waited);
                }
                served += 1;
            }
        }
        assert!(served > 1_990, "{served}");
        assert!(longest < Duration::from_millis(300), "{longest:?}");
    }

    #[test]
    fn single_pause_during_burst_rejects_no_request() {
        let queue = AdmissionQueue::new("lane");
        let start = Instant::now();
        let mut slots: VecDeque<_> = (0..50).map(|_| queue.enter(start).unwrap()).collect();
        for millis in 400..1_000 {
            let now = at(start, millis);
            slots.push_back(queue.enter(now).expect("there was only one pause"));
            slots.pop_front().unwrap().served(now);
        }
    }

    #[test]
    fn responses_in_batches_limit_the_queue() {
        let queue = AdmissionQueue::new("lane");
        let start = Instant::now();
        let mut slots = VecDeque::new();
        let mut longest = 0;
        for millis in 0..5_000 {
            let now = at(start, millis);
            slots.extend(queue.enter(now));
            if millis % 300 == 299 {
                for slot in slots.drain(..slots.len().min(30)) {
                    slot.served(now);
                }
            }
            longest = longest.max(slots.len());
        }
        // 10 ms per request: the burst of the first measurements is accepted, then the queue
        // rejects until it is short again.
        assert!(longest < 1_000 && slots.len() < 700, "{longest}");
    }

    #[test]
    fn single_pause_of_steady_load_rejects_no_request() {
        let queue = AdmissionQueue::new("connection");
        let start = Instant::now();
        let mut slots: VecDeque<_> = (0..50).map(|_| queue.enter(start).unwrap()).collect();
        for millis in (1..1_000).chain(1_150..2_000) {
            let now = at(start, millis);
            slots.push_back(queue.enter(now).expect("one in, one out"));
            slots.pop_front().unwrap().served(now);
        }
    }
}
