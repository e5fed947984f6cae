//! How a worker goes on: it rests after success, backs off after failure, and ends when told.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::backoff;
use crate::{clock::Clock, db::Error};

/// One worker's rhythm.
pub(super) struct Rhythm {
    task: &'static str,
    cell: String,
    failures: u32,
    stop: CancellationToken,
}

impl Rhythm {
    pub(super) fn new(task: &'static str, cell: &str, stop: CancellationToken) -> Self {
        Self {
            task,
            cell: cell.to_owned(),
            failures: 0,
            stop,
        }
    }

    /// Whether there is reason to go on.
    pub(super) fn goes_on(&self) -> bool {
        !self.stop.is_cancelled()
    }

    /// Rests for as long as the outcome asks for, or until it is time to stop.
    pub(super) async fn rest(&mut self, outcome: Result<Duration, Error>) {
        let pause = match outcome {
            Ok(pause) => {
                self.failures = 0;
                let now = Clock::System.now().as_duration().as_secs_f64();
                metrics::gauge!("perennial_task_succeeded_timestamp_seconds", "task" => self.task)
                    .set(now);
                pause
            }
            Err(error) => {
                self.failures += 1;
                let (task, cell, failures) = (self.task, &self.cell, self.failures);
                tracing::warn!(task, cell, %error, failures, "a background task failed");
                metrics::counter!("perennial_task_failures_total", "task" => task).increment(1);
                backoff::after(failures)
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.stop.cancelled() => {}
        }
    }
}
