//! Writes attempts to the database in batches.

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;

use crate::{
    app::App,
    db::Error,
    webhooks::attempts_sql::{self, WebhookAttempt},
};

/// Attempts that wait to be written. Further ones are dropped: deliveries must not wait for their log.
const MAX_WAITING: usize = 10_000;
const MAX_BATCH: usize = 1_000;
const WRITE_INTERVAL: Duration = Duration::from_millis(250);
/// How often a batch is tried before it is dropped.
const MAX_TRIES: u32 = 20;

/// Collects attempts. They are written until it is dropped, and then those that are left.
pub struct AttemptLog(mpsc::Sender<WebhookAttempt>);

impl AttemptLog {
    pub fn start(app: Arc<App>, cell: String) -> Self {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        tokio::spawn(write_batches(app, cell, receiver));
        Self(sender)
    }

    pub fn record(&self, attempt: WebhookAttempt) {
        if self.0.try_send(attempt).is_err() {
            metrics::counter!("perennial_webhook_attempts_dropped_total").increment(1);
        }
    }
}

async fn write_batches(app: Arc<App>, cell: String, mut receiver: mpsc::Receiver<WebhookAttempt>) {
    let mut batch = Vec::new();
    while receiver.recv_many(&mut batch, MAX_BATCH).await > 0 {
        let is_full = batch.len() >= MAX_BATCH;
        for _ in 0..MAX_TRIES {
            match write(&app, &cell, &batch).await {
                Ok(()) => {
                    batch.clear();
                    break;
                }
                Err(error) => tracing::debug!(%error, "cannot write webhook attempts"),
            }
            tokio::time::sleep(WRITE_INTERVAL).await;
        }
        let dropped = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        metrics::counter!("perennial_webhook_attempts_dropped_total").increment(dropped);
        batch.clear();
        if !is_full {
            // More attempts per statement.
            tokio::time::sleep(WRITE_INTERVAL).await;
        }
    }
}

async fn write(app: &App, cell: &str, batch: &[WebhookAttempt]) -> Result<(), Error> {
    let connection = app.db.cell(cell)?.connection().await?;
    attempts_sql::insert_all(&connection, batch).await
}
