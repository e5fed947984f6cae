//! SQL of `GET /payments`.
//!
//! The common filters (none, one status, one currency) have a statement each, with a cached generic plan. Any
//! other combination uses a statement that PostgreSQL plans with the actual values on every execution.

use perennial_domain::{
    Currency, ExternalId, Id, Payment, PaymentStatus, SubscriptionId, TenantId, UserId,
};
use tokio_postgres::types::ToSql;

use super::table::{columns, from_row, select};
use crate::db::{
    AgeKey, AgeOrder, ByAgeSql, Error, PooledConnection, TimeRange, by_age, by_key, by_value, uuids,
};

/// Conditions on the payments of a list; `None` matches all.
#[derive(Debug, Default)]
pub struct PaymentFilter {
    pub subscriptions: Option<Vec<SubscriptionId>>,
    pub users: Option<Vec<UserId>>,
    /// Resolved to `users` before the query.
    pub external_user_ids: Option<Vec<ExternalId>>,
    pub statuses: Option<Vec<PaymentStatus>>,
    pub external_ids: Option<Vec<ExternalId>>,
    pub currencies: Option<Vec<Currency>>,
    pub created_at: TimeRange,
    pub paid_at: TimeRange,
}

static ALL: ByAgeSql = by_age!(select, "created_at >= $5 AND created_at < $6 AND ",);
static BY_STATUS: ByAgeSql = by_value!(select, "status", "$7",);
static BY_CURRENCY: ByAgeSql = by_value!(select, "currency", "$7",);
// The planner removes the conditions of null parameters from a custom plan. Deleting a subscription does not
// hide its payments from its user.
macro_rules! conditions {
    () => {
        "created_at >= $5 AND created_at < $6 AND ($7::uuid[] IS NULL OR subscription_id = ANY ($7))
       AND ($8::uuid[] IS NULL OR subscription_id = ANY (ARRAY(
            SELECT id FROM subscriptions WHERE subscriptions.tenant_id = $1 AND user_id = ANY ($8))))
       AND ($9::text[] IS NULL OR status = ANY ($9)) AND ($10::text[] IS NULL OR external_id = ANY ($10))
       AND ($11::text[] IS NULL OR currency = ANY ($11)) AND "
    };
}

static FILTERED: ByAgeSql = by_age!(select, conditions!(),);
// A range of `paid_at` is read in its own order. In the order of creation, the planner would expect payments of
// any time everywhere, but they are paid about when they are created.
static PAID: ByAgeSql = by_key!(
    select,
    "paid_at",
    "$2",
    conditions!(),
    "paid_at >= $12 AND paid_at < $13 AND ",
);

/// The order of a list of payments.
#[derive(Debug, Clone, Copy)]
pub enum PaymentOrder {
    Created(AgeOrder),
    /// By `paid_at`. Payments without it are left out.
    Paid(AgeOrder),
}

/// Returns up to `limit` payments after a key.
pub async fn list(
    connection: &mut PooledConnection,
    tenant: TenantId,
    filter: &PaymentFilter,
    (order, after): (PaymentOrder, Option<AgeKey>),
    limit: i64,
) -> Result<Vec<Payment>, Error> {
    let (direction, range) = match order {
        PaymentOrder::Created(direction) => (direction, filter.created_at),
        PaymentOrder::Paid(direction) => (direction, filter.paid_at),
    };
    let AgeKey { created_at, id } = after.unwrap_or_else(|| direction.start(range));
    let tenant = tenant.uuid();
    let (from, before) = filter.created_at.bounds();
    let mut params: Vec<&(dyn ToSql + Sync)> =
        vec![&tenant, &created_at, &id, &limit, &from, &before];
    let has_other_conditions = filter.subscriptions.is_some()
        || filter.users.is_some()
        || filter.external_ids.is_some()
        || matches!(order, PaymentOrder::Paid(_));
    let (statuses, currencies) = (filter.statuses.as_deref(), filter.currencies.as_deref());
    let rows = match (has_other_conditions, statuses, currencies) {
        (false, None, None) => connection.query(ALL.in_order(direction), &params).await?,
        (false, Some([status]), None) => {
            let status = status.as_str();
            params.push(&status);
            connection
                .query(BY_STATUS.in_order(direction), &params)
                .await?
        }
        (false, None, Some([currency])) => {
            let currency = currency.code();
            params.push(&currency);
            let sql = BY_CURRENCY.in_order(direction);
            connection.query(sql, &params).await?
        }
        _ => {
            let subscriptions = uuids(filter.subscriptions.as_ref());
            let users = uuids(filter.users.as_ref());
            let statuses: Option<Vec<&str>> =
                statuses.map(|all| all.iter().map(|status| status.as_str()).collect());
            let external_ids: Option<Vec<&str>> = { filter.external_ids.as_ref() }
                .map(|ids| ids.iter().map(ExternalId::as_str).collect());
            let currencies: Option<Vec<&str>> =
                currencies.map(|all| all.iter().map(|currency| currency.code()).collect());
            let others: [&(dyn ToSql + Sync); 5] = [
                &subscriptions,
                &users,
                &statuses,
                &external_ids,
                &currencies,
            ];
            params.extend(others);
            let (paid_from, paid_before) = filter.paid_at.bounds();
            let sql = match order {
                PaymentOrder::Created(_) => &FILTERED,
                PaymentOrder::Paid(_) => {
                    let range: [&(dyn ToSql + Sync); 2] = [&paid_from, &paid_before];
                    params.extend(range);
                    &PAID
                }
            };
            let sql = sql.in_order(direction);
            connection.query_custom_plan(sql, &params).await?
        }
    };
    rows.iter().map(from_row).collect()
}
