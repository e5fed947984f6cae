//! Work that one process at a time should do: a lease, renewed while it works.
//!
//! Time is the database's, so that machines whose clocks differ agree on who holds a lease.

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::rhythm::Rhythm;
use crate::{
    app::App,
    db::{Engine, Error, Sql},
    randomness::{Randomness, varied},
};

/// How long a lease lasts unless renewed: after that, a holder that died is replaced.
const TERM: Duration = Duration::from_secs(15);
/// How often a worker looks whether its task is due.
const LOOK: Duration = Duration::from_secs(5);

type Done<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// A task that one process at a time does.
pub struct Leased {
    /// What it is called in logs, metrics and the table `task_leases`.
    pub name: &'static str,
    /// How long after its end it is due again.
    pub every: Duration,
    /// Does it. May be cut off at any await, when the lease is lost.
    pub run: for<'a> fn(&'a App, &'a Engine) -> Done<'a>,
}

static REGISTER: Sql =
    Sql::new("INSERT INTO task_leases (task) VALUES ($1) ON CONFLICT DO NOTHING");
static TAKE: Sql = Sql::new(
    "UPDATE task_leases SET held_by = $2, held_until = now() + $3 * interval '1 second'
     WHERE task = $1 AND next_run_at <= now() AND (held_until IS NULL OR held_until < now())",
);
static RENEW: Sql = Sql::new(
    "UPDATE task_leases SET held_until = now() + $3 * interval '1 second' WHERE task = $1 AND held_by = $2",
);
static FINISH: Sql = Sql::new(
    "UPDATE task_leases
     SET held_by = NULL, held_until = NULL, failures = 0, next_run_at = now() + $3 * interval '1 second'
     WHERE task = $1 AND held_by = $2",
);
// Twice as long after each failure in a row, from five seconds up to ten minutes.
static FAIL: Sql = Sql::new(
    "UPDATE task_leases
     SET held_by = NULL, held_until = NULL, failures = failures + 1,
         next_run_at = now() + least(5 * 2 ^ least(failures, 20), 600) * interval '1 second'
     WHERE task = $1 AND held_by = $2",
);

/// The right to do a task, for a while.
#[derive(Debug)]
pub struct Lease {
    task: &'static str,
    holder: Uuid,
}

impl Lease {
    /// Takes the lease of `task` for `term` if it is due and free.
    pub async fn take(
        engine: &Engine,
        task: &'static str,
        term: Duration,
    ) -> Result<Option<Self>, Error> {
        let holder = uuid::Builder::from_random_bytes(Randomness.bytes()).into_uuid();
        let mut connection = engine.connection().await?;
        let tx = connection.begin();
        tx.execute(&REGISTER, &[&task]).await?;
        let taken = tx
            .execute(&TAKE, &[&task, &holder, &term.as_secs_f64()])
            .await?;
        tx.commit().await?;
        Ok((taken == 1).then_some(Self { task, holder }))
    }

    /// Holds it for `term` from now; false if it was lost to another.
    pub async fn renew(&self, engine: &Engine, term: Duration) -> Result<bool, Error> {
        let mut connection = engine.connection().await?;
        let tx = connection.begin();
        let renewed = tx
            .execute(&RENEW, &[&self.task, &self.holder, &term.as_secs_f64()])
            .await?;
        tx.commit().await?;
        Ok(renewed == 1)
    }

    /// Gives it back: the task is due again after `pause`. False if it had been lost to another.
    pub async fn finish(self, engine: &Engine, pause: Duration) -> Result<bool, Error> {
        let mut connection = engine.connection().await?;
        let tx = connection.begin();
        let finished = tx
            .execute(&FINISH, &[&self.task, &self.holder, &pause.as_secs_f64()])
            .await?;
        tx.commit().await?;
        Ok(finished == 1)
    }

    /// Gives it back undone: the task is due again after a pause that grows with every failure.
    pub async fn fail(self, engine: &Engine) -> Result<bool, Error> {
        let mut connection = engine.connection().await?;
        let tx = connection.begin();
        let failed = tx.execute(&FAIL, &[&self.task, &self.holder]).await?;
        tx.commit().await?;
        Ok(failed == 1)
    }
}

/// One worker: does the task whenever it is due and nobody else does it.
pub(super) async fn work(
    app: Arc<App>,
    cell: String,
    task: &'static Leased,
    stop: CancellationToken,
) {
    let mut rhythm = Rhythm::new(task.name, &cell, stop.clone());
    while rhythm.goes_on() {
        let outcome = once(&app, &cell, task, &stop).await;
        rhythm.rest(outcome.map(|()| varied(LOOK))).await;
    }
}

async fn once(
    app: &App,
    cell: &str,
    task: &'static Leased,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let engine = app.db.cell(cell)?;
    let Some(lease) = Lease::take(engine, task.name, TERM).await? else {
        return Ok(());
    };
    tokio::select! {
        outcome = (task.run)(app, engine) => match outcome {
            Ok(()) => lease.finish(engine, task.every).await.map(drop),
            Err(error) => {
                lease.fail(engine).await?;
                Err(error)
            }
        },
        lost = keep(&lease, engine) => Err(lost),
        // Due again at once, for whoever goes on.
        () = stop.cancelled() => lease.finish(engine, Duration::ZERO).await.map(drop),
    }
}

/// Renews the lease for as long as that succeeds; ends, before the lease does, with why it did not.
async fn keep(lease: &Lease, engine: &Engine) -> Error {
    let mut ends = Instant::now() + TERM * 2 / 3;
    loop {
        tokio::time::sleep(TERM / 6).await;
        let asked = Instant::now();
        match tokio::time::timeout_at(ends, lease.renew(engine, TERM)).await {
            Ok(Ok(true)) => ends = asked + TERM * 2 / 3,
            Ok(Ok(false)) => return Error::Unavailable("the lease was lost".to_owned()),
            // A moment's trouble is no reason to give up; there is time left.
            Ok(Err(error)) if Instant::now() < ends => {
                tracing::debug!(%error, "cannot renew a lease");
            }
            Ok(Err(_)) | Err(_) => {
                return Error::Unavailable("the lease could not be renewed".to_owned());
            }
        }
    }
}
