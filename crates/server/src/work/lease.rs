//! Tasks that one process at a time runs: it holds a lease, which it renews while the task runs.
//!
//! Leases use the database's clock, so processes whose clocks differ agree on who holds one.

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_postgres::types::ToSql;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::worker_loop::WorkerLoop;
use crate::{
    app::App,
    db::{CellDatabase, Error, Sql},
    randomness::{Randomness, jitter},
};

/// How long a lease is held, and how often workers check it.
pub struct LeaseTiming {
    /// A lease that is not renewed for this long expires, and another process takes over.
    pub ttl: Duration,
    /// A holder that cannot renew its lease for this long stops the task, before the lease expires.
    renewal_timeout: Duration,
    renewal_interval: Duration,
    /// How often a worker checks whether its task is due.
    poll_interval: Duration,
}

impl LeaseTiming {
    /// For tasks that can wait: another process takes over within 20 seconds.
    pub const RELAXED: Self = Self {
        ttl: Duration::from_secs(15),
        renewal_timeout: Duration::from_secs(10),
        renewal_interval: Duration::from_millis(2_500),
        poll_interval: Duration::from_secs(5),
    };
    /// For tasks that clients wait for: another process takes over within 4 seconds.
    pub const URGENT: Self = Self {
        ttl: Duration::from_secs(3),
        renewal_timeout: Duration::from_secs(2),
        renewal_interval: Duration::from_millis(750),
        poll_interval: Duration::from_millis(500),
    };
}

type TaskFuture<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// A task that one process at a time runs.
pub struct LeasedTask {
    /// The name in logs, metrics and the table `task_leases`.
    pub name: &'static str,
    /// The pause between the end of a run and the next one.
    pub interval: Duration,
    pub timing: LeaseTiming,
    /// Runs the task. The future is dropped at an await point if the lease is lost or the worker stops.
    pub run: for<'a> fn(&'a App, &'a CellDatabase) -> TaskFuture<'a>,
}

static REGISTER: Sql =
    Sql::new("INSERT INTO task_leases (task) VALUES ($1) ON CONFLICT DO NOTHING");
static ACQUIRE: Sql = Sql::new(
    "UPDATE task_leases SET held_by = $2, held_until = now() + $3 * interval '1 second'
     WHERE task = $1 AND next_run_at <= now() AND (held_until IS NULL OR held_until < now())",
);
static RENEW: Sql = Sql::new(
    "UPDATE task_leases SET held_until = now() + $3 * interval '1 second' WHERE task = $1 AND held_by = $2",
);
static COMPLETE: Sql = Sql::new(
    "UPDATE task_leases
     SET held_by = NULL, held_until = NULL, failures = 0, next_run_at = now() + $3 * interval '1 second'
     WHERE task = $1 AND held_by = $2",
);
static MAKE_DUE: Sql = Sql::new(
    "UPDATE task_leases SET next_run_at = now() WHERE task = $1 AND next_run_at > now() AND held_by IS NULL",
);
// The pause doubles with each failure in a row, from five seconds up to ten minutes.
static FAIL: Sql = Sql::new(
    "UPDATE task_leases
     SET held_by = NULL, held_until = NULL, failures = failures + 1,
         next_run_at = now() + least(5 * 2 ^ least(failures, 20), 600) * interval '1 second'
     WHERE task = $1 AND held_by = $2",
);

/// The exclusive right to run a task until it expires.
#[derive(Debug)]
pub struct Lease {
    task: &'static str,
    holder: Uuid,
}

impl Lease {
    /// Acquires the lease of `task` for `ttl` if the task is due and the lease is free.
    pub async fn acquire(
        database: &CellDatabase,
        task: &'static str,
        ttl: Duration,
    ) -> Result<Option<Self>, Error> {
        let holder = uuid::Builder::from_random_bytes(Randomness.bytes()).into_uuid();
        let lease = Self { task, holder };
        update(database, &REGISTER, &[&task]).await?;
        let params: [&(dyn ToSql + Sync); 3] = [&task, &holder, &ttl.as_secs_f64()];
        let is_acquired = update(database, &ACQUIRE, &params).await?;
        Ok(is_acquired.then_some(lease))
    }

    /// Extends the lease to `ttl` from now. Returns false if another process has it.
    pub async fn renew(&self, database: &CellDatabase, ttl: Duration) -> Result<bool, Error> {
        let params: [&(dyn ToSql + Sync); 3] = [&self.task, &self.holder, &ttl.as_secs_f64()];
        update(database, &RENEW, &params).await
    }

    /// Releases the lease; the task is due again after `pause`. Returns false if another process has
    /// the lease.
    pub async fn complete(self, database: &CellDatabase, pause: Duration) -> Result<bool, Error> {
        let params: [&(dyn ToSql + Sync); 3] = [&self.task, &self.holder, &pause.as_secs_f64()];
        update(database, &COMPLETE, &params).await
    }

    /// Releases the lease after a failure; the task is due again after a pause that grows with each
    /// failure. Returns false if another process has the lease.
    pub async fn fail(self, database: &CellDatabase) -> Result<bool, Error> {
        update(database, &FAIL, &[&self.task, &self.holder]).await
    }
}

/// Ends the pause of a task. One that has never run or is running stays as it is.
pub(super) async fn make_due(database: &CellDatabase, task: &'static str) -> Result<(), Error> {
    update(database, &MAKE_DUE, &[&task]).await.map(drop)
}

/// Runs one statement in a transaction and returns whether it affected a row.
async fn update(
    database: &CellDatabase,
    sql: &'static Sql,
    params: &[&(dyn ToSql + Sync)],
) -> Result<bool, Error> {
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let count = tx.execute(sql, params).await?;
    tx.commit().await?;
    Ok(count == 1)
}

/// Runs one worker until `stop` is cancelled: runs the task when it is due and its lease is free.
pub(super) async fn run_worker(
    app: Arc<App>,
    cell: String,
    task: &'static LeasedTask,
    stop: CancellationToken,
) {
    let mut worker = WorkerLoop::new(task.name, &cell, stop.clone());
    while worker.is_running() {
        let outcome = run_if_due(&app, &cell, task, &stop).await;
        worker
            .sleep_after(outcome.map(|()| jitter(task.timing.poll_interval)))
            .await;
    }
}

async fn run_if_due(
    app: &App,
    cell: &str,
    task: &'static LeasedTask,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let database = app.db.cell(cell)?;
    let Some(lease) = Lease::acquire(database, task.name, task.timing.ttl).await? else {
        return Ok(());
    };
    tokio::select! {
        outcome = (task.run)(app, database) => match outcome {
            Ok(()) => lease.complete(database, task.interval).await.map(drop),
            Err(error) => {
                lease.fail(database).await?;
                Err(error)
            }
        },
        error = keep_renewing(&lease, database, &task.timing) => Err(error),
        // Without a pause: another process can run the task right away.
        () = stop.cancelled() => lease.complete(database, Duration::ZERO).await.map(drop),
    }
}

/// Renews the lease until that fails. Returns the error before the lease expires.
pub async fn keep_renewing(lease: &Lease, database: &CellDatabase, timing: &LeaseTiming) -> Error {
    let mut deadline = Instant::now() + timing.renewal_timeout;
    loop {
        tokio::time::sleep(timing.renewal_interval).await;
        let started_at = Instant::now();
        match tokio::time::timeout_at(deadline, lease.renew(database, timing.ttl)).await {
            Ok(Ok(true)) => deadline = started_at + timing.renewal_timeout,
            Ok(Ok(false)) => return Error::Unavailable("the lease was lost".to_owned()),
            // Retry: the lease is still valid.
            Ok(Err(error)) if Instant::now() < deadline => {
                tracing::debug!(%error, "cannot renew a lease");
            }
            Ok(Err(_)) | Err(_) => {
                return Error::Unavailable("the lease could not be renewed".to_owned());
            }
        }
    }
}
