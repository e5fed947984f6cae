//! Publishes the event log to a stream of a message broker.
//!
//! Each cell has its own stream. One process at a time holds the cell's lease and publishes: the
//! events of each tenant in the order of their positions, and each event once. The lease only saves
//! work. The stream itself fences a process that continues after its lease has expired.
//!
//! The relay resumes after the last event of each tenant in the stream, or after the saved position if
//! that is later: the broker may have deleted old messages, and events that the relay does not
//! publish have positions too. A position is saved after the broker has acknowledged its event.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use metrics::Counter;
use perennial_domain::TenantId;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    app::App,
    db::{CellDatabase, Error, PooledConnection},
    events::{
        log::{self, Epoch, EventFilter, LoggedEvent},
        view::EventView,
    },
    randomness::jitter,
    work::{Lease, LeaseTiming, backoff, keep_renewing},
};

mod broker_stream;
mod nats;
mod relay_gauges;
mod table;

pub use broker_stream::{EventStream, OutgoingEvent, PublishedEvent, StreamError};
pub use nats::NatsStream;

use relay_gauges::RelayGauges;
use table::PendingTenant;

const LEASE: &str = "events.relay";
const TIMING: LeaseTiming = LeaseTiming::URGENT;
/// How often a process without the lease tries to get it.
const ACQUIRE_INTERVAL: Duration = Duration::from_millis(500);
/// The longest pause without a notification of new events.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The pause if nothing could be published although events are pending.
const STALLED_INTERVAL: Duration = Duration::from_millis(100);
/// The maximum number of events that are published before their positions are saved.
const BATCH_SIZE: usize = 1_000;

#[derive(Debug, thiserror::Error)]
enum RelayError {
    #[error(transparent)]
    Database(#[from] Error),
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("the event log has a new epoch")]
    NewEpoch,
}

/// Publishes the events of a cell until `stop` is cancelled.
pub async fn run(
    app: &App,
    cell: &str,
    mut stream: impl EventStream + Send,
    stop: CancellationToken,
) {
    let Some((_, database)) = app.db.databases().find(|(name, _)| *name == cell) else {
        return;
    };
    let wake = Arc::new(Notify::new());
    let on_change = wake.clone();
    let _listener = database.listen(log::CHANNEL, move |_| on_change.notify_one());
    let stops = metrics::counter!("perennial_relay_failures_total", "cell" => cell.to_owned());
    stops.absolute(0);
    let mut failures = 0;
    while !stop.is_cancelled() {
        let started_at = Instant::now();
        let outcome = relay_with_lease(app, cell, &mut stream, &wake, &stop).await;
        let pause = match outcome {
            Ok(()) => {
                failures = 0;
                jitter(ACQUIRE_INTERVAL)
            }
            Err(error) => {
                stops.increment(1);
                // A failure after a long run is the first one.
                failures = if started_at.elapsed() > POLL_INTERVAL {
                    1
                } else {
                    failures + 1
                };
                tracing::warn!(cell, %error, failures, "the relay stopped; it resumes");
                backoff::after(failures)
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => {}
        }
    }
}

/// Publishes while this process holds the lease. Returns immediately if another process does.
async fn relay_with_lease(
    app: &App,
    cell: &str,
    stream: &mut (impl EventStream + Send),
    wake: &Notify,
    stop: &CancellationToken,
) -> Result<(), RelayError> {
    let database = app.db.cell(cell)?;
    let Some(lease) = Lease::acquire(database, LEASE, TIMING.ttl).await? else {
        // The process that publishes reports what is pending.
        RelayGauges::new(cell).set(0, 0);
        return Ok(());
    };
    let outcome = tokio::select! {
        outcome = relay(database, cell, stream, wake) => outcome,
        error = keep_renewing(&lease, database, &TIMING) => Err(error.into()),
        () = stop.cancelled() => Ok(()),
    };
    // Another process can take over right away. If this fails, it does so when the lease expires.
    let released = lease.complete(database, Duration::ZERO).await;
    outcome?;
    released?;
    Ok(())
}

/// Opens the stream and publishes until an error occurs.
async fn relay(
    database: &CellDatabase,
    cell: &str,
    stream: &mut (impl EventStream + Send),
    wake: &Notify,
) -> Result<(), RelayError> {
    let stream_id = stream.open().await?;
    tracing::info!(cell, stream = stream.name(), "relaying events");
    let label = [("cell", cell.to_owned())];
    let mut session = RelaySession {
        database,
        cell,
        stream,
        stream_id,
        positions: HashMap::new(),
        diverged: HashSet::new(),
        epoch: None,
        published: metrics::counter!("perennial_relay_events_total", &label),
        gauges: RelayGauges::new(cell),
    };
    loop {
        let pause = match session.publish_pending().await? {
            Progress::Idle => POLL_INTERVAL,
            Progress::Stalled => STALLED_INTERVAL,
            Progress::Published => continue,
        };
        tokio::select! {
            () = wake.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    /// No events are pending.
    Idle,
    /// Events are pending, but none could be published.
    Stalled,
    Published,
}

/// The state since the stream was opened.
struct RelaySession<'a, S> {
    database: &'a CellDatabase,
    cell: &'a str,
    stream: &'a mut S,
    stream_id: String,
    /// Up to where the events of a tenant are published.
    positions: HashMap<TenantId, i64>,
    /// Tenants whose stream does not match the log.
    diverged: HashSet<TenantId>,
    epoch: Option<Epoch>,
    published: Counter,
    gauges: RelayGauges,
}

impl<S: EventStream + Send> RelaySession<'_, S> {
    /// Publishes the pending events of all tenants, up to [`BATCH_SIZE`] of each.
    async fn publish_pending(&mut self) -> Result<Progress, RelayError> {
        let mut connection = self.database.connection().await?;
        let pending = table::list_pending(&connection, self.stream.name(), &self.stream_id).await?;
        self.report_pending(&pending);
        let mut progress = Progress::Idle;
        let (mut batch, mut read_to) = (Vec::new(), Vec::new());
        for tenant in pending {
            let Some(after) = self.resume(&connection, &tenant).await? else {
                continue;
            };
            progress = progress.max(Progress::Stalled);
            let id = tenant.tenant;
            let limit = i64::try_from(BATCH_SIZE).unwrap_or(i64::MAX);
            let filter = EventFilter::default();
            let page = log::read_after(&mut connection, id, after, &filter, limit).await?;
            if *self.epoch.get_or_insert(page.epoch) != page.epoch {
                return Err(RelayError::NewEpoch);
            }
            if after > 0 && page.removed_to > after {
                let (tenant, removed_to) = (id, page.removed_to);
                tracing::error!(%tenant, after, removed_to, "events were removed before they were relayed");
            }
            if page.read_to > after {
                read_to.push((id, page.read_to));
            }
            for event in &page.events {
                batch.push(to_outgoing(id, event)?);
            }
            if batch.len() >= BATCH_SIZE {
                self.publish(&mut connection, &batch, &read_to).await?;
                progress = Progress::Published;
                batch.clear();
                read_to.clear();
            }
        }
        if !read_to.is_empty() {
            self.publish(&mut connection, &batch, &read_to).await?;
            progress = Progress::Published;
        }
        Ok(progress)
    }

    fn report_pending(&self, pending: &[PendingTenant]) {
        let count = |tenant: &PendingTenant| tenant.last_position - tenant.saved.unwrap_or(0);
        let count: i64 = pending.iter().map(count).sum();
        self.gauges.set(count, self.diverged.len());
    }

    /// Returns the position after which the tenant's events are published next, or `None` if the
    /// stream contains another history than the log.
    async fn resume(
        &mut self,
        connection: &PooledConnection,
        pending: &PendingTenant,
    ) -> Result<Option<i64>, RelayError> {
        let tenant = pending.tenant;
        if self.diverged.contains(&tenant) {
            return Ok(None);
        }
        if let Some(position) = self.positions.get(&tenant) {
            return Ok(Some(*position));
        }
        let saved = pending.saved.unwrap_or(0);
        let position = match self.stream.last_event(tenant).await? {
            None => saved,
            Some(published) => {
                let entry = table::find_entry(connection, tenant, published.position).await?;
                let is_same = match entry {
                    Some(id) => id == published.id,
                    None => published.position <= pending.removed_to,
                };
                if !is_same {
                    let (cell, position) = (self.cell, published.position);
                    tracing::error!(
                        cell, %tenant, position,
                        "the stream contains an event that the log does not have at this position: the database was \
                         restored, or has lost commits; events of this tenant are not relayed. Use a new stream"
                    );
                    self.diverged.insert(tenant);
                    return Ok(None);
                }
                saved.max(published.position)
            }
        };
        self.positions.insert(tenant, position);
        Ok(Some(position))
    }

    async fn publish(
        &mut self,
        connection: &mut PooledConnection,
        events: &[OutgoingEvent],
        read_to: &[(TenantId, i64)],
    ) -> Result<(), RelayError> {
        self.stream.publish(events).await?;
        self.published
            .increment(u64::try_from(events.len()).unwrap_or(u64::MAX));
        table::save(connection, self.stream.name(), &self.stream_id, read_to).await?;
        self.positions.extend(read_to.iter().copied());
        Ok(())
    }
}

fn to_outgoing(tenant: TenantId, event: &LoggedEvent) -> Result<OutgoingEvent, Error> {
    let body = serde_json::to_vec(&EventView::from(event));
    Ok(OutgoingEvent {
        tenant,
        position: event.position,
        id: event.id,
        kind: event.kind,
        body: Bytes::from(body.map_err(|error| Error::Internal(error.to_string()))?),
    })
}
