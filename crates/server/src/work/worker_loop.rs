//! The loop control of all workers: pause after a success, backoff after a failure, metrics and stop.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::backoff;
use crate::{clock::Clock, db::Error};

pub(super) struct WorkerLoop {
    task: &'static str,
    cell: String,
    consecutive_failures: u32,
    stop: CancellationToken,
}

impl WorkerLoop {
    pub(super) fn new(task: &'static str, cell: &str, stop: CancellationToken) -> Self {
        Self {
            task,
            cell: cell.to_owned(),
            consecutive_failures: 0,
            stop,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        !self.stop.is_cancelled()
    }

    /// Records the outcome of a run, then sleeps: for the duration in `outcome` after a success, with
    /// backoff after a failure. Returns early when the worker must stop.
    pub(super) async fn sleep_after(&mut self, outcome: Result<Duration, Error>) {
        let pause = self.record(outcome);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.stop.cancelled() => {}
        }
    }

    /// Records the outcome of a run, and returns the pause that should follow it.
    pub(super) fn record(&mut self, outcome: Result<Duration, Error>) -> Duration {
        match outcome {
            Ok(pause) => {
                self.consecutive_failures = 0;
                let now = Clock::System.now().as_duration().as_secs_f64();
                metrics::gauge!("perennial_task_succeeded_timestamp_seconds", "task" => self.task)
                    .set(now);
                pause
            }
            Err(error) => {
                self.consecutive_failures += 1;
                let (task, cell, failures) = (self.task, &self.cell, self.consecutive_failures);
                tracing::warn!(task, cell, %error, failures, "a background task failed");
                metrics::counter!("perennial_task_failures_total", "task" => task).increment(1);
                backoff::after(failures)
            }
        }
    }
}
