//! The only source of time, and the generator of time-ordered identifiers.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use perennial_domain::Id;
use uuid::Uuid;

use crate::randomness::Randomness;

/// A clock. It is passed as a parameter, so that a sandbox can move it and a test can fix it.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The system clock.
    System,
    /// The system clock plus an offset in microseconds.
    Offset(&'static AtomicI64),
    /// A fixed instant, in microseconds since the Unix epoch.
    Fixed(&'static AtomicI64),
}

impl Clock {
    /// Creates a clock with an offset of 0. Leaks memory, so create it once per process.
    pub fn adjustable() -> Self {
        Self::Offset(Box::leak(Box::default()))
    }

    /// Creates a clock that returns `instant` until [`Self::set`] changes it. Leaks memory, so create
    /// it once per process.
    pub fn fixed(instant: Timestamp) -> Self {
        let clock = Self::Fixed(Box::leak(Box::default()));
        clock.set(instant.as_microsecond());
        clock
    }

    /// Sets the offset or the fixed instant, in microseconds. Has no effect on the system clock.
    pub fn set(self, micros: i64) {
        match self {
            Self::System => {}
            Self::Offset(value) | Self::Fixed(value) => value.store(micros, Ordering::Relaxed),
        }
    }

    /// Returns the current time with microsecond precision, like PostgreSQL timestamps.
    #[expect(
        clippy::disallowed_methods,
        reason = "the only caller of `Timestamp::now`"
    )]
    pub fn now(self) -> Timestamp {
        let micros = match self {
            Self::System => Timestamp::now().as_microsecond(),
            Self::Offset(offset) => {
                let offset = offset.load(Ordering::Relaxed);
                Timestamp::now().as_microsecond().saturating_add(offset)
            }
            Self::Fixed(instant) => instant.load(Ordering::Relaxed),
        };
        Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
    }

    /// Returns the time for a change to a record that was last changed at `last`. It is always later
    /// than `last`, even if the clocks of instances differ, so each change has its own timestamp.
    pub fn now_after(self, last: Timestamp) -> Timestamp {
        let tick = SignedDuration::from_micros(1);
        self.now().max(last.saturating_add(tick).unwrap_or(last))
    }
}

/// The two clocks of the service.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// For everything outside billing, such as users, sessions and keys.
    pub real: Clock,
    /// For subscriptions, payments and access. A sandbox can move it.
    pub billing: Clock,
}

/// Generates UUIDv7 identifiers, which are ordered by time.
#[derive(Debug, Clone, Copy)]
pub struct IdGenerator(pub Randomness);

impl IdGenerator {
    /// Generates an identifier with the timestamp `now`.
    pub fn generate<I: Id>(self, now: Timestamp) -> I {
        I::new(self.generate_uuid(now))
    }

    /// Generates a UUID with the timestamp `now`, for records without an [`Id`] type.
    pub fn generate_uuid(self, now: Timestamp) -> Uuid {
        let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
        uuid::Builder::from_unix_timestamp_millis(millis, &self.0.identifier_bytes()).into_uuid()
    }
}
