//! The one source of time.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use perennial_domain::Id;
use uuid::Uuid;

use crate::randomness::Randomness;

/// Tells the time. A parameter where it is needed, so that a sandbox can move it and a test can hold it still.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The machine's clock.
    System,
    /// So many microseconds ahead of the machine's clock.
    Ahead(&'static AtomicI64),
    /// Always this instant, in microseconds, until it is set to another.
    Held(&'static AtomicI64),
}

impl Clock {
    /// One that goes with the machine's, until it is moved ahead of it. Made once for as long as the process runs.
    pub fn movable() -> Self {
        Self::Ahead(Box::leak(Box::default()))
    }

    /// One that stands still. Made once for as long as the process runs.
    pub fn held(at: Timestamp) -> Self {
        let held = Self::Held(Box::leak(Box::default()));
        held.set(at.as_microsecond());
        held
    }

    /// Moves it: to so many microseconds ahead, or after 1970. The machine's cannot be moved.
    pub fn set(self, micros: i64) {
        match self {
            Self::System => {}
            Self::Ahead(at) | Self::Held(at) => at.store(micros, Ordering::Relaxed),
        }
    }

    /// The instant that it is, at the microseconds that the database stores.
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn now(self) -> Timestamp {
        let micros = match self {
            Self::System => Timestamp::now().as_microsecond(),
            Self::Ahead(by) => {
                let ahead = by.load(Ordering::Relaxed);
                Timestamp::now().as_microsecond().saturating_add(ahead)
            }
            Self::Held(at) => at.load(Ordering::Relaxed),
        };
        Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
    }
}

impl Clock {
    /// The instant of a change to something that was last changed then: later than that, whatever the clocks of other
    /// instances said, so that no two changes of one thing share an instant.
    pub fn after(self, last: Timestamp) -> Timestamp {
        let tick = SignedDuration::from_micros(1);
        self.now().max(last.saturating_add(tick).unwrap_or(last))
    }
}

/// The time, and what time it is for subscriptions, payments and access, which a sandbox can move.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// For everything else.
    pub real: Clock,
    /// For those.
    pub billing: Clock,
}

/// Makes identifiers: UUIDv7, in the order of time.
#[derive(Debug, Clone, Copy)]
pub struct Ids(pub Randomness);

impl Ids {
    /// A new identifier, made at `now`.
    pub fn next<I: Id>(self, now: Timestamp) -> I {
        I::new(self.uuid(now))
    }

    /// The same, of something that is named by nothing else.
    pub fn uuid(self, now: Timestamp) -> Uuid {
        let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
        uuid::Builder::from_unix_timestamp_millis(millis, &self.0.name()).into_uuid()
    }
}
