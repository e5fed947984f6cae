//! Tasks that process batches: claim rows, process them and commit, in one transaction.

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use super::worker_loop::WorkerLoop;
use crate::{
    app::App,
    db::{Error, Transaction},
    randomness::jitter,
};

/// How long a worker waits after an empty batch.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

type BatchFuture<'a> = Pin<Box<dyn Future<Output = Result<usize, Error>> + Send + 'a>>;

/// A task that any number of workers can run, in batches.
pub struct BatchTask {
    /// The name in logs and metrics.
    pub name: &'static str,
    /// The maximum number of items per batch. A transaction must take well under a second.
    pub batch_size: i64,
    /// The pause after a batch, as a multiple of the batch's duration. Leaves resources to requests.
    pub pause_factor: u32,
    /// The least pause after a batch that was not full. Without it, a steady flow of items is processed in tiny batches.
    pub gather: Duration,
    /// Claims items, with `FOR UPDATE SKIP LOCKED` or under an advisory lock, processes them, and returns their number.
    pub run: for<'a> fn(BatchContext<'a>) -> BatchFuture<'a>,
}

/// The arguments of [`BatchTask::run`].
#[derive(Clone, Copy)]
pub struct BatchContext<'a> {
    pub app: &'a App,
    pub cell: &'a str,
    pub tx: &'a Transaction<'a>,
    /// The maximum number of items to claim.
    pub limit: i64,
}

/// Runs one worker until `stop` is cancelled: batch after batch while there are items, then polls.
pub(super) async fn run_worker(
    app: Arc<App>,
    cell: String,
    task: &'static BatchTask,
    stop: CancellationToken,
) {
    let mut worker = WorkerLoop::new(task.name, &cell, stop);
    while worker.is_running() {
        let started_at = Instant::now();
        let outcome = run_batch(&app, &cell, task).await;
        let duration = started_at.elapsed();
        let pause = outcome.map(|done| {
            if done == 0 {
                return jitter(POLL_INTERVAL);
            }
            tracing::info!(task = task.name, cell, done, "processed a batch");
            let count = u64::try_from(done).unwrap_or(u64::MAX);
            metrics::counter!("perennial_task_items_total", "task" => task.name).increment(count);
            let pause = duration * task.pause_factor;
            let is_full = i64::try_from(done).unwrap_or(i64::MAX) >= task.batch_size;
            if is_full {
                pause
            } else {
                pause.max(task.gather)
            }
        });
        worker.sleep_after(pause).await;
    }
}

async fn run_batch(app: &App, cell: &str, task: &BatchTask) -> Result<usize, Error> {
    let mut connection = app.db.cell(cell)?.connection().await?;
    let tx = connection.begin();
    let context = BatchContext {
        app,
        cell,
        tx: &tx,
        limit: task.batch_size,
    };
    let done = (task.run)(context).await?;
    tx.commit().await?;
    Ok(done)
}
