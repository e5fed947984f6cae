//! Tasks that process items outside of transactions, such as network calls, under a lease per item.
//!
//! A process claims items, processes each in its own task and renews all leases together. A killed process loses
//! its leases after [`LEASE_TTL`], and another process continues with what the items stored last. An item may thus
//! be processed twice for a moment, but not for longer than [`LEASE_TTL`].

use std::{collections::HashMap, pin::Pin, sync::Arc, time::Duration};

use tokio::{
    task::{Id, JoinSet},
    time::{Instant, MissedTickBehavior, interval, timeout_at},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::worker_loop::WorkerLoop;
use crate::{
    app::App,
    db::Error,
    randomness::{Randomness, jitter},
};

/// A lease that is not renewed for this long expires, and another process can claim the item.
const LEASE_TTL: Duration = Duration::from_secs(15);
/// A process that cannot renew its leases for this long stops processing, before they expire.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(10);
/// How often items are saved. A crash repeats at most the work of this interval.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
/// How long items may take to finish when the process stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(8);

pub type QueueFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
type QueryFuture<'a, T> = QueueFuture<'a, Result<T, Error>>;
type RenewItems<W, I> = for<'a> fn(&'a W, LeaseTerms, &'a [Arc<I>]) -> QueryFuture<'a, Vec<bool>>;

/// A task that any number of processes can run, with a lease per item. `W` is the state of a process, `I` is an
/// item.
pub struct QueueTask<W: 'static, I: 'static> {
    /// The name in logs and metrics.
    pub name: &'static str,
    /// The maximum number of items that a process holds.
    pub max_items: usize,
    /// Creates the state of this process for a cell.
    pub start: fn(Arc<App>, &str) -> W,
    /// Acquires the leases of up to this many items.
    pub claim: for<'a> fn(&'a W, LeaseTerms, i64) -> QueryFuture<'a, Vec<I>>,
    /// Waits until there may be items to claim, at most about a second.
    pub wait: for<'a> fn(&'a W) -> QueueFuture<'a, ()>,
    /// Processes an item until it has nothing to do or the token is cancelled.
    pub process: fn(Arc<W>, Arc<I>, CancellationToken) -> QueueFuture<'static, ()>,
    /// Saves items and renews their leases. Returns for each whether the lease is still held.
    pub renew: RenewItems<W, I>,
    /// Saves an item and releases its lease.
    pub release: for<'a> fn(&'a W, LeaseTerms, &'a I) -> QueryFuture<'a, ()>,
}

/// Who holds a lease, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTerms {
    pub holder: Uuid,
    pub ttl: Duration,
}

struct HeldItem<I> {
    item: Arc<I>,
    /// Stops processing when the lease is lost.
    stop: CancellationToken,
}

/// The items of this process.
struct Held<W: 'static, I: 'static> {
    task: &'static QueueTask<W, I>,
    worker: Arc<W>,
    terms: LeaseTerms,
    items: HashMap<Id, HeldItem<I>>,
    running: JoinSet<()>,
    renewed_at: Instant,
}

/// Runs the task in this process until `stop` is cancelled.
pub(super) async fn run_worker<W, I>(
    app: Arc<App>,
    cell: String,
    task: &'static QueueTask<W, I>,
    stop: CancellationToken,
) where
    W: Send + Sync,
    I: Send + Sync,
{
    let mut held = Held {
        task,
        worker: Arc::new((task.start)(app, &cell)),
        terms: LeaseTerms {
            holder: uuid::Builder::from_random_bytes(Randomness.bytes()).into_uuid(),
            ttl: LEASE_TTL,
        },
        items: HashMap::new(),
        running: JoinSet::new(),
        renewed_at: Instant::now(),
    };
    let mut save = interval(SAVE_INTERVAL);
    save.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut worker = WorkerLoop::new(task.name, &cell, stop.clone());
    let state = held.worker.clone();
    // Not started again by each save, which would come first every time.
    let mut wait = (task.wait)(&state);
    while worker.is_running() {
        tokio::select! {
            Some(ended) = held.running.join_next_with_id() => held.forget(ended.map(|(id, ())| id)),
            _ = save.tick() => {
                let outcome = held.renew().await;
                worker.record(outcome.map(|()| Duration::ZERO));
            }
            () = &mut wait => {
                let claimed = held.claim(&stop).await;
                worker.sleep_after(claimed.map(|()| Duration::ZERO)).await;
                wait = (task.wait)(&state);
            }
            () = stop.cancelled() => {}
        }
    }
    held.finish().await;
}

impl<W: Send + Sync, I: Send + Sync> Held<W, I> {
    async fn claim(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        let free = self.task.max_items.saturating_sub(self.items.len());
        if free == 0 {
            return Ok(());
        }
        let limit = i64::try_from(free).unwrap_or(i64::MAX);
        for item in (self.task.claim)(&self.worker, self.terms, limit).await? {
            let item = Arc::new(item);
            let stop = stop.child_token();
            let (task, worker, terms) = (self.task, self.worker.clone(), self.terms);
            let (own, own_stop) = (item.clone(), stop.clone());
            let running = self.running.spawn(async move {
                (task.process)(worker.clone(), own.clone(), own_stop).await;
                // A lease that cannot be released expires.
                if let Err(error) = (task.release)(&worker, terms, &own).await {
                    tracing::debug!(task = task.name, %error, "cannot release a lease");
                }
            });
            self.items.insert(running.id(), HeldItem { item, stop });
        }
        Ok(())
    }

    /// Saves all items and renews their leases. Stops those whose lease is lost.
    async fn renew(&mut self) -> Result<(), Error> {
        let (ids, items): (Vec<Id>, Vec<Arc<I>>) = { self.items.iter() }
            .map(|(id, held)| (*id, held.item.clone()))
            .unzip();
        metrics::gauge!("perennial_task_held_items", "task" => self.task.name)
            .set(u32::try_from(items.len()).unwrap_or(u32::MAX));
        if items.is_empty() {
            self.renewed_at = Instant::now();
            return Ok(());
        }
        let deadline = self.renewed_at + RENEWAL_TIMEOUT;
        let started_at = Instant::now();
        let renewal = (self.task.renew)(&self.worker, self.terms, &items);
        match timeout_at(deadline.max(started_at), renewal).await {
            Ok(Ok(still_held)) => {
                self.renewed_at = started_at;
                for (id, is_held) in ids.iter().zip(still_held) {
                    if let Some(item) = self.items.get(id).filter(|_| !is_held) {
                        item.stop.cancel();
                    }
                }
                Ok(())
            }
            // Retry: the leases are still valid.
            Ok(Err(error)) if Instant::now() < deadline => Err(error),
            Ok(Err(_)) | Err(_) => {
                for item in self.items.values() {
                    item.stop.cancel();
                }
                self.running.abort_all();
                self.renewed_at = Instant::now();
                Err(Error::Unavailable("leases could not be renewed".to_owned()))
            }
        }
    }

    /// Forgets an item whose processing has ended.
    fn forget(&mut self, ended: Result<Id, tokio::task::JoinError>) {
        let id = ended.unwrap_or_else(|error| {
            if error.is_panic() {
                tracing::error!(task = self.task.name, %error, "processing an item panicked");
            }
            error.id()
        });
        self.items.remove(&id);
    }

    /// Waits for items that finish in time, and releases all leases.
    async fn finish(mut self) {
        let deadline = Instant::now() + STOP_TIMEOUT;
        while let Ok(Some(ended)) = timeout_at(deadline, self.running.join_next_with_id()).await {
            self.forget(ended.map(|(id, ())| id));
        }
        self.running.shutdown().await;
        for held in self.items.into_values() {
            let release = (self.task.release)(&self.worker, self.terms, &held.item);
            let _ = tokio::time::timeout(jitter(SAVE_INTERVAL), release).await;
        }
    }
}
