//! Lists of the records that belong to one subscription, by creation time.

use perennial_domain::{Id, SubscriptionId, TenantId, ValidationError};
use tokio_postgres::{Row, types::ToSql};

use crate::{
    app::App,
    auth::Caller,
    db::{AgeKey, AgeOrder, ByAgeSql, Error, PooledConnection, TimeRange},
    http::{
        pagination::{BY_AGE, Page, PageRequest},
        problem::Problem,
        query::QueryParams,
    },
};

/// A table whose rows belong to subscriptions.
pub struct RecordList<R> {
    /// The endpoint, which its cursors are bound to.
    pub endpoint: &'static str,
    /// The statement; `$5` is the subscription.
    pub sql: &'static ByAgeSql,
    pub from_row: fn(&Row) -> Result<R, Error>,
    pub sort_key: fn(&R) -> AgeKey,
}

impl<R> RecordList<R> {
    /// Returns a page of the records of a subscription that the caller may see.
    pub async fn page<P, T>(
        &self,
        app: &App,
        caller: &Caller<P>,
        id: Result<SubscriptionId, ValidationError>,
        mut params: QueryParams,
    ) -> Result<Page<T>, Problem>
    where
        T: for<'r> From<&'r R>,
    {
        let request = PageRequest::parse(&mut params, &BY_AGE);
        params.finish()?;
        let subscription = super::find_visible(app, caller, id).await?.id;
        let tenant = caller.tenant().id;
        let user = caller.idempotency_scope().user;
        let list = self.endpoint;
        let page = request.verify(&app.cursor_key, &[&list, &tenant, &user, &subscription])?;

        let connection = app.database_for(caller.tenant())?.connection().await?;
        let start = (page.order, page.after);
        let limit = page.row_limit();
        let records = self
            .read(&connection, tenant, subscription, start, limit)
            .await?;
        Ok(page.finish(records, self.sort_key))
    }

    /// Returns up to `limit` records of a subscription, in `order`, that follow the key `after`.
    pub async fn read(
        &self,
        connection: &PooledConnection,
        tenant: TenantId,
        subscription: SubscriptionId,
        (order, after): (AgeOrder, Option<AgeKey>),
        limit: i64,
    ) -> Result<Vec<R>, Error> {
        let AgeKey { created_at, id } = after.unwrap_or_else(|| order.start(TimeRange::default()));
        let params: [&(dyn ToSql + Sync); 5] = [
            &tenant.uuid(),
            &created_at,
            &id,
            &limit,
            &subscription.uuid(),
        ];
        let rows = connection.query(self.sql.in_order(order), &params).await?;
        rows.iter().map(self.from_row).collect()
    }
}
