//! The one source of time.

use jiff::Timestamp;
use perennial_domain::Id;
use uuid::Uuid;

use crate::randomness::Randomness;

/// Tells the time. A parameter where it is needed, so that a test can hold it still.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The machine's clock.
    System,
    /// Always this instant.
    Fixed(Timestamp),
}

impl Clock {
    /// The instant that it is, at the microseconds that the database stores.
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn now(self) -> Timestamp {
        match self {
            Self::System => {
                let now = Timestamp::now();
                Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
            }
            Self::Fixed(instant) => instant,
        }
    }
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
