//! Delivers events to webhook endpoints, at least once each.
//!
//! A process holds the lease of an endpoint while there is something to send ([`DeliveryWorker::claim`]). It reads the
//! event log after the endpoint's cursor, sends each event ([`message`]), at a pace that the endpoint can take
//! ([`pacing`]) and in the order that it wants ([`backlog`]). A failed event moves to `webhook_retries`, so that the
//! cursor can pass it. Cursors are saved each second, so a crash repeats at most the requests of that second.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use perennial_domain::{DisabledReason, WebhookEndpointId};
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::{attempt_log::AttemptLog, endpoint_loop::EndpointLoop};
use super::{
    attempts_sql::KEPT_DAYS,
    claim_sql::{self, EndpointState},
    lease_sql::{self, Cursors, EndpointLease},
    retries_sql::{self, EndpointKey},
};
use crate::{
    app::App,
    db::{CellDatabase, Error, PooledConnection, Transaction},
    events::log::{AllLogsSubscription, GrownLogs, LogWatch},
    randomness::jitter,
};

mod attempt_log;
mod backlog;
mod endpoint_loop;
pub mod message;
mod outcome;
mod pacing;
mod work_source;

/// Requests in flight of this process that are not slow.
const MAX_REQUESTS: usize = 512;
/// Requests in flight that are slow: to slow endpoints, or for longer than [`pacing::SLOW_RESPONSE`].
const MAX_SLOW_REQUESTS: usize = 512;
/// Connections to the database in use at a time, which leaves the pool to requests.
const MAX_CONNECTIONS: usize = 2;
const MIN_CLAIM_INTERVAL: Duration = Duration::from_millis(100);
/// How often all endpoints are searched for ones behind the log, in case a notification was lost with its process.
const SEARCH_INTERVAL: Duration = Duration::from_secs(10);
/// How soon all endpoints are searched again after a claim that failed or reached its limit.
const MIN_SEARCH_INTERVAL: Duration = Duration::from_secs(1);
/// How often leases are renewed. Between, only cursors that have moved are saved.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(4);
/// How long an endpoint is held whose settings cannot be used.
const ERROR_INTERVAL: Duration = Duration::from_mins(1);

/// The deliveries of this process for one cell.
pub struct DeliveryWorker {
    app: Arc<App>,
    cell: String,
    slots: Semaphore,
    slow_slots: Semaphore,
    connections: Semaphore,
    attempts: AttemptLog,
    /// When all endpoints are searched next.
    search_at: Mutex<Instant>,
    grown_logs: Option<AllLogsSubscription>,
}

/// An endpoint whose lease this process holds.
pub struct HeldEndpoint {
    key: EndpointKey,
    claimed: EndpointState,
    /// The cursor.
    position: AtomicI64,
    saved: Mutex<SavedCursor>,
    /// When the endpoint was last changed, in microseconds since the Unix epoch.
    changed_at: AtomicI64,
}

#[derive(Debug, Clone, Copy)]
struct SavedCursor {
    position: i64,
    /// When the lease was renewed.
    renewed_at: Instant,
}

impl HeldEndpoint {
    fn new(claimed: EndpointState) -> Self {
        Self {
            key: EndpointKey {
                tenant: claimed.tenant,
                endpoint: claimed.endpoint.id,
            },
            position: AtomicI64::new(claimed.position),
            saved: Mutex::new(SavedCursor {
                position: claimed.position,
                renewed_at: Instant::now(),
            }),
            changed_at: AtomicI64::new(claimed.endpoint.updated_at.as_microsecond()),
            claimed,
        }
    }
}

/// Creates the counters, so that an alert notices the first increment.
fn register_counters() {
    for outcome in ["delivered", "failed"] {
        metrics::counter!("perennial_webhook_attempts_total", "outcome" => outcome).absolute(0);
    }
    for reason in [DisabledReason::Failures, DisabledReason::Gone] {
        let reason = reason.as_str();
        metrics::counter!("perennial_webhook_endpoints_disabled_total", "reason" => reason)
            .absolute(0);
    }
    metrics::counter!("perennial_webhook_events_given_up_total").absolute(0);
    metrics::counter!("perennial_webhook_attempts_dropped_total").absolute(0);
}

/// A connection, and the permit to use it.
struct LimitedConnection<'a> {
    connection: PooledConnection,
    _permit: tokio::sync::SemaphorePermit<'a>,
}

impl DeliveryWorker {
    pub fn new(app: Arc<App>, cell: &str) -> Self {
        register_counters();
        Self {
            attempts: AttemptLog::start(app.clone(), cell.to_owned()),
            grown_logs: app.log_watch(cell).ok().map(LogWatch::subscribe_all),
            search_at: Mutex::new(Instant::now()),
            app,
            cell: cell.to_owned(),
            slots: Semaphore::new(MAX_REQUESTS),
            slow_slots: Semaphore::new(MAX_SLOW_REQUESTS),
            connections: Semaphore::new(MAX_CONNECTIONS),
        }
    }

    fn database(&self) -> Result<&CellDatabase, Error> {
        self.app.db.cell(&self.cell)
    }

    async fn connection(&self) -> Result<LimitedConnection<'_>, Error> {
        let permit = self.connections.acquire().await;
        let permit = permit.map_err(|error| Error::Internal(error.to_string()))?;
        Ok(LimitedConnection {
            connection: self.database()?.connection().await?,
            _permit: permit,
        })
    }

    /// Waits until endpoints may have something to send: a log has grown, or a retry may be due.
    pub async fn wait(&self) {
        // The endpoints of several events are claimed together.
        tokio::time::sleep(jitter(MIN_CLAIM_INTERVAL)).await;
        match &self.grown_logs {
            Some(grown_logs) => grown_logs.changed().await,
            None => tokio::time::sleep(MIN_SEARCH_INTERVAL).await,
        }
    }

    /// Acquires the leases of up to `limit` endpoints that have something to send.
    pub async fn claim(
        &self,
        holder: Uuid,
        ttl: Duration,
        limit: i64,
    ) -> Result<Vec<HeldEndpoint>, Error> {
        let in_flight = MAX_REQUESTS.saturating_sub(self.slots.available_permits());
        metrics::gauge!("perennial_webhook_requests_in_flight", "cell" => self.cell.clone())
            .set(u32::try_from(in_flight).unwrap_or(u32::MAX));
        let mut search_at = self.search_at.lock().await;
        let now = Instant::now();
        let grown = self.grown_logs.as_ref().map(AllLogsSubscription::take);
        let grown = grown.filter(|_| now < *search_at).unwrap_or(GrownLogs::All);
        let is_search = grown == GrownLogs::All;
        // What was taken must not be forgotten if the claim fails or stops at its limit.
        let next_search_at = std::mem::replace(&mut *search_at, now + MIN_SEARCH_INTERVAL);
        let lease = EndpointLease {
            holder,
            ttl_seconds: ttl.as_secs_f64(),
        };
        let mut limited = self.connection().await?;
        let tx = limited.connection.begin();
        let mut claimed = claim_sql::claim_due(&tx, lease, limit).await?;
        let rest = limit.saturating_sub(i64::try_from(claimed.len()).unwrap_or(limit));
        claimed.extend(claim_sql::claim_behind(&tx, lease, &grown, rest).await?);
        tx.commit().await?;
        if i64::try_from(claimed.len()).is_ok_and(|count| count < limit) {
            *search_at = if is_search {
                now + jitter(SEARCH_INTERVAL)
            } else {
                next_search_at
            };
        }
        Ok(claimed.into_iter().map(HeldEndpoint::new).collect())
    }

    /// Saves the cursors that have moved and renews leases. Returns for each endpoint whether its lease is held.
    pub async fn renew(
        &self,
        holder: Uuid,
        ttl: Duration,
        held: &[Arc<HeldEndpoint>],
    ) -> Result<Vec<bool>, Error> {
        let now = Instant::now();
        let mut cursors = Cursors::default();
        let mut renewed: HashMap<WebhookEndpointId, (&HeldEndpoint, SavedCursor)> = HashMap::new();
        for endpoint in held {
            let position = endpoint.position.load(Ordering::Acquire);
            let saved = *endpoint.saved.lock().await;
            let is_renewed = now.duration_since(saved.renewed_at) >= RENEWAL_INTERVAL;
            if is_renewed || position != saved.position {
                let EndpointKey {
                    tenant,
                    endpoint: id,
                } = endpoint.key;
                cursors.push(tenant, id, position, is_renewed);
                let renewed_at = if is_renewed { now } else { saved.renewed_at };
                let cursor = SavedCursor {
                    position,
                    renewed_at,
                };
                renewed.insert(id, (endpoint, cursor));
            }
        }
        if cursors.is_empty() {
            return Ok(vec![true; held.len()]);
        }
        let limited = self.connection().await?;
        let lease = EndpointLease {
            holder,
            ttl_seconds: ttl.as_secs_f64(),
        };
        for (id, changed_at) in lease_sql::renew(&limited.connection, lease, &cursors).await? {
            if let Some((endpoint, cursor)) = renewed.remove(&id) {
                let changed_at = changed_at.as_microsecond();
                endpoint.changed_at.store(changed_at, Ordering::Release);
                *endpoint.saved.lock().await = cursor;
            }
        }
        // The remaining endpoints were not renewed.
        let is_held = |endpoint: &Arc<HeldEndpoint>| !renewed.contains_key(&endpoint.key.endpoint);
        Ok(held.iter().map(is_held).collect())
    }

    /// Saves the cursor of an endpoint and releases its lease.
    pub async fn release(&self, holder: Uuid, held: &HeldEndpoint) -> Result<(), Error> {
        let mut limited = self.connection().await?;
        let EndpointKey { tenant, endpoint } = held.key;
        let position = held.position.load(Ordering::Acquire);
        let tx = limited.connection.begin();
        lease_sql::release(&tx, holder, tenant, endpoint, position).await?;
        tx.commit().await?;
        // The log may have grown between the statement and its commit.
        if let Some(grown_logs) = &self.grown_logs {
            grown_logs.add(tenant);
        }
        Ok(())
    }
}

/// Delivers events to an endpoint until there is nothing to send or `stop` is cancelled.
pub async fn deliver(
    worker: Arc<DeliveryWorker>,
    held: Arc<HeldEndpoint>,
    stop: CancellationToken,
) {
    let key = held.key;
    match EndpointLoop::new(worker, held) {
        Ok(endpoint) => endpoint.run(stop).await,
        // For example, the secret was encrypted with another master key.
        Err(error) => {
            tracing::error!(endpoint = %key.endpoint, %error, "cannot deliver to a webhook endpoint");
            let _ = tokio::time::timeout(ERROR_INTERVAL, stop.cancelled()).await;
        }
    }
}

/// Deletes up to `limit` events that were given up and whose attempts are no longer kept.
pub async fn delete_given_up(tx: &Transaction<'_>, limit: i64) -> Result<usize, Error> {
    let deleted = retries_sql::delete_given_up(tx, f64::from(KEPT_DAYS), limit).await?;
    Ok(usize::try_from(deleted).unwrap_or(usize::MAX))
}
