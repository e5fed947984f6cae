//! The queue task that makes records follow payment providers.
//!
//! A process claims objects that notifications have marked as dirty, fetches each from the payment provider outside of
//! transactions, and applies it ([`sync_apply`]). A provider that is down or limits requests pauses its account in this
//! process. An object stays dirty until it was applied, ignored or needs a person, so nothing is lost.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use perennial_domain::{NotificationState, PaymentObjectKind};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    account_pauses::{AccountPauses, MAX_RETRY_INTERVAL, retry_interval},
    object_fetch,
    object_lease_sql::{self, ClaimedObject, ObjectLease},
    provider_metrics::register_metrics,
    sync_apply::{self, Conclusion, SyncOutcome},
    sync_sql::{self, SettledObject},
    table,
};
use crate::{
    app::App,
    db::{CellDatabase, Error},
    randomness::jitter,
};

/// How often due objects are searched.
const CLAIM_INTERVAL: Duration = Duration::from_millis(250);
/// How often due objects are searched after a search has found as many as it could take.
const BACKLOG_INTERVAL: Duration = Duration::from_millis(20);
/// How often objects are searched whose subscription, plan or user has appeared.
const WAKE_INTERVAL: Duration = Duration::from_secs(1);
/// A lease is renewed when the object has been held for this long.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(4);
/// Connections to the database in use at a time, which leaves the pool to requests.
const MAX_CONNECTIONS: usize = 2;
/// Objects that wait for a record are also fetched again without it, because they may have changed or ended. They are many
/// where other products are sold with the same account, so this must not use up the provider's limit of requests.
const MAX_WAITING_INTERVAL: Duration = Duration::from_hours(24);
/// A provider may answer 404 for an object that it has just reported.
const MAX_NOT_FOUND_ATTEMPTS: u32 = 5;

/// The processing of payment objects of this process for one cell.
pub struct PaymentSyncWorker {
    app: Arc<App>,
    cell: String,
    connections: Semaphore,
    pauses: AccountPauses,
    wake_at: Mutex<Instant>,
    has_backlog: AtomicBool,
}

/// An object whose lease this process holds.
pub struct HeldObject {
    claimed: ClaimedObject,
    claimed_at: Instant,
}

/// Creates the counters, so that an alert notices the first increment.
pub(super) fn register_counters() {
    for outcome in [
        "applied", "ignored", "waiting", "failed", "moved", "retried", "fenced",
    ] {
        count(outcome, 0);
    }
}

fn count(outcome: &'static str, number: u64) {
    metrics::counter!("perennial_payment_objects_total", "outcome" => outcome).increment(number);
}

impl PaymentSyncWorker {
    pub fn new(app: Arc<App>, cell: &str) -> Self {
        register_metrics();
        Self {
            app,
            cell: cell.to_owned(),
            connections: Semaphore::new(MAX_CONNECTIONS),
            pauses: AccountPauses::default(),
            wake_at: Mutex::new(Instant::now()),
            has_backlog: AtomicBool::new(false),
        }
    }

    fn database(&self) -> Result<&CellDatabase, Error> {
        self.app.db.cell(&self.cell)
    }

    /// Waits until a transaction may use a connection.
    async fn permit(&self) -> Result<SemaphorePermit<'_>, Error> {
        let permit = self.connections.acquire().await;
        permit.map_err(|error| Error::Internal(error.to_string()))
    }

    /// Waits until objects may be due.
    pub async fn wait(&self) {
        let interval = if self.has_backlog.load(Ordering::Relaxed) {
            BACKLOG_INTERVAL
        } else {
            CLAIM_INTERVAL
        };
        tokio::time::sleep(jitter(interval)).await;
    }

    /// Acquires the leases of up to `limit` objects that are due.
    pub async fn claim(
        &self,
        holder: Uuid,
        ttl: Duration,
        limit: i64,
    ) -> Result<Vec<HeldObject>, Error> {
        let paused = self.pauses.paused_accounts();
        let mut connection = self.database()?.connection().await?;
        let tx = connection.begin();
        if self.is_wake_due() {
            sync_sql::wake_waiting(&tx).await?;
        }
        let lease = ObjectLease { holder, ttl };
        let claimed = object_lease_sql::claim(&tx, lease, &paused, limit).await?;
        tx.commit().await?;
        let is_full = i64::try_from(claimed.len()).is_ok_and(|claimed| claimed >= limit);
        self.has_backlog.store(is_full, Ordering::Relaxed);
        let claimed_at = Instant::now();
        let hold = |claimed| HeldObject {
            claimed,
            claimed_at,
        };
        Ok(claimed.into_iter().map(hold).collect())
    }

    fn is_wake_due(&self) -> bool {
        let mut wake_at = self.wake_at.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_due = *wake_at <= now;
        if is_due {
            *wake_at = now + jitter(WAKE_INTERVAL);
        }
        is_due
    }

    /// Renews leases. Returns for each object whether its lease is held.
    pub async fn renew(
        &self,
        holder: Uuid,
        ttl: Duration,
        held: &[Arc<HeldObject>],
    ) -> Result<Vec<bool>, Error> {
        let is_old = |item: &HeldObject| item.claimed_at.elapsed() >= RENEWAL_INTERVAL;
        let old: Vec<&ClaimedObject> = { held.iter() }
            .filter(|item| is_old(item))
            .map(|item| &item.claimed)
            .collect();
        if old.is_empty() {
            return Ok(vec![true; held.len()]);
        }
        let connection = self.database()?.connection().await?;
        let renewed =
            object_lease_sql::renew(&connection, ObjectLease { holder, ttl }, &old).await?;
        let is_held = |item: &Arc<HeldObject>| !is_old(item) || renewed.contains(&item.claimed.key);
        Ok(held.iter().map(is_held).collect())
    }

    /// Releases the lease of an object that was not processed to its end.
    pub async fn release(&self, held: &HeldObject) -> Result<(), Error> {
        let connection = self.database()?.connection().await?;
        object_lease_sql::release(&connection, &held.claimed).await
    }

    /// Fetches and applies an object.
    async fn sync(&self, item: &ClaimedObject) -> Result<(), Error> {
        let database = self.database()?;
        let (tenant, account) = (item.key.tenant, item.key.account);
        let Some(account) = table::find(database, tenant, account).await? else {
            let conclusion = Conclusion::Ignored {
                reason: "the payment account was deleted".to_owned(),
                settled: SettledObject::default(),
            };
            return self.conclude(item, conclusion).await;
        };
        let (fetched, source) = match object_fetch::fetch(&self.app, database, &account, item)
            .await?
        {
            (Ok(fetched), source) => {
                self.pauses.resume(account.id);
                (fetched, source)
            }
            (Err(error), _) if error.is_temporary() => {
                let pause = self.pauses.pause(account.id, &error, self.app.clock.now());
                tracing::warn!(account = %account.id, %error, "cannot fetch a payment object");
                return self.retry(item, pause, error.to_string()).await;
            }
            (Err(error), _) if error.is_not_found() && item.attempts < MAX_NOT_FOUND_ATTEMPTS => {
                self.pauses.resume(account.id);
                let pause = retry_interval(item.attempts, MAX_RETRY_INTERVAL);
                return self.retry(item, pause, error.to_string()).await;
            }
            (Err(error), _) => {
                self.pauses.resume(account.id);
                return self
                    .conclude(item, Conclusion::Failed(error.to_string()))
                    .await;
            }
        };
        let permit = self.permit().await?;
        let outcome =
            sync_apply::apply(&self.app, database, &account, item, &fetched, source).await?;
        drop(permit);
        let pause = retry_interval(item.attempts, MAX_RETRY_INTERVAL);
        match outcome {
            SyncOutcome::Applied(_) => count("applied", 1),
            SyncOutcome::Fenced => count("fenced", 1),
            SyncOutcome::Ignored { reason, settled } => {
                let conclusion = Conclusion::Ignored { reason, settled };
                self.conclude(item, conclusion).await?;
            }
            SyncOutcome::Failed(reason) => self.conclude(item, Conclusion::Failed(reason)).await?,
            SyncOutcome::MovedTo(target) => {
                self.conclude(item, Conclusion::MovedTo(&target)).await?;
            }
            SyncOutcome::Waiting(awaited, reason) => {
                count("waiting", 1);
                let pause = retry_interval(item.attempts, MAX_WAITING_INTERVAL);
                let state = (NotificationState::Waiting, reason);
                let _permit = self.permit().await?;
                sync_apply::postpone(database, item, pause, state, Some(&awaited)).await?;
            }
            SyncOutcome::Outdated => {
                let reason = "the API returned an older state than before".to_owned();
                self.retry(item, pause, reason).await?;
            }
            SyncOutcome::Conflict => {
                let reason = "the record was created at the same time".to_owned();
                self.retry(item, pause, reason).await?;
            }
        }
        Ok(())
    }

    async fn retry(
        &self,
        item: &ClaimedObject,
        pause: Duration,
        reason: String,
    ) -> Result<(), Error> {
        count("retried", 1);
        let state = (NotificationState::New, reason);
        let _permit = self.permit().await?;
        sync_apply::postpone(self.database()?, item, pause, state, None).await
    }

    async fn conclude(
        &self,
        item: &ClaimedObject,
        conclusion: Conclusion<'_>,
    ) -> Result<(), Error> {
        let outcome = match conclusion {
            Conclusion::Ignored { .. } => "ignored",
            Conclusion::Failed(_) => "failed",
            Conclusion::MovedTo(_) => "moved",
        };
        if let Conclusion::Failed(reason) = &conclusion {
            let (account, object) = (item.key.account, &item.key.object);
            let (kind, id) = (object.kind, &object.id);
            tracing::warn!(%account, %kind, id, reason, "a payment object cannot be applied");
        }
        let _permit = self.permit().await?;
        sync_apply::conclude(&self.app, self.database()?, item, conclusion).await?;
        count(outcome, 1);
        Ok(())
    }
}

/// Processes an object until it is done or `stop` is cancelled.
pub async fn sync_object(
    worker: Arc<PaymentSyncWorker>,
    held: Arc<HeldObject>,
    stop: CancellationToken,
) {
    let item = &held.claimed;
    let result = tokio::select! {
        () = stop.cancelled() => return,
        result = worker.sync(item) => result,
    };
    let Err(error) = result else { return };
    let kind: PaymentObjectKind = item.key.object.kind;
    tracing::error!(account = %item.key.account, %kind, %error, "cannot apply a payment object");
    // An object that cannot be postponed either is claimed again when its lease expires.
    let pause = retry_interval(item.attempts, MAX_RETRY_INTERVAL);
    let reason = "internal error; see the log".to_owned();
    if let Err(error) = worker.retry(item, pause, reason).await {
        tracing::debug!(%error, "cannot postpone a payment object");
    }
}
