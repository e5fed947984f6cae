//! A transaction: all of it, or nothing, in as few trips as there are questions.
//!
//! Most statements of a transaction answer nothing that what follows depends on: BEGIN, an UPDATE of a row that is locked,
//! the event beside it. To wait for each is a trip to the database and back, and two wake-ups on either side, for an
//! answer that nobody reads. So these wait, and go out in one piece with the next statement that is asked for its answer,
//! or with COMMIT. PostgreSQL does them in the order in which they were said. When one fails, the rest fails with it, COMMIT
//! too, and whoever waits is told of the first failure.
//!
//! ```ignore
//! let tx = connection.begin();              // nothing is sent yet
//! let rows = tx.query(&LOCK, …).await?;     // BEGIN and LOCK
//! tx.write(&SAVE, …).await?;                // nothing is sent yet
//! tx.write(&INSERT_EVENT, …).await?;        // nor here
//! tx.commit().await?;                       // SAVE, INSERT and COMMIT
//! ```

use std::{
    fmt,
    future::poll_fn,
    mem,
    pin::{Pin, pin},
    sync::{Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::{BufMut, BytesMut};
use deadpool_postgres::Object;
use tokio_postgres::{
    Row, Statement,
    types::{IsNull, ToSql, Type},
};
use tracing::Instrument;

use super::{Error, Sql, engine::span};

/// What the database answers, or why it does not.
type Answer<T> = Result<T, tokio_postgres::Error>;

/// A statement on its way, and what came of it.
struct Sent<'a> {
    future: Pin<Box<dyn Future<Output = Answer<()>> + Send + 'a>>,
    answer: Option<Answer<()>>,
}

impl<'a> Sent<'a> {
    fn new(future: impl Future<Output = Answer<()>> + Send + 'a) -> Self {
        Self {
            future: Box::pin(future),
            answer: None,
        }
    }

    /// Whether it is answered.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        if self.answer.is_none()
            && let Poll::Ready(answer) = self.future.as_mut().poll(cx)
        {
            self.answer = Some(answer);
        }
        self.answer.is_some()
    }
}

/// The answer to the last of several statements, when all are answered. A statement of the driver is sent when its future is
/// polled for the first time, so at first all are polled, in their order; answers come in that order too, so from then on
/// only the first that has none.
async fn in_order<T>(before: &mut [Sent<'_>], last: impl Future<Output = Answer<T>>) -> Answer<T> {
    let mut last = pin!(last);
    let mut answer = None;
    poll_fn(|cx| {
        for sent in before.iter_mut() {
            sent.poll(cx);
        }
        answer = match last.as_mut().poll(cx) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        };
        Poll::Ready(())
    })
    .await;
    for sent in before {
        poll_fn(|cx| {
            if sent.poll(cx) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
    match answer {
        Some(answer) => answer,
        None => last.await,
    }
}

/// A transaction. Dropped without a commit it is rolled back, also when the caller hangs up in the middle.
pub struct Transaction<'a> {
    connection: &'a Object,
    unsent: Mutex<Unsent>,
    /// Whether it is to be rolled back when it is dropped.
    open: bool,
}

/// What goes out before the next statement.
#[derive(Default)]
struct Unsent {
    begun: bool,
    writes: Vec<Write>,
    /// Whether something of it has failed; then a COMMIT would be answered by a silent ROLLBACK.
    failed: bool,
}

/// A statement with its values, as the database wants them.
struct Write {
    sql: &'static Sql,
    statement: Statement,
    values: Vec<Value>,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(connection: &'a Object) -> Self {
        Self {
            connection,
            unsent: Mutex::default(),
            open: true,
        }
    }

    /// All rows.
    pub async fn query(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        let rows = self.connection.query(&statement, params);
        Ok(self.after_what_waits(rows.instrument(span(sql))).await?)
    }

    /// All rows of one statement, and of another that is run when the first is done.
    pub async fn query_both(
        &self,
        [(sql, params), (next, its_params)]: [(&'static Sql, &[&(dyn ToSql + Sync)]); 2],
    ) -> Result<(Vec<Row>, Vec<Row>), Error> {
        let (statement, its_statement) = (self.prepared(sql).await?, self.prepared(next).await?);
        let rows = self.connection.query(&statement, params);
        let its_rows = self.connection.query(&its_statement, its_params);
        let both = async {
            let rows = rows.instrument(span(sql));
            let (rows, its_rows) = tokio::join!(biased; rows, its_rows.instrument(span(next)));
            Ok((rows?, its_rows?))
        };
        Ok(self.after_what_waits(both).await?)
    }

    /// How many rows were changed.
    pub async fn execute(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Error> {
        let statement = self.prepared(sql).await?;
        let count = self.connection.execute(&statement, params);
        Ok(self.after_what_waits(count.instrument(span(sql))).await?)
    }

    /// Changes rows together with whatever comes next. If it fails, that fails.
    pub async fn write(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<(), Error> {
        let statement = self.prepared(sql).await?;
        if params.len() != statement.params().len() {
            let text = sql.text();
            return Err(Error::Failed(format!(
                "other parameters are wanted: {text}"
            )));
        }
        let values = params.iter().zip(statement.params());
        let values = values.map(|(param, kind)| Value::of(*param, kind));
        let write = Write {
            sql,
            values: values.collect::<Result<_, _>>()?,
            statement,
        };
        self.with_unsent(|unsent| unsent.writes.push(write));
        Ok(())
    }

    /// All rows of its last statement, together with which COMMIT goes out. For what only reads: a failure does not say whether
    /// COMMIT was done.
    pub async fn query_last(
        mut self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        // All of it is sent at once, so there is nothing to be rolled back.
        self.open = false;
        let rows = self.connection.query(&statement, params);
        let commit = self.connection.batch_execute("COMMIT");
        let both = async {
            let (rows, ended) = tokio::join!(biased; rows.instrument(span(sql)), commit);
            let rows = rows?;
            ended.map(|()| rows)
        };
        Ok(self.after_what_waits(both).await?)
    }

    /// Makes it last.
    pub async fn commit(mut self) -> Result<(), Error> {
        if self.with_unsent(|unsent| unsent.failed) {
            let why = "a transaction of which a statement has failed cannot be committed";
            return Err(Error::Failed(why.to_owned()));
        }
        let nothing = self.with_unsent(|unsent| !unsent.begun && unsent.writes.is_empty());
        // Whatever comes of it, there is nothing to be rolled back once it is sent.
        self.open = false;
        if nothing {
            return Ok(());
        }
        let commit = self.connection.batch_execute("COMMIT");
        let commit = commit.instrument(tracing::debug_span!("commit"));
        Ok(self.after_what_waits(commit).await?)
    }

    /// Known to the connection before anything of the transaction goes out, so that nothing of it has to wait for that.
    async fn prepared(&self, sql: &'static Sql) -> Result<Statement, Error> {
        Ok(self.connection.prepare_cached(sql.text()).await?)
    }

    fn with_unsent<T>(&self, act: impl FnOnce(&mut Unsent) -> T) -> T {
        let mut unsent = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut unsent)
    }

    /// Sends what waits and then `last`, all at once, and waits for all answers.
    async fn after_what_waits<T>(&self, last: impl Future<Output = Answer<T>>) -> Answer<T> {
        let begin_and_writes = |unsent: &mut Unsent| {
            let begun = mem::replace(&mut unsent.begun, true);
            (begun, mem::take(&mut unsent.writes))
        };
        let (begun, writes) = self.with_unsent(begin_and_writes);
        let mut before: Vec<Sent<'_>> = Vec::with_capacity(writes.len() + 1);
        if !begun {
            before.push(Sent::new(self.connection.batch_execute("BEGIN")));
        }
        for write in &writes {
            before.push(Sent::new(self.send(write).instrument(span(write.sql))));
        }
        let answer = in_order(&mut before, last).await;
        let first_failure = before.into_iter().find_map(|sent| sent.answer?.err());
        let answer = first_failure.map_or(answer, Err);
        if answer.is_err() {
            self.with_unsent(|unsent| unsent.failed = true);
        }
        answer
    }

    async fn send(&self, write: &Write) -> Answer<()> {
        let values = write.values.iter();
        let values: Vec<&(dyn ToSql + Sync)> = values
            .map(|value| -> &(dyn ToSql + Sync) { value })
            .collect();
        self.connection.execute(&write.statement, &values).await?;
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        let begun = self.with_unsent(|unsent| unsent.begun);
        if self.open && begun {
            // Sent when it is polled; nobody waits for its answer.
            let rollback = pin!(self.connection.batch_execute("ROLLBACK"));
            let _ = rollback.poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}

/// A value on its way to the database; `None` is null.
struct Value(Option<Box<[u8]>>);

impl Value {
    fn of(param: &(dyn ToSql + Sync), kind: &Type) -> Result<Self, Error> {
        let mut bytes = BytesMut::new();
        let written = param.to_sql_checked(kind, &mut bytes);
        match written.map_err(|error| Error::Failed(error.to_string()))? {
            IsNull::Yes => Ok(Self(None)),
            IsNull::No => Ok(Self(Some(bytes.as_ref().into()))),
        }
    }
}

/// Values are nobody's business.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match &self.0 {
            None => Ok(IsNull::Yes),
            Some(bytes) => {
                out.put_slice(bytes);
                Ok(IsNull::No)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        self.to_sql(kind, out)
    }
}
