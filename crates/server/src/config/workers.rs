//! Background workers and event retention.

use super::env::{EnvReader, EnvVar};

static WORKERS: EnvVar = EnvVar {
    name: "PERENNIAL_WORKERS",
    doc: "Number of workers per background task in this process, from 0 to 100. `0` disables background \
          tasks in `perennial serve`; run `perennial work` as a separate process instead.",
    default: Some("1"),
    secret: false,
};

static EVENT_RETENTION_MONTHS: EnvVar = EnvVar {
    name: "PERENNIAL_EVENT_RETENTION_MONTHS",
    doc: "Number of whole months of events to keep in addition to the current month, from 1 to 1200. `0` \
          keeps events forever. Events are the audit log; deleted events cannot be recovered.",
    default: Some("0"),
    secret: false,
};

pub static VARIABLES: &[&EnvVar] = &[&WORKERS, &EVENT_RETENTION_MONTHS];

#[derive(Debug, Clone, Copy)]
pub struct WorkersConfig {
    /// Workers per background task in this process.
    pub workers: u16,
    /// Whole months of events to keep in addition to the current month; 0 keeps events forever.
    pub event_retention_months: u16,
}

impl WorkersConfig {
    pub(super) fn read(reader: &mut EnvReader) -> Option<Self> {
        let workers = reader.integer(&WORKERS, 0..=100);
        let event_retention_months = reader.integer(&EVENT_RETENTION_MONTHS, 0..=1_200);
        Some(Self {
            workers: workers?,
            event_retention_months: event_retention_months?,
        })
    }
}
