//! A line of those who wait for the database, that does not grow for longer than it can be served.
//!
//! When more arrives than can be done, a line grows until everybody in it has given up, and the
//! database works for nobody. So whoever arrives while the first in line has waited for too long
//! is turned away at once: the line stays short, those in it are served in time, and the database
//! is never idle meanwhile. A burst passes: it is the time that somebody has waited that counts, not
//! how many came.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::Error;

/// How long the first in line may have waited when another one arrives.
const LONGEST: Duration = Duration::from_millis(200);

/// A line.
pub struct Line {
    name: &'static str,
    waiting: Mutex<Waiting>,
}

/// Who waits, in the order of arrival, and since when.
#[derive(Default)]
struct Waiting {
    next: u64,
    since: BTreeMap<u64, Instant>,
}

impl Waiting {
    /// Whether the first of them has not waited for too long.
    fn move_on(&self, now: Instant) -> bool {
        let first = self.since.first_key_value();
        first.is_none_or(|(_, since)| now.duration_since(*since) <= LONGEST)
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
        self.lock().move_on(now)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place at its end, kept until it is dropped; or not, if the line does not move.
    pub fn enter(&self, now: Instant) -> Result<Place<'_>, Error> {
        let mut waiting = self.lock();
        if !waiting.move_on(now) {
            return Err(Error::Busy(self.name));
        }
        let number = waiting.next;
        waiting.next += 1;
        waiting.since.insert(number, now);
        Ok(Place {
            line: self,
            number,
            since: now,
        })
    }
}

/// A place in a line.
pub struct Place<'a> {
    line: &'a Line,
    number: u64,
    since: Instant,
}

impl Place<'_> {
    /// How long it has been held.
    pub fn waited(&self, now: Instant) -> Duration {
        now.duration_since(self.since)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.line.lock().since.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_a_line_that_does_not_move_is_closed() {
        let line = Line::new("lane");
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let first = line.enter(at(0)).unwrap();
        let burst: Vec<_> = (0..1_000).map(|_| line.enter(at(0)).unwrap()).collect();
        let last = line.enter(at(200)).unwrap();
        assert!(matches!(line.enter(at(201)), Err(Error::Busy("lane"))));
        assert_eq!(first.waited(at(201)), Duration::from_millis(201));
        drop((first, burst));
        // The one that came last is now the first, and has waited for a millisecond.
        drop(line.enter(at(201)).unwrap());
        drop(last);
        drop(line.enter(at(9_000)).unwrap());
    }
}
