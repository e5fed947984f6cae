//! The deliveries to one endpoint, while this process holds its lease.

use std::{
    collections::{HashSet, VecDeque},
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use perennial_domain::DeliveryOrder;
use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::settings::EndpointSettings;
use super::{
    DeliveryWorker, HeldEndpoint,
    backlog::Backlog,
    message::{AttemptResult, WebhookMessage},
    pacing::{Pacing, SLOW_RESPONSE},
    work_source::{Delivery, ReplayQueue, RetryQueue},
};
use crate::{
    db::Error,
    events::log::LogSubscription,
    randomness::jitter,
    webhooks::{
        claim_sql::{self, EndpointState},
        retries_sql,
    },
};

mod next_delivery;
mod results;
mod settings;

/// How long an endpoint without anything to send is held, so that its next event is sent at once.
const LINGER_TTL: Duration = Duration::from_secs(5);
/// How often the settings are read again, so that an expired secret is no longer used.
const RELOAD_INTERVAL: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const ERROR_INTERVAL: Duration = Duration::from_millis(500);
/// How long requests in flight may take when the process stops. Others are sent again later.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// A delivery whose request has ended.
struct FinishedDelivery {
    delivery: Delivery,
    result: AttemptResult,
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "each is independent of the others"
)]
pub(super) struct EndpointLoop {
    worker: Arc<DeliveryWorker>,
    held: Arc<HeldEndpoint>,
    settings: Arc<EndpointSettings>,
    subscription: LogSubscription,
    pacing: Pacing,
    backlog: Backlog,
    retries: RetryQueue,
    replays: ReplayQueue,
    /// The subjects whose events wait for a retry. `None` until they are read.
    blocked: Option<HashSet<Uuid>>,
    /// Whether no event waits for another one, in an order in which none must.
    has_unblocked: bool,
    in_flight: JoinSet<FinishedDelivery>,
    /// Results that are not stored yet.
    finished: VecDeque<FinishedDelivery>,
    /// Whether the log may have events that were not read.
    may_have_events: bool,
    is_failing: bool,
    is_disabled: bool,
    idle_since: Instant,
}

fn new_pacing(state: &EndpointState) -> Pacing {
    Pacing::new(state.failures_in_a_row, state.pause, Instant::now())
}

impl EndpointLoop {
    pub(super) fn new(worker: Arc<DeliveryWorker>, held: Arc<HeldEndpoint>) -> Result<Self, Error> {
        let watch = worker.app.log_watch(&worker.cell)?;
        let pacing = new_pacing(&held.claimed);
        Ok(Self {
            subscription: watch.subscribe(held.key.tenant),
            settings: Arc::new(EndpointSettings::new(&worker, &held.claimed)?),
            pacing,
            backlog: Backlog::new(held.claimed.position),
            retries: RetryQueue::default(),
            replays: ReplayQueue::default(),
            blocked: None,
            has_unblocked: false,
            in_flight: JoinSet::new(),
            finished: VecDeque::new(),
            may_have_events: true,
            is_failing: held.claimed.endpoint.failing_since.is_some(),
            is_disabled: false,
            idle_since: Instant::now(),
            worker,
            held,
        })
    }

    /// Delivers until there is nothing to send, the endpoint is disabled, or `stop` is cancelled.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() && !self.is_disabled {
            if let Err(error) = self.advance().await {
                tracing::debug!(endpoint = %self.held.key.endpoint, %error, "a webhook endpoint waits for the database");
                tokio::time::sleep(jitter(ERROR_INTERVAL)).await;
                continue;
            }
            self.publish_position();
            if self.is_paused_longer() {
                return;
            }
            if self.is_idle() {
                if self.idle_since.elapsed() >= LINGER_TTL {
                    return;
                }
            } else {
                self.idle_since = Instant::now();
            }
            let pause = self.pause();
            // Waits for new events only if one could be sent.
            let watches = !self.may_have_events && pause > Duration::ZERO;
            tokio::select! {
                Some(finished) = self.in_flight.join_next() => self.collect(finished),
                () = self.subscription.changed(), if watches => self.may_have_events = true,
                () = tokio::time::sleep(pause) => {}
                () = stop.cancelled() => {}
            }
        }
        let wait = async {
            while let Some(finished) = self.in_flight.join_next().await {
                self.collect(finished);
            }
        };
        let _ = timeout(STOP_TIMEOUT, wait).await;
        // What cannot be stored is sent again.
        let _ = self.store_finished().await;
        self.publish_position();
    }

    fn collect(&mut self, finished: Result<FinishedDelivery, tokio::task::JoinError>) {
        match finished {
            Ok(finished) => self.finished.push_back(finished),
            // The event stays outstanding, so it is sent again by the next holder of the lease.
            Err(error) => {
                tracing::error!(%error, "a webhook request panicked");
                self.is_disabled = true;
            }
        }
    }

    fn publish_position(&self) {
        let position = self.backlog.position();
        self.held.position.fetch_max(position, Ordering::AcqRel);
    }

    /// Returns whether the endpoint is paused for longer than a lease without requests is held. The pause is stored.
    fn is_paused_longer(&self) -> bool {
        let now = Instant::now();
        let until = self.pacing.paused_until(now);
        until.is_some_and(|until| until.duration_since(now) > LINGER_TTL)
            && self.in_flight.is_empty()
            && self.finished.is_empty()
    }

    fn is_idle(&self) -> bool {
        let now = self.worker.app.clock.now();
        self.pacing.paused_until(Instant::now()).is_none()
            && self.in_flight.is_empty()
            && self.finished.is_empty()
            && self.backlog.len() == 0
            && !self.replays.is_active()
            && !self.retries.has_due(now)
    }

    /// Returns how long to wait for something else than a response or an event.
    fn pause(&self) -> Duration {
        if let Some(until) = self.pacing.paused_until(Instant::now()) {
            return until.duration_since(Instant::now()).min(POLL_INTERVAL);
        }
        if self.in_flight.len() >= self.window() {
            return POLL_INTERVAL;
        }
        let now = self.worker.app.clock.now();
        let due = self.retries.next_due_at();
        let due = due.map_or(POLL_INTERVAL, |due| due.duration_since(now).unsigned_abs());
        due.min(POLL_INTERVAL).max(Duration::from_millis(10))
    }

    fn window(&self) -> usize {
        match self.settings.order {
            DeliveryOrder::None | DeliveryOrder::Subject => self.pacing.window(),
            DeliveryOrder::Strict => 1,
        }
    }

    /// Stores results, reads what is needed and starts requests.
    async fn advance(&mut self) -> Result<(), Error> {
        self.store_finished().await?;
        self.reload_settings().await?;
        self.move_blocked().await?;
        while !self.is_disabled
            && self.in_flight.len() < self.window()
            && self.pacing.paused_until(Instant::now()).is_none()
        {
            let Some(delivery) = self.next_delivery().await? else {
                break;
            };
            self.start(delivery)?;
        }
        Ok(())
    }

    async fn reload_settings(&mut self) -> Result<(), Error> {
        let changed_at = self.held.changed_at.load(Ordering::Acquire);
        let is_current = self.settings.changed_at == changed_at
            && self.settings.read_at.elapsed() < RELOAD_INTERVAL;
        if is_current {
            return Ok(());
        }
        let limited = self.worker.connection().await?;
        let key = self.held.key;
        match claim_sql::find_state(&limited.connection, key.tenant, key.endpoint).await? {
            Some(state) => {
                let settings = EndpointSettings::new(&self.worker, &state)?;
                if settings.changed_at != self.settings.changed_at {
                    self.pacing = new_pacing(&state);
                    self.retries.invalidate();
                }
                self.settings = Arc::new(settings);
                self.is_failing = state.endpoint.failing_since.is_some();
                self.blocked = None;
                self.has_unblocked = false;
            }
            None => self.is_disabled = true,
        }
        Ok(())
    }

    /// Stores the waiting events of blocked subjects as retries, so that the cursor can pass them.
    async fn move_blocked(&mut self) -> Result<(), Error> {
        let key = self.held.key;
        if self.settings.order != DeliveryOrder::Subject {
            // Events may wait from a time when the order was another one.
            if !self.has_unblocked {
                let limited = self.worker.connection().await?;
                let now = self.worker.app.clock.now();
                retries_sql::unblock_all(&limited.connection, key, now).await?;
                self.retries.invalidate();
                self.has_unblocked = true;
            }
            return Ok(());
        }
        let blocked = if let Some(blocked) = &mut self.blocked {
            blocked
        } else {
            let limited = self.worker.connection().await?;
            let subjects = retries_sql::blocked_subjects(&limited.connection, key).await?;
            self.blocked.insert(subjects)
        };
        let events = self.backlog.take_blocked(blocked);
        if events.is_empty() {
            return Ok(());
        }
        let positions: Vec<i64> = events.iter().map(|event| event.position).collect();
        let subjects: Vec<Uuid> = events.iter().map(|event| event.subject).collect();
        let now = self.worker.app.clock.now();
        let store = async {
            let limited = self.worker.connection().await?;
            retries_sql::block(&limited.connection, key, (&positions, &subjects), now).await
        };
        match store.await {
            Ok(()) => {
                self.backlog.complete_blocked(&events);
                Ok(())
            }
            Err(error) => {
                self.backlog.put_back(events);
                Err(error)
            }
        }
    }

    /// Sends an event in the background.
    fn start(&mut self, delivery: Delivery) -> Result<(), Error> {
        let message = WebhookMessage::new(&delivery.event)
            .map_err(|error| Error::Internal(error.to_string()))?;
        let (worker, settings) = (self.worker.clone(), self.settings.clone());
        let is_slow = self.pacing.is_slow();
        self.in_flight.spawn(async move {
            let slots = if is_slow {
                &worker.slow_slots
            } else {
                &worker.slots
            };
            // The semaphores are never closed.
            let slot = slots.acquire().await.ok();
            let now = worker.app.clock.now();
            let EndpointSettings { url, secrets, .. } = &*settings;
            let outbound = &worker.app.outbound;
            let mut request = pin!(message.send(outbound, url, secrets, now, None));
            let result = match timeout(SLOW_RESPONSE, &mut request).await {
                Ok(result) => result,
                Err(_) if is_slow => request.await,
                // The slot is free for another endpoint, unless there are too many slow requests.
                Err(_) => {
                    let slow_slot = worker.slow_slots.try_acquire().ok();
                    let _slot = slow_slot.or(slot);
                    request.await
                }
            };
            FinishedDelivery { delivery, result }
        });
        Ok(())
    }
}
