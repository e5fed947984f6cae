//! The sequencer: gives committed events their positions in the logs of their tenants.
//!
//! Each tick reads the events whose transactions became visible since the stored snapshot: those that were open in it, and
//! those that started later. A transaction reads them, assigns positions and stores its own snapshot, so each event
//! receives one position, also if the process is killed. Open transactions, of this database or another one, delay only
//! their own events. Events of one tick are ordered by `seq`, which follows the order of row locks: an event of a record is
//! after the earlier events of that record.
//!
//! One process per cell runs the sequencer, under a lease. The lease saves work; it is not needed for correctness, because
//! each transaction locks the stored state and fails if another one has changed it.

use std::time::{Duration, Instant};

use super::{copied_events_sql::number_copied, numbering_sql as sql};
use crate::{
    clock::Clock,
    db::{CellDatabase, Error, PooledConnection},
};

/// The name of the task in logs, metrics and the table `task_leases`.
pub const TASK: &str = "events.sequence";

/// The pause between two ticks.
const TICK_INTERVAL: Duration = Duration::from_millis(50);
/// How often the sequencer stores that no event waits.
const CONFIRM_INTERVAL: Duration = Duration::from_secs(5);
/// How often the sequencer borrows a connection again, which replaces an old one, and checks the history.
const SESSION_INTERVAL: Duration = Duration::from_mins(1);
const MIN_RETRY_INTERVAL: Duration = Duration::from_millis(50);
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the sequencer of a cell. Never returns.
pub async fn run(database: &CellDatabase) -> Result<(), Error> {
    // Rates need a first value.
    count_epochs(database.cell(), 0);
    let mut pause = MIN_RETRY_INTERVAL;
    loop {
        let mut ticks = 0_u64;
        let Err(error) = sequence(database, &mut ticks).await else {
            continue;
        };
        // A failed tick after successful ones is normal: a restart of the database, or another sequencer.
        pause = if ticks > 1 {
            MIN_RETRY_INTERVAL
        } else {
            (pause * 2).min(MAX_RETRY_INTERVAL)
        };
        tracing::warn!(task = TASK, cell = database.cell(), %error, "a background task failed");
        metrics::counter!("perennial_task_failures_total", "task" => TASK).increment(1);
        tokio::time::sleep(pause).await;
    }
}

/// Ticks until a statement fails or [`SESSION_INTERVAL`] has passed.
async fn sequence(database: &CellDatabase, ticks: &mut u64) -> Result<(), Error> {
    let mut connection = database.background_connection().await?;
    let started_at = Instant::now();
    // The connection may be to another server than the last one.
    check_history(&mut connection, database.cell()).await?;
    let mut progress = tick(&mut connection, database.cell()).await?;
    let mut confirmed_at = Instant::now();
    while started_at.elapsed() < SESSION_INTERVAL {
        *ticks += 1;
        record_success();
        if progress.is_caught_up {
            tokio::time::sleep(TICK_INTERVAL).await;
        }
        // After events, more are likely. Otherwise a read alone finds out, because a tick writes.
        if progress.is_caught_up && progress.events == 0 {
            let (snapshot, has_fresh) =
                sql::has_fresh(&mut connection, &progress.snapshot, progress.copied_to_seq).await?;
            if !has_fresh {
                progress.snapshot = snapshot;
                if confirmed_at.elapsed() > CONFIRM_INTERVAL {
                    confirmed_at = Instant::now();
                    sql::confirm_caught_up(&connection).await?;
                }
                continue;
            }
        }
        progress = tick(&mut connection, database.cell()).await?;
    }
    Ok(())
}

fn record_success() {
    let now = Clock::System.now().as_duration().as_secs_f64();
    metrics::gauge!("perennial_task_succeeded_timestamp_seconds", "task" => TASK).set(now);
}

fn count_numbered(cell: &str, events: i64) {
    let events = u64::try_from(events).unwrap_or(0);
    metrics::counter!("perennial_events_numbered_total", "cell" => cell.to_owned())
        .increment(events);
}

fn count_epochs(cell: &str, epochs: u64) {
    metrics::counter!("perennial_event_log_epochs_total", "cell" => cell.to_owned())
        .increment(epochs);
}

/// What the sequencer has numbered.
struct Progress {
    /// All events of the transactions that are visible in this snapshot have positions, if `is_caught_up`.
    snapshot: String,
    copied_to_seq: i64,
    is_caught_up: bool,
    /// The number of events that received a position.
    events: i64,
}

/// Gives positions to the events that have become visible, or to a page of them.
async fn tick(connection: &mut PooledConnection, cell: &str) -> Result<Progress, Error> {
    let tx = connection.begin_snapshot().await?;
    let state = sql::lock_state(&tx).await?;
    let page = sql::number_fresh(&tx, &state).await?;
    match (page.is_full(), state.target_snapshot.is_some()) {
        (true, _) => sql::save_page(&tx, page.last_seq).await?,
        (false, true) => sql::save_last_page(&tx).await?,
        (false, false) => sql::save_caught_up(&tx).await?,
    }
    tx.commit().await?;
    count_numbered(cell, page.events);
    Ok(Progress {
        is_caught_up: !page.is_full() && state.target_snapshot.is_none(),
        snapshot: page.snapshot,
        copied_to_seq: state.copied_to_seq,
        events: page.events,
    })
}

/// Starts a new epoch if the database is a copy, or a server that may have lost commits.
async fn check_history(connection: &mut PooledConnection, cell: &str) -> Result<(), Error> {
    let tx = connection.begin();
    let state = sql::lock_state(&tx).await?;
    let history = sql::history(&tx).await?;
    if history == state.history {
        return Ok(());
    }
    let is_other_cluster = history.system_identifier != state.history.system_identifier;
    if is_other_cluster {
        let events = number_copied(&tx, &state).await?;
        count_numbered(cell, events);
    }
    // Without positions, no reader has one from another history.
    sql::save_history(&tx, history, state.has_positions).await?;
    tx.commit().await?;
    if state.has_positions {
        count_epochs(cell, 1);
        tracing::warn!(
            cell,
            is_other_cluster,
            "started a new epoch of the event log: the database was restored, or a standby was promoted"
        );
    }
    Ok(())
}
