//! Stores and records the results of requests.

use std::time::Instant;

use perennial_domain::ResponseMeaning;

use super::{EndpointLoop, FinishedDelivery};
use crate::{
    db::Error,
    webhooks::{
        attempts_sql::WebhookAttempt,
        delivery::{
            outcome::{self, FailedAttempt, StoredAttempt},
            work_source::{Delivery, DeliverySource},
        },
    },
};

impl EndpointLoop {
    /// Stores all results. One that cannot be stored stays for the next call.
    pub(super) async fn store_finished(&mut self) -> Result<(), Error> {
        while let Some(finished) = self.finished.pop_front() {
            match self.store(&finished).await {
                Ok(stored) => self.record(&finished, stored),
                Err(error) => {
                    self.finished.push_front(finished);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    async fn store(&mut self, finished: &FinishedDelivery) -> Result<StoredAttempt, Error> {
        let (key, worker) = (self.held.key, self.worker.clone());
        let FinishedDelivery { delivery, result } = finished;
        let Delivery { event, source } = delivery;
        let stored = match result.meaning() {
            ResponseMeaning::Delivered => {
                if source.has_retry() || self.is_failing {
                    let mut limited = worker.connection().await?;
                    let connection = &mut limited.connection;
                    let ids = (event.position, event.subject);
                    let has_recovered = self.pacing.is_down();
                    let app = &worker.app;
                    outcome::store_success(app, connection, key, ids, has_recovered).await?
                } else {
                    // Nothing waits for this event.
                    return Ok(StoredAttempt::default());
                }
            }
            meaning @ (ResponseMeaning::Failed { .. } | ResponseMeaning::Gone) => {
                let requested_delay = result.requested_pause();
                let requested_pause = requested_delay.map(jiff::SignedDuration::unsigned_abs);
                let (failures_in_a_row, pause) = self.pacing.next_failure(requested_pause);
                let attempt = FailedAttempt {
                    position: event.position,
                    subject: event.subject,
                    failed_attempts: source.attempt(),
                    failed_since: source.failed_since(),
                    failures_in_a_row,
                    pause,
                    requested_delay,
                    is_gone: meaning == ResponseMeaning::Gone,
                };
                let mut limited = worker.connection().await?;
                let (app, order) = (&worker.app, self.settings.order);
                outcome::store_failure(app, &mut limited.connection, key, order, &attempt).await?
            }
        };
        self.is_disabled |= stored.is_disabled;
        if let Some(blocked) = &mut self.blocked {
            if stored.blocks_subject {
                blocked.insert(event.subject);
            } else {
                blocked.remove(&event.subject);
            }
        }
        Ok(stored)
    }

    /// Records a stored result: pace, cursor, metrics and the log of attempts.
    fn record(&mut self, finished: &FinishedDelivery, stored: StoredAttempt) {
        let FinishedDelivery { delivery, result } = finished;
        let Delivery { event, source } = delivery;
        let meaning = result.meaning();
        match meaning {
            ResponseMeaning::Delivered => {
                self.pacing.record_success(result.duration);
                self.is_failing = false;
            }
            ResponseMeaning::Failed { is_overloaded } => {
                let (duration, now) = (result.duration, Instant::now());
                self.pacing
                    .record_failure(duration, is_overloaded, stored.pause, now);
                self.is_failing = true;
            }
            ResponseMeaning::Gone => self.is_failing = true,
        }
        match source {
            DeliverySource::Log => self.backlog.complete(event),
            DeliverySource::Retry { .. } => {
                self.backlog.end_retry(event.subject);
                self.retries.complete(event.position);
            }
            DeliverySource::Replay { .. } => self.replays.complete(),
        }
        let is_success = meaning == ResponseMeaning::Delivered;
        if !is_success || source.has_retry() {
            self.retries.invalidate();
        }
        let outcome = if is_success { "delivered" } else { "failed" };
        metrics::counter!("perennial_webhook_attempts_total", "outcome" => outcome).increment(1);
        metrics::histogram!("perennial_webhook_attempt_seconds").record(result.duration);
        let app = &self.worker.app;
        self.worker.attempts.record(WebhookAttempt {
            tenant: self.held.key.tenant,
            endpoint: self.held.key.endpoint,
            id: app.ids.generate_uuid(result.at),
            created_at: result.at,
            event: event.id,
            kind: event.kind.as_str().to_owned(),
            position: Some(event.position),
            number: i32::try_from(source.attempt()).unwrap_or(i32::MAX),
            is_success,
            status_code: result.status_code().map(i32::from),
            error: result.error(),
            duration_ms: result.duration_ms(),
        });
    }
}
