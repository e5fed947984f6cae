//! Transactions with pipelined writes.
//!
//! Most statements of a transaction return nothing that later statements depend on: BEGIN, an UPDATE
//! of a locked row, the INSERT of an event. Waiting for each costs a round trip. So
//! [`Transaction::enqueue`] only buffers a statement. All buffered statements are sent together with
//! the next statement whose result is needed, or with COMMIT. PostgreSQL runs them in order. If one
//! fails, the following ones fail too, COMMIT included, and the caller gets the first error.
//!
//! ```ignore
//! let tx = connection.begin();                 // nothing is sent
//! let rows = tx.query(&LOCK, …).await?;        // sends BEGIN and LOCK
//! tx.enqueue(&SAVE, …).await?;                 // nothing is sent
//! tx.enqueue(&INSERT_EVENT, …).await?;         // nothing is sent
//! tx.commit().await?;                          // sends SAVE, INSERT_EVENT and COMMIT
//! ```

use std::{
    future::poll_fn,
    mem,
    pin::{Pin, pin},
    sync::{Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

use deadpool_postgres::Object;
use tokio_postgres::{Row, Statement, types::ToSql};
use tracing::Instrument;

use super::{Error, Sql, encoded_param::EncodedParam};

type DriverResult<T> = Result<T, tokio_postgres::Error>;

/// A statement that is sent or about to be sent, and its result once it is available.
struct InFlightStatement<'a> {
    future: Pin<Box<dyn Future<Output = DriverResult<()>> + Send + 'a>>,
    result: Option<DriverResult<()>>,
}

impl<'a> InFlightStatement<'a> {
    fn new(future: impl Future<Output = DriverResult<()>> + Send + 'a) -> Self {
        Self {
            future: Box::pin(future),
            result: None,
        }
    }

    /// Polls the statement and returns whether it is complete.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        if self.result.is_none()
            && let Poll::Ready(result) = self.future.as_mut().poll(cx)
        {
            self.result = Some(result);
        }
        self.result.is_some()
    }
}

/// Sends all statements in order and waits for all results. Returns the result of `last`.
///
/// The driver sends a statement when its future is first polled, so all of them are polled once, in
/// order. Results arrive in the same order, so after that only the first incomplete one is polled.
async fn run_pipelined<T>(
    statements: &mut [InFlightStatement<'_>],
    last: impl Future<Output = DriverResult<T>>,
) -> DriverResult<T> {
    let mut last = pin!(last);
    let mut last_result = None;
    poll_fn(|cx| {
        for statement in statements.iter_mut() {
            statement.poll(cx);
        }
        last_result = match last.as_mut().poll(cx) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        };
        Poll::Ready(())
    })
    .await;
    for statement in statements {
        poll_fn(|cx| {
            if statement.poll(cx) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
    match last_result {
        Some(result) => result,
        None => last.await,
    }
}

/// A transaction. Dropping it without a commit rolls it back, also when its request is canceled, but
/// does not wait for it: its locks are released shortly after.
pub struct Transaction<'a> {
    connection: &'a Object,
    state: Mutex<TransactionState>,
    /// Whether dropping the transaction must roll it back.
    is_open: bool,
}

#[derive(Default)]
struct TransactionState {
    /// Whether BEGIN has been sent.
    has_begun: bool,
    /// The statements to send before the next one.
    deferred: Vec<DeferredStatement>,
    /// Whether a statement has failed. PostgreSQL would then turn COMMIT into ROLLBACK silently.
    has_failed: bool,
}

/// A statement with its encoded parameters.
struct DeferredStatement {
    sql: &'static Sql,
    statement: Statement,
    params: Vec<EncodedParam>,
}

static FORCE_CUSTOM_PLANS: Sql = Sql::new("SET LOCAL plan_cache_mode = force_custom_plan");

impl<'a> Transaction<'a> {
    pub(super) fn new(connection: &'a Object) -> Self {
        Self {
            connection,
            state: Mutex::default(),
            is_open: true,
        }
    }

    /// Runs a query and returns its rows.
    pub async fn query(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let statement = self.prepare(sql).await?;
        let rows = self.connection.query(&statement, params);
        Ok(self
            .send_after_deferred(rows.instrument(sql.span()))
            .await?)
    }

    /// Runs two queries in one round trip and returns the rows of both.
    pub async fn query_pipelined(
        &self,
        [(first_sql, first_params), (second_sql, second_params)]: [(&'static Sql, &[&(dyn ToSql + Sync)]);
            2],
    ) -> Result<(Vec<Row>, Vec<Row>), Error> {
        let first = self.prepare(first_sql).await?;
        let second = self.prepare(second_sql).await?;
        let first_rows = self.connection.query(&first, first_params);
        let second_rows = self.connection.query(&second, second_params);
        let both = async {
            let (first_rows, second_rows) = tokio::join!(
                biased;
                first_rows.instrument(first_sql.span()),
                second_rows.instrument(second_sql.span()),
            );
            Ok((first_rows?, second_rows?))
        };
        Ok(self.send_after_deferred(both).await?)
    }

    /// Runs a statement and returns the number of affected rows.
    pub async fn execute(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Error> {
        let statement = self.prepare(sql).await?;
        let count = self.connection.execute(&statement, params);
        Ok(self
            .send_after_deferred(count.instrument(sql.span()))
            .await?)
    }

    /// Defers a write: it is sent with the next statement or with COMMIT, which then returns its
    /// error, if any.
    ///
    /// Not for megabytes of parameters. PostgreSQL does not read them while it runs the statements before, and a
    /// connection that accepts no data for five seconds counts as broken.
    pub async fn enqueue(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<(), Error> {
        let statement = self.prepare(sql).await?;
        let (expected, given) = (statement.params().len(), params.len());
        if given != expected {
            return Err(Error::Internal(format!(
                "expected {expected} parameters, got {given}: {}",
                sql.text()
            )));
        }
        let params = params.iter().zip(statement.params());
        let params = params.map(|(param, kind)| EncodedParam::new(*param, kind));
        let deferred = DeferredStatement {
            sql,
            params: params.collect::<Result<_, _>>()?,
            statement,
        };
        self.with_state(|state| state.deferred.push(deferred));
        Ok(())
    }

    /// Makes PostgreSQL plan each following query of this transaction for its parameter values.
    pub async fn force_custom_plans(&self) -> Result<(), Error> {
        self.enqueue(&FORCE_CUSTOM_PLANS, &[]).await
    }

    /// Runs a last query together with COMMIT, in one round trip. Only for transactions that read:
    /// after an error it is unknown whether COMMIT succeeded.
    pub async fn query_and_commit(
        mut self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let statement = self.prepare(sql).await?;
        // COMMIT is sent in the same batch, so there is nothing to roll back.
        self.is_open = false;
        let rows = self.connection.query(&statement, params);
        let commit = self.connection.batch_execute("COMMIT");
        let both = async {
            let (rows, committed) = tokio::join!(biased; rows.instrument(sql.span()), commit);
            let rows = rows?;
            committed.map(|()| rows)
        };
        Ok(self.send_after_deferred(both).await?)
    }

    /// Sends the deferred writes and COMMIT.
    pub async fn commit(mut self) -> Result<(), Error> {
        if self.with_state(|state| state.has_failed) {
            let message = "cannot commit a transaction with a failed statement";
            return Err(Error::Internal(message.to_owned()));
        }
        let is_empty = self.with_state(|state| !state.has_begun && state.deferred.is_empty());
        // Once COMMIT is sent, there is nothing to roll back.
        self.is_open = false;
        if is_empty {
            return Ok(());
        }
        let commit = self.connection.batch_execute("COMMIT");
        let commit = commit.instrument(tracing::debug_span!("commit"));
        Ok(self.send_after_deferred(commit).await?)
    }

    /// Rolls back and waits until PostgreSQL has released the locks.
    pub async fn rollback(mut self) {
        self.is_open = false;
        if self.with_state(|state| state.has_begun) {
            // If it fails, the connection is closed, which rolls back too.
            let _ = self.connection.batch_execute("ROLLBACK").await;
        }
    }

    /// Prepares a statement before anything is sent, so that the batch never waits for it.
    async fn prepare(&self, sql: &'static Sql) -> Result<Statement, Error> {
        Ok(self.connection.prepare_cached(sql.text()).await?)
    }

    fn with_state<T>(&self, f: impl FnOnce(&mut TransactionState) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        f(&mut state)
    }

    /// Sends BEGIN if needed, the deferred writes and `last` in one batch. Waits for all results.
    async fn send_after_deferred<T>(
        &self,
        last: impl Future<Output = DriverResult<T>>,
    ) -> DriverResult<T> {
        let (has_begun, deferred) = self.with_state(|state| {
            let has_begun = mem::replace(&mut state.has_begun, true);
            (has_begun, mem::take(&mut state.deferred))
        });
        let mut statements: Vec<InFlightStatement<'_>> = Vec::with_capacity(deferred.len() + 1);
        if !has_begun {
            let begin = self.connection.batch_execute("BEGIN");
            statements.push(InFlightStatement::new(begin));
        }
        for statement in &deferred {
            let sent = self.send(statement).instrument(statement.sql.span());
            statements.push(InFlightStatement::new(sent));
        }
        let last_result = run_pipelined(&mut statements, last).await;
        let first_error = { statements.into_iter() }.find_map(|statement| statement.result?.err());
        let result = first_error.map_or(last_result, Err);
        if result.is_err() {
            self.with_state(|state| state.has_failed = true);
        }
        result
    }

    async fn send(&self, deferred: &DeferredStatement) -> DriverResult<()> {
        let params = deferred.params.iter();
        let params: Vec<&(dyn ToSql + Sync)> = params
            .map(|param| -> &(dyn ToSql + Sync) { param })
            .collect();
        self.connection
            .execute(&deferred.statement, &params)
            .await?;
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        let has_begun = self.with_state(|state| state.has_begun);
        if self.is_open && has_begun {
            // The first poll sends it. Its result is not needed.
            let rollback = pin!(self.connection.batch_execute("ROLLBACK"));
            let _ = rollback.poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}
