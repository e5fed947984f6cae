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

use crate::{
    app::App,
    callers::{housekeeping::remove_expired_values, sessions, tokens},
    events::retention,
    http::idempotency::remove_expired_keys,
    subscriptions::lifecycle::move_due,
};

mod backoff;
mod batch;
mod lease;
mod rhythm;

pub use batch::{Batch, Job};
pub use lease::{Lease, Leased};

/// Housekeeping takes a quarter of one worker's time: it has until tomorrow.
const HOUSEKEEPING: u32 = 3;

static BATCHES: &[Batch] = &[
    Batch {
        name: "client_values.remove_expired",
        size: 200,
        rests: HOUSEKEEPING,
        run: |job| Box::pin(remove_expired_values(job.tx, job.app.operator(), job.limit)),
    },
    Batch {
        name: "idempotency_keys.remove_expired",
        size: 1_000,
        rests: HOUSEKEEPING,
        run: |job| Box::pin(remove_expired_keys(job.tx, job.limit)),
    },
    Batch {
        name: "sessions.remove_dead",
        size: 500,
        rests: HOUSEKEEPING,
        run: |job| Box::pin(sessions::table::remove_dead(job.tx, job.limit)),
    },
    Batch {
        name: "signing_keys.remove_refused",
        size: 100,
        rests: HOUSEKEEPING,
        run: |job| Box::pin(tokens::table::remove_refused(job.tx, job.limit)),
    },
    Batch {
        name: "subscriptions.move_due",
        size: 500,
        // Half of a worker's time is fast enough, and leaves reads nearly as quick as they were (docs/benchmarks.md).
        rests: 1,
        run: |job| {
            Box::pin(async move {
                let when = (job.app.ids, job.app.billing.now());
                move_due(job.app.db.home()?, job.cell, job.tx, when, job.limit).await
            })
        },
    },
];

static LEASED: &[Leased] = &[Leased {
    name: "events.months",
    every: Duration::from_hours(1),
    run: |app, engine| Box::pin(retention::keep_months(engine, app.event_retention_months)),
}];

/// Does background work with this many workers of each task, until `stop`; then lets each finish
/// the batch it has in hand.
pub async fn run(app: Arc<App>, workers: u16, stop: CancellationToken) {
    let mut running = JoinSet::new();
    for cell in app.db.cells() {
        for _ in 0..workers {
            for task in BATCHES {
                let (app, cell, stop) = (app.clone(), cell.to_owned(), stop.clone());
                running.spawn(again_after_a_panic(task.name, move || {
                    batch::work(app.clone(), cell.clone(), task, stop.clone())
                }));
            }
            for task in LEASED {
                let (app, cell, stop) = (app.clone(), cell.to_owned(), stop.clone());
                running.spawn(again_after_a_panic(task.name, move || {
                    lease::work(app.clone(), cell.clone(), task, stop.clone())
                }));
            }
        }
    }
    while running.join_next().await.is_some() {}
}

/// Runs a worker to its end, and begins anew if it panics: one bad item must not end a task for good.
async fn again_after_a_panic<F>(task: &'static str, worker: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    while let Err(error) = tokio::spawn(worker()).await {
        tracing::error!(task, %error, "a worker panicked and begins anew");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
