//! Work inside the database: claim a batch, do it, commit.

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use super::rhythm::Rhythm;
use crate::{
    app::App,
    db::{Error, Transaction},
    randomness::varied,
};

/// How long a worker that found nothing waits before it looks again.
const IDLE: Duration = Duration::from_secs(1);

type Done<'a> = Pin<Box<dyn Future<Output = Result<usize, Error>> + Send + 'a>>;

/// A task that works in batches.
pub struct Batch {
    /// What it is called in logs and metrics.
    pub name: &'static str,
    /// How many items it takes at once: few enough for a transaction of well under a second.
    pub size: i64,
    /// How many times as long as a batch took its worker rests before the next: what can wait leaves the machine
    /// to those who cannot.
    pub rests: u32,
    /// Claims up to so many items with `FOR UPDATE SKIP LOCKED`, does them, and answers how many.
    pub run: for<'a> fn(Job<'a>) -> Done<'a>,
}

/// One batch: what it is done with.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// What a task can reach.
    pub app: &'a App,
    /// Whose database it is.
    pub cell: &'a str,
    /// The transaction that it is done in.
    pub tx: &'a Transaction<'a>,
    /// How many items at most.
    pub limit: i64,
}

/// One worker: batch after batch while there is work, then now and then.
pub(super) async fn work(
    app: Arc<App>,
    cell: String,
    task: &'static Batch,
    stop: CancellationToken,
) {
    let mut rhythm = Rhythm::new(task.name, &cell, stop);
    while rhythm.goes_on() {
        let begun = Instant::now();
        let done = one_batch(&app, &cell, task).await;
        let took = begun.elapsed();
        rhythm
            .rest(done.map(|done| {
                if done > 0 {
                    tracing::info!(task = task.name, cell, done, "did a batch");
                    let count = u64::try_from(done).unwrap_or(u64::MAX);
                    metrics::counter!("perennial_task_items_total", "task" => task.name)
                        .increment(count);
                }
                if done > 0 {
                    took * task.rests
                } else {
                    varied(IDLE)
                }
            }))
            .await;
    }
}

async fn one_batch(app: &App, cell: &str, task: &Batch) -> Result<usize, Error> {
    let mut connection = app.db.cell(cell)?.connection().await?;
    let tx = connection.begin();
    let job = Job {
        app,
        cell,
        tx: &tx,
        limit: task.size,
    };
    let done = (task.run)(job).await?;
    tx.commit().await?;
    Ok(done)
}
