//! Background work: every task is registered here, in one line; `work/` is their toolkit.
//!
//! What is due is a column in PostgreSQL, and its row locks decide who does it. There is no queue
//! beside the data that could disagree with it. Two kinds of task:
//!
//! - [`Batch`]: work inside the database. A worker claims a batch with `FOR UPDATE SKIP LOCKED`, does
//!   it and commits, all in one transaction: killed at any moment, it has done all of the batch or
//!   nothing. Any number of workers share it.
//! - [`Leased`]: work that one process at a time should do. It holds a lease, renewed while it works;
//!   if it dies, the lease runs out and another takes over.
//!
//! Tasks run in every cell, in `perennial serve` or in `perennial work`.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{app::App, callers::housekeeping::remove_expired_values, events::retention};

mod backoff;
mod batch;
mod lease;

pub use batch::Batch;
pub use lease::{Lease, Leased};

static BATCHES: &[Batch] = &[Batch {
    name: "client_values.remove_expired",
    size: 200,
    run: |app, tx, limit| Box::pin(remove_expired_values(tx, app.ids, app.clock.now(), limit)),
}];

static LEASED: &[Leased] = &[Leased {
    name: "events.months",
    every: Duration::from_hours(1),
    run: |app, engine| Box::pin(retention::keep_months(engine, app.event_retention_months)),
}];

/// Does background work with this many workers of each task, until `stop`; then lets each finish
/// the batch it has in hand.
pub async fn run(app: Arc<App>, workers: u16, stop: CancellationToken) {
    let mut running = JoinSet::new();
    for (cell, _) in app.db.cells() {
        for _ in 0..workers {
            for task in BATCHES {
                running.spawn(batch::work(
                    app.clone(),
                    cell.to_owned(),
                    task,
                    stop.clone(),
                ));
            }
            for task in LEASED {
                running.spawn(lease::work(
                    app.clone(),
                    cell.to_owned(),
                    task,
                    stop.clone(),
                ));
            }
        }
    }
    while let Some(ended) = running.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a background task ended by itself");
        }
    }
}
