//! A connection borrowed from the pool.

use deadpool_postgres::Object;
use tokio_postgres::{Row, types::ToSql};
use tracing::Instrument;

use super::{Error, Sql, Transaction};

/// A pooled connection in exclusive use. Dropping it returns it to the pool.
pub struct PooledConnection(pub(super) Object);

static REPEATABLE_READ: Sql = Sql::new("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");

impl PooledConnection {
    /// Starts a transaction. BEGIN is sent with its first statement.
    pub fn begin(&mut self) -> Transaction<'_> {
        Transaction::new(&self.0)
    }

    /// Starts a transaction whose queries see the data of the same instant.
    pub async fn begin_snapshot(&mut self) -> Result<Transaction<'_>, Error> {
        let tx = self.begin();
        tx.enqueue(&REPEATABLE_READ, &[]).await?;
        Ok(tx)
    }

    /// Runs a query outside of a transaction and returns its rows.
    pub async fn query(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let rows = async {
            let statement = self.0.prepare_cached(sql.text()).await?;
            Ok(self.0.query(&statement, params).await?)
        };
        rows.instrument(sql.span()).await
    }

    /// Runs a query outside of a transaction and returns its first row, if any.
    pub async fn query_opt(
        &self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Error> {
        Ok(self.query(sql, params).await?.into_iter().next())
    }

    /// Runs a query that is planned for its parameter values on each execution, in one round trip.
    /// Intended for lists with optional filters, where each combination of filters needs another
    /// index.
    pub async fn query_custom_plan(
        &mut self,
        sql: &'static Sql,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let tx = self.begin();
        tx.force_custom_plans().await?;
        tx.query_and_commit(sql, params).await
    }
}
