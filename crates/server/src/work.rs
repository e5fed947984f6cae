//! Registers the background tasks; the submodules run them.
//!
//! A column in PostgreSQL tells which rows are due, and row locks decide which worker processes them.
//! There is no separate queue that could disagree with the data. There are three kinds of task:
//!
//! - [`BatchTask`]: a worker claims a batch with `FOR UPDATE SKIP LOCKED`, processes it and commits,
//!   in one transaction. A worker that is killed has processed all of the batch or nothing. Any number
//!   of workers can run it.
//! - [`LeasedTask`]: one process at a time runs it. The process holds a lease and renews it while the
//!   task runs. If the process dies, the lease expires and another process takes over.
//! - [`QueueTask`]: a process holds a lease for each item and processes it outside of transactions, because it
//!   waits for other systems. If the process dies, the leases expire and other processes continue.
//!
//! Tasks run for every cell (one of the databases over which tenants are spread), in `perennial serve`
//! or `perennial work`.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    app::App,
    auth::{sessions, tokens},
    clients::delete_expired_api_keys,
    events::{log::sequencer, partitions},
    http::idempotency::remove_expired_keys,
    payment_accounts::{
        ClaimedCommand, HeldObject, PaymentCommandWorker, PaymentSyncWorker, RECONCILE_TASK,
        reconcile_accounts, retention_sql, send_payment_command, sync_object,
    },
    reports,
    subscriptions::apply_due_transitions,
    webhooks::{
        attempts_sql,
        delivery::{self, DeliveryWorker, HeldEndpoint},
    },
};

pub mod backoff;
mod batch;
mod lease;
mod queue;
mod worker_loop;

pub use batch::{BatchContext, BatchTask};
pub use lease::{Lease, LeaseTiming, LeasedTask, keep_renewing};
pub use queue::{LeaseTerms, QueueTask};

/// For tasks that are not urgent: after each batch, the worker pauses for three times the batch's
/// duration, so it is busy a quarter of the time.
const HOUSEKEEPING_PAUSE_FACTOR: u32 = 3;

static BATCH_TASKS: &[BatchTask] = &[
    BatchTask {
        name: "client_values.delete_expired",
        batch_size: 200,
        pause_factor: HOUSEKEEPING_PAUSE_FACTOR,
        gather: Duration::ZERO,
        run: |batch| {
            Box::pin(delete_expired_api_keys(
                batch.tx,
                batch.app.system_context(),
                batch.limit,
            ))
        },
    },
    BatchTask {
        name: "idempotency_keys.delete_expired",
        batch_size: 1_000,
        pause_factor: HOUSEKEEPING_PAUSE_FACTOR,
        gather: Duration::ZERO,
        run: |batch| Box::pin(remove_expired_keys(batch.tx, batch.limit)),
    },
    BatchTask {
        name: "sessions.delete_inactive",
        batch_size: 500,
        pause_factor: HOUSEKEEPING_PAUSE_FACTOR,
        gather: Duration::ZERO,
        run: |batch| {
            Box::pin(async move {
                sessions::delete_inactive(batch.app.db.home()?, batch.tx, batch.limit).await
            })
        },
    },
    BatchTask {
        name: "sessions.end_revoked",
        batch_size: 1_000,
        pause_factor: HOUSEKEEPING_PAUSE_FACTOR,
        gather: Duration::ZERO,
        run: |batch| {
            Box::pin(async move {
                let context = batch.app.system_context();
                let home = batch.app.db.home()?;
                sessions::end_revoked(home, batch.cell, batch.tx, context, batch.limit).await
            })
        },
    },
    BatchTask {
        name: "signing_keys.delete_retired",
        batch_size: 100,
        pause_factor: HOUSEKEEPING_PAUSE_FACTOR,
        gather: Duration::ZERO,
        run: |batch| Box::pin(tokens::table::delete_retired(batch.tx, batch.limit)),
    },
    BatchTask {
        name: "webhook_retries.delete_given_up",
        batch_size: 500,
        pause_factor: HOUSEKEEPING_PAUSE_FACTOR,
        gather: Duration::ZERO,
        run: |batch| Box::pin(delivery::delete_given_up(batch.tx, batch.limit)),
    },
    BatchTask {
        name: "payment_event_ids.delete_old",
        batch_size: 1_000,
        pause_factor: HOUSEKEEPING_PAUSE_FACTOR,
        gather: Duration::ZERO,
        run: |batch| Box::pin(retention_sql::delete_old_event_ids(batch.tx, batch.limit)),
    },
    BatchTask {
        name: "reports.roll_up",
        batch_size: 1_000,
        pause_factor: 1,
        gather: Duration::from_secs(1),
        run: |batch| {
            Box::pin(async move {
                let now = batch.app.billing_clock.now();
                reports::roll_up(batch.tx, now, batch.limit).await
            })
        },
    },
    BatchTask {
        name: "subscriptions.apply_due_transitions",
        batch_size: 500,
        // Half of a worker's time: fast enough, and reads are hardly slower (docs/explanation/benchmarks.md).
        pause_factor: 1,
        gather: Duration::ZERO,
        run: |batch| {
            Box::pin(async move {
                let now = batch.app.billing_clock.now();
                apply_due_transitions(
                    batch.app.db.home()?,
                    batch.cell,
                    batch.tx,
                    (batch.app.ids, now),
                    batch.limit,
                )
                .await
            })
        },
    },
];

static LEASED_TASKS: &[LeasedTask] = &[
    LeasedTask {
        name: "events.maintain_partitions",
        interval: Duration::from_hours(1),
        timing: LeaseTiming::RELAXED,
        run: |app, database| {
            Box::pin(partitions::maintain_partitions(
                database,
                app.event_retention_months,
            ))
        },
    },
    LeasedTask {
        name: sequencer::TASK,
        // Runs until it is stopped.
        interval: Duration::ZERO,
        timing: LeaseTiming::URGENT,
        run: |_, database| Box::pin(sequencer::run(database)),
    },
    LeasedTask {
        name: "webhook_attempts.maintain_partitions",
        interval: Duration::from_hours(1),
        timing: LeaseTiming::RELAXED,
        run: |_, database| Box::pin(attempts_sql::maintain_partitions(database)),
    },
    LeasedTask {
        name: "payment_notifications.maintain_partitions",
        interval: Duration::from_hours(1),
        timing: LeaseTiming::RELAXED,
        run: |_, database| Box::pin(retention_sql::maintain_partitions(database)),
    },
    LeasedTask {
        name: RECONCILE_TASK,
        interval: Duration::from_hours(1),
        timing: LeaseTiming::RELAXED,
        run: |app, database| Box::pin(reconcile_accounts(app, database)),
    },
];

static DELIVER_WEBHOOKS: QueueTask<DeliveryWorker, HeldEndpoint> = QueueTask {
    name: "webhooks.deliver",
    max_items: 4_096,
    start: DeliveryWorker::new,
    claim: |worker, terms, limit| Box::pin(worker.claim(terms.holder, terms.ttl, limit)),
    wait: |worker| Box::pin(worker.wait()),
    process: |worker, endpoint, stop| Box::pin(delivery::deliver(worker, endpoint, stop)),
    renew: |worker, terms, held| Box::pin(worker.renew(terms.holder, terms.ttl, held)),
    release: |worker, terms, held| Box::pin(worker.release(terms.holder, held)),
};

static SYNC_PAYMENT_OBJECTS: QueueTask<PaymentSyncWorker, HeldObject> = QueueTask {
    name: "payment_objects.sync",
    max_items: 32,
    start: PaymentSyncWorker::new,
    claim: |worker, terms, limit| Box::pin(worker.claim(terms.holder, terms.ttl, limit)),
    wait: |worker| Box::pin(worker.wait()),
    process: |worker, object, stop| Box::pin(sync_object(worker, object, stop)),
    renew: |worker, terms, held| Box::pin(worker.renew(terms.holder, terms.ttl, held)),
    release: |worker, _, held| Box::pin(worker.release(held)),
};

static SEND_PAYMENT_COMMANDS: QueueTask<PaymentCommandWorker, ClaimedCommand> = QueueTask {
    name: "payment_commands.send",
    max_items: 16,
    start: PaymentCommandWorker::new,
    claim: |worker, terms, limit| Box::pin(worker.claim(terms.ttl, limit)),
    wait: |worker| Box::pin(worker.wait()),
    process: |worker, command, stop| Box::pin(send_payment_command(worker, command, stop)),
    renew: |worker, terms, held| Box::pin(worker.renew(terms.ttl, held)),
    release: |worker, _, held| Box::pin(worker.release(held)),
};

/// Returns the names of the leased tasks, as in the table `task_leases`.
pub fn leased_task_names() -> Vec<&'static str> {
    LEASED_TASKS.iter().map(|task| task.name).collect()
}

/// Runs `workers` workers for each task and cell until `stop` is cancelled. Workers then
/// finish their current batch.
pub async fn run(app: Arc<App>, workers: u16, stop: CancellationToken) {
    let mut running = JoinSet::new();
    for cell in app.db.cell_names() {
        if workers > 0 {
            // Notifications may have been lost while no process ran.
            running.spawn(reconcile_at_start(app.clone(), cell.to_owned()));
            // One of each per process: they process many items at a time.
            spawn_queue(&mut running, &app, cell, &DELIVER_WEBHOOKS, &stop);
            spawn_queue(&mut running, &app, cell, &SYNC_PAYMENT_OBJECTS, &stop);
            spawn_queue(&mut running, &app, cell, &SEND_PAYMENT_COMMANDS, &stop);
        }
        for _ in 0..workers {
            for task in BATCH_TASKS {
                let (app, cell, stop) = (app.clone(), cell.to_owned(), stop.clone());
                running.spawn(restart_after_panic(task.name, move || {
                    batch::run_worker(app.clone(), cell.clone(), task, stop.clone())
                }));
            }
            for task in LEASED_TASKS {
                let (app, cell, stop) = (app.clone(), cell.to_owned(), stop.clone());
                running.spawn(restart_after_panic(task.name, move || {
                    lease::run_worker(app.clone(), cell.clone(), task, stop.clone())
                }));
            }
        }
    }
    while running.join_next().await.is_some() {}
}

/// Makes the reconcile of payment accounts due.
async fn reconcile_at_start(app: Arc<App>, cell: String) {
    let made_due = async { lease::make_due(app.db.cell(&cell)?, RECONCILE_TASK).await };
    if let Err(error) = made_due.await {
        tracing::debug!(cell, %error, "payment accounts are reconciled within the hour");
    }
}

/// Starts the worker of a queue task.
fn spawn_queue<W, I>(
    running: &mut JoinSet<()>,
    app: &Arc<App>,
    cell: &str,
    task: &'static QueueTask<W, I>,
    stop: &CancellationToken,
) where
    W: Send + Sync,
    I: Send + Sync,
{
    let (app, cell, stop) = (app.clone(), cell.to_owned(), stop.clone());
    running.spawn(restart_after_panic(task.name, move || {
        queue::run_worker(app.clone(), cell.clone(), task, stop.clone())
    }));
}

/// Runs a worker until it ends, and restarts it if it panics: one bad item must not stop a task.
async fn restart_after_panic<F>(task: &'static str, worker: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    while let Err(error) = tokio::spawn(worker()).await {
        tracing::error!(task, %error, "a worker panicked; restarting it");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
