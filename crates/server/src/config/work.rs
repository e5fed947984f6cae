//! Background work.

use super::key::{Key, Reader};

static WORKERS: Key = Key {
    name: "PERENNIAL_WORKERS",
    doc: "How many workers of each background task run in this process. `0` switches background \
          work off in `perennial serve`; then run `perennial work` beside it. At most 100.",
    default: Some("1"),
    secret: false,
};

static EVENT_RETENTION_MONTHS: Key = Key {
    name: "PERENNIAL_EVENT_RETENTION_MONTHS",
    doc: "How many whole months of events are kept before the current one. `0` keeps them for ever. \
          Events are the audit trail: what is removed is gone.",
    default: Some("0"),
    secret: false,
};

/// The keys of this section.
pub static KEYS: &[&Key] = &[&WORKERS, &EVENT_RETENTION_MONTHS];

/// Background work.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// Workers of each task in this process.
    pub workers: u16,
    /// Whole months of events to keep; 0 is for ever.
    pub event_retention_months: u16,
}

impl Work {
    pub(super) fn read(reader: &mut Reader) -> Option<Self> {
        let workers = reader.whole(&WORKERS, 0..=100);
        let event_retention_months = reader.whole(&EVENT_RETENTION_MONTHS, 0..=1_200);
        Some(Self {
            workers: workers?,
            event_retention_months: event_retention_months?,
        })
    }
}
