//! SQL of `GET /payment-notifications`.
//!
//! The list without filters and that of one state have a statement each, with a cached generic plan. Any other combination
//! uses a statement that PostgreSQL plans with the actual values on every execution.

use perennial_domain::{Id, NotificationState, PaymentAccountId, TenantId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::notifications_sql::{PaymentNotification, columns, from_row, select};
use crate::db::{AgeKey, AgeOrder, ByAgeSql, Error, PooledConnection, TimeRange, by_age, by_value};

/// Conditions on the notifications of a list; `None` matches all.
#[derive(Debug, Default)]
pub struct NotificationFilter {
    pub accounts: Option<Vec<PaymentAccountId>>,
    pub states: Option<Vec<NotificationState>>,
    pub event_types: Option<Vec<String>>,
    pub created_at: TimeRange,
}

static ALL: ByAgeSql = by_age!(select, "created_at >= $5 AND created_at < $6 AND ",);
static BY_STATE: ByAgeSql = by_value!(select, "state", "$7",);
// The planner removes the conditions of null parameters from a custom plan.
static FILTERED: ByAgeSql = by_age!(
    select,
    "created_at >= $5 AND created_at < $6 AND ($7::uuid[] IS NULL OR account_id = ANY ($7))
       AND ($8::text[] IS NULL OR state = ANY ($8)) AND ($9::text[] IS NULL OR event_type = ANY ($9)) AND ",
);

/// Returns up to `limit` notifications after a key.
pub async fn list(
    connection: &mut PooledConnection,
    tenant: TenantId,
    filter: &NotificationFilter,
    (order, after): (AgeOrder, Option<AgeKey>),
    limit: i64,
) -> Result<Vec<PaymentNotification>, Error> {
    let AgeKey { created_at, id } = after.unwrap_or_else(|| order.start(filter.created_at));
    let tenant = tenant.uuid();
    let (from, before) = filter.created_at.bounds();
    let mut params: Vec<&(dyn ToSql + Sync)> =
        vec![&tenant, &created_at, &id, &limit, &from, &before];
    let has_other_conditions = filter.accounts.is_some() || filter.event_types.is_some();
    let rows = match (has_other_conditions, filter.states.as_deref()) {
        (false, None) => connection.query(ALL.in_order(order), &params).await?,
        (false, Some([state])) => {
            let state = state.as_str();
            params.push(&state);
            connection.query(BY_STATE.in_order(order), &params).await?
        }
        (_, states) => {
            let accounts: Option<Vec<Uuid>> = { filter.accounts.as_ref() }
                .map(|accounts| accounts.iter().map(|id| id.uuid()).collect());
            let states: Option<Vec<&str>> =
                states.map(|states| states.iter().map(|state| state.as_str()).collect());
            let others: [&(dyn ToSql + Sync); 3] = [&accounts, &states, &filter.event_types];
            params.extend(others);
            let sql = FILTERED.in_order(order);
            connection.query_custom_plan(sql, &params).await?
        }
    };
    rows.iter().map(from_row).collect()
}
