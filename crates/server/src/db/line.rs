//! A line of those who wait for the database, that does not grow for longer than it can be served.
//!
//! When more arrives than can be done, a line grows until everybody in it has given up, and the
//! database works for nobody. So whoever would have to wait for too long is turned away at once: the
//! line stays short, those in it are served in time, and the database is never idle meanwhile.
//!
//! A burst passes, however many it is: a line that was empty a moment ago takes everybody. Only one that
//! has stood for a while is judged, by how many are in it and how fast it has moved of late; and one that
//! does not move at all takes nobody.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::Error;

/// How long anybody should have to wait in a line that stands.
const LONGEST: Duration = Duration::from_millis(200);
/// How long a line may be without a step. More than a hiccup of a healthy disk.
const STUCK: Duration = Duration::from_millis(500);

/// A line.
pub struct Line {
    name: &'static str,
    waiting: Mutex<Waiting>,
}

/// Who waits, and how it goes.
#[derive(Default)]
struct Waiting {
    inside: usize,
    /// Since when it has not been empty.
    began: Option<Instant>,
    /// When it last moved, or began.
    moved: Option<Instant>,
    /// How many steps there were since when, and the longest pause among them; and the time per step before
    /// that.
    steps: u32,
    counted_since: Option<Instant>,
    longest_pause: Duration,
    pace: Duration,
}

impl Waiting {
    /// Whether one more would be served in time.
    fn is_open(&self, now: Instant) -> bool {
        let ahead = u32::try_from(self.inside).unwrap_or(u32::MAX);
        let longer_ago = |than: Duration| move |since: Instant| now.duration_since(since) > than;
        let stuck = self.moved.is_some_and(longer_ago(STUCK));
        let stands = self.began.is_some_and(longer_ago(LONGEST));
        let too_long = stands && self.pace.saturating_mul(ahead) > LONGEST;
        ahead == 0 || !(stuck || too_long)
    }
}

impl Waiting {
    /// The first one enters.
    fn begin(&mut self, now: Instant) {
        self.began = Some(now);
        self.moved = Some(now);
        self.count_anew(now);
    }

    fn count_anew(&mut self, now: Instant) {
        self.counted_since = Some(now);
        self.steps = 0;
        self.longest_pause = Duration::ZERO;
    }

    /// Somebody was served. The pace is that of a whole stretch without its longest pause: a machine that
    /// holds its breath once is not slow.
    fn step(&mut self, now: Instant) {
        let since =
            |earlier: Option<Instant>| earlier.map_or(Duration::ZERO, |at| now.duration_since(at));
        self.longest_pause = self.longest_pause.max(since(self.moved));
        self.moved = Some(now);
        let moving = since(self.counted_since).saturating_sub(self.longest_pause);
        if self.steps > 0 && moving >= LONGEST {
            self.pace = moving / self.steps;
            self.count_anew(now);
        } else {
            self.steps += 1;
        }
    }
}

impl Line {
    /// An empty one.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            waiting: Mutex::default(),
        }
    }

    /// Whether another one may enter.
    pub fn is_open(&self, now: Instant) -> bool {
        self.lock().is_open(now)
    }

    /// A place at its end, kept until it is dropped; or not, if it would not be served in time.
    pub fn enter(&self, now: Instant) -> Result<Place<'_>, Error> {
        let mut waiting = self.lock();
        if !waiting.is_open(now) {
            return Err(Error::Busy(self.name));
        }
        if waiting.inside == 0 {
            waiting.begin(now);
        }
        waiting.inside += 1;
        Ok(Place {
            line: self,
            since: now,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in a line. Dropped, it is given up; that does not count as a step.
pub struct Place<'a> {
    line: &'a Line,
    since: Instant,
}

impl Place<'_> {
    /// It is one's turn; answers how long that took.
    pub fn served(self, now: Instant) -> Duration {
        self.line.lock().step(now);
        now.duration_since(self.since)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.line.lock().inside -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn a_burst_passes_and_a_line_that_does_not_move_is_closed() {
        let line = Line::new("lane");
        let start = Instant::now();
        let first = line.enter(start).unwrap();
        let burst: Vec<_> = (0..1_000).map(|_| line.enter(start).unwrap()).collect();
        drop(line.enter(at(start, 500)).unwrap());
        let late = line.enter(at(start, 501));
        assert!(matches!(late, Err(Error::Busy("lane"))));
        // Who gives up is no step; who is served is one.
        drop(first);
        assert!(!line.is_open(at(start, 501)));
        for place in burst {
            place.served(at(start, 502));
        }
        drop(line.enter(at(start, 503)).unwrap());
        drop(line.enter(at(start, 9_000)).unwrap());
    }

    /// A hundred arrive for every twenty that are served: after the first onrush the line settles at what is
    /// served in time.
    #[test]
    fn nobody_waits_for_much_longer_than_is_meant() {
        let line = Line::new("connection");
        let start = Instant::now();
        let (mut inside, mut longest, mut served) =
            (std::collections::VecDeque::new(), Duration::ZERO, 0);
        for millis in 0..10_000 {
            let now = at(start, millis);
            inside.extend(line.enter(now));
            if millis % 5 == 0
                && let Some(place) = inside.pop_front()
            {
                let waited = place.served(now);
                if millis > 2_000 {
                    longest = longest.max(waited);
                }
                served += 1;
            }
        }
        assert!(served > 1_990, "{served}");
        assert!(longest < Duration::from_millis(300), "{longest:?}");
    }

    /// The machine holds its breath while a burst stands in line: everybody is served, and nobody who comes
    /// meanwhile is turned away.
    #[test]
    fn a_pause_is_not_a_pace() {
        let line = Line::new("lane");
        let start = Instant::now();
        let mut inside: std::collections::VecDeque<_> =
            (0..50).map(|_| line.enter(start).unwrap()).collect();
        for millis in 400..1_000 {
            let now = at(start, millis);
            inside.push_back(line.enter(now).expect("it was one pause"));
            inside.pop_front().unwrap().served(now);
        }
    }

    /// Answers that come in heaps, far apart, are a pace all the same.
    #[test]
    fn heaps_are_a_pace() {
        let line = Line::new("lane");
        let start = Instant::now();
        let mut inside = std::collections::VecDeque::new();
        let mut longest = 0;
        for millis in 0..5_000 {
            let now = at(start, millis);
            inside.extend(line.enter(now));
            if millis % 300 == 299 {
                for place in inside.drain(..inside.len().min(30)) {
                    place.served(now);
                }
            }
            longest = longest.max(inside.len());
        }
        // Ten milliseconds per step: the onrush of the first stretches passes, then the line is closed
        // until it is short again.
        assert!(longest < 1_000 && inside.len() < 700, "{longest}");
    }

    /// A busy line that hesitates once goes on as before.
    #[test]
    fn one_slow_step_is_not_many() {
        let line = Line::new("connection");
        let start = Instant::now();
        let mut inside: std::collections::VecDeque<_> =
            (0..50).map(|_| line.enter(start).unwrap()).collect();
        for millis in (1..1_000).chain(1_150..2_000) {
            let now = at(start, millis);
            inside.push_back(line.enter(now).expect("one in, one out"));
            inside.pop_front().unwrap().served(now);
        }
    }
}
