//! Reports: recurring revenue, churn, trials, cohorts and payments.
//!
//! Each change of a subscription or a payment is written to the journal (`revenue_journal.rs`) in its transaction. The
//! roll-up (`roll_up.rs`) adds it to sums by day within seconds, and the endpoints read only these sums, so a report takes
//! as long with ten million subscriptions as with ten. `rebuild.rs` computes the sums anew from the journal, and
//! `backfill.rs` reads the histories of subscriptions that are older than the journal from their events.
//!
//! The definitions are in `domain/revenue`.

mod backfill;
mod backfill_sql;
mod journal_sql;
mod rebuild;
mod roll_up;
mod state_sql;
mod sums_sql;

pub use backfill::{backfill, is_backfill_missing};
pub use rebuild::{RebuildStep, rebuild_step};
pub use roll_up::roll_up;
pub use state_sql::ReportState;
