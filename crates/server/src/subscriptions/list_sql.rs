//! SQL of `GET /subscriptions`.
//!
//! The common filters (none, one user, one plan, one status, one plan and status) have a statement
//! each, with a cached generic plan. Any other combination uses one statement that PostgreSQL plans
//! with the actual values on every execution, so that it selects the best index.

use jiff::Timestamp;
use perennial_domain::{ExternalId, Id, PlanId, Subscription, SubscriptionStatus, UserId};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::table::{self, Scope, columns, select};
use crate::db::{AgeKey, AgeOrder, ByAgeSql, Error, PooledConnection, by_age};

/// Conditions on the subscriptions of a list; `None` matches all.
#[derive(Debug, Default)]
pub(super) struct SubscriptionFilter {
    pub users: Option<Vec<UserId>>,
    pub plans: Option<Vec<PlanId>>,
    /// Statuses as shown, not as stored.
    pub statuses: Option<Vec<SubscriptionStatus>>,
    pub is_active: Option<bool>,
    pub external_ids: Option<Vec<ExternalId>>,
    pub renews_at: TimeRange,
    pub ends_at: TimeRange,
}

/// A half-open range: `from` is included, `before` is not.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TimeRange {
    pub from: Option<Timestamp>,
    pub before: Option<Timestamp>,
}

/// The kind of a filter. Each kind has its own statement.
enum FilterKind {
    All,
    User(UserId),
    Plan(PlanId),
    /// Any status except expired, which also matches subscriptions past their end.
    Status(SubscriptionStatus),
    PlanAndStatus(PlanId, SubscriptionStatus),
    Other,
}

impl SubscriptionFilter {
    fn kind(&self) -> FilterKind {
        let Self {
            users,
            plans,
            statuses,
            is_active,
            external_ids,
            renews_at,
            ends_at,
        } = self;
        let has_other_conditions = is_active.is_some()
            || external_ids.is_some()
            || [renews_at, ends_at]
                .into_iter()
                .any(|range| *range != TimeRange::default());
        match (users.as_deref(), plans.as_deref(), statuses.as_deref()) {
            _ if has_other_conditions => FilterKind::Other,
            (None, None, None) => FilterKind::All,
            (Some([user]), None, None) => FilterKind::User(*user),
            (None, Some([plan]), None) => FilterKind::Plan(*plan),
            (_, _, Some([SubscriptionStatus::Expired])) => FilterKind::Other,
            (None, None, Some([status])) => FilterKind::Status(*status),
            (None, Some([plan]), Some([status])) => FilterKind::PlanAndStatus(*plan, *status),
            _ => FilterKind::Other,
        }
    }
}

macro_rules! not_ended {
    ($now:literal) => {
        concat!("(ends_at IS NULL OR ends_at > ", $now, ")")
    };
}

static ALL: ByAgeSql = by_age!(select,);
// `=` and not `= ANY`, because with several values the index does not return rows in order.
static BY_USER: ByAgeSql = by_age!(select, "user_id = $5 AND ",);
static BY_PLAN: ByAgeSql = by_age!(select, "plan_id = $5 AND ",);
static BY_STATUS: ByAgeSql = by_age!(select, "status = $5 AND ", not_ended!("$6"), " AND ",);
static BY_PLAN_AND_STATUS: ByAgeSql = by_age!(
    select,
    "plan_id = $5 AND status = $6 AND ",
    not_ended!("$7"),
    " AND ",
);
// The planner removes the conditions of null parameters from a custom plan. The conditions on
// status and access repeat `Subscription::status_at` and `has_access`; a test compares them.
// `updated_at` covers changes by an instance whose clock is ahead. `ends_at` needs no such condition:
// an update at or after the end stores the status `expired`.
static FILTERED: ByAgeSql = by_age!(
    select,
    "($5::uuid[] IS NULL OR user_id = ANY ($5)) AND ($6::uuid[] IS NULL OR plan_id = ANY ($6))
       AND ($7::text[] IS NULL
            OR status = ANY ($7) AND (status = 'expired' OR ends_at IS NULL OR ends_at > $8::timestamptz)
            OR 'expired' = ANY ($7) AND ends_at <= $8)
       AND ($9::boolean IS NULL
            OR $9 AND status IN ('on_trial', 'active', 'past_due', 'cancelled') AND NOT suspended
               AND (starts_at <= $8 OR starts_at <= updated_at) AND ",
    not_ended!("$8"),
    "
            OR NOT $9 AND (status IN ('pending', 'paused', 'unpaid', 'expired') OR suspended
               OR starts_at > $8 AND starts_at > updated_at OR ends_at <= $8))
       AND ($10::text[] IS NULL OR external_id = ANY ($10))
       AND ($11::timestamptz IS NULL OR renews_at >= $11) AND ($12::timestamptz IS NULL OR renews_at < $12)
       AND ($13::timestamptz IS NULL OR ends_at >= $13) AND ($14::timestamptz IS NULL OR ends_at < $14)
       AND ",
);

/// The parameters `$1` to `$4` of every list.
struct PageParams {
    tenant: Uuid,
    order: AgeOrder,
    after: AgeKey,
    limit: i64,
}

impl PageParams {
    /// Returns all parameters of a list: the page's, then the filter's.
    fn with_filter<'a>(&'a self, filter: &[&'a (dyn ToSql + Sync)]) -> Vec<&'a (dyn ToSql + Sync)> {
        let AgeKey { created_at, id } = &self.after;
        let mut params: Vec<&(dyn ToSql + Sync)> = vec![&self.tenant, created_at, id, &self.limit];
        params.extend(filter);
        params
    }
}

/// Returns up to `limit` subscriptions after a key, filtered by their state at `now`.
pub(super) async fn list(
    connection: &mut PooledConnection,
    (tenant, lifecycle): Scope,
    filter: &SubscriptionFilter,
    (order, after): (AgeOrder, Option<AgeKey>),
    limit: i64,
    now: Timestamp,
) -> Result<Vec<Subscription>, Error> {
    let page = PageParams {
        tenant: tenant.uuid(),
        order,
        after: after.unwrap_or_else(|| order.start()),
        limit,
    };
    let rows = match filter.kind() {
        FilterKind::All => query(connection, &ALL, &page, &[]).await?,
        FilterKind::User(user) => query(connection, &BY_USER, &page, &[&user.uuid()]).await?,
        FilterKind::Plan(plan) => query(connection, &BY_PLAN, &page, &[&plan.uuid()]).await?,
        FilterKind::Status(status) => {
            query(connection, &BY_STATUS, &page, &[&status.as_str(), &now]).await?
        }
        FilterKind::PlanAndStatus(plan, status) => {
            let params: [&(dyn ToSql + Sync); 3] = [&plan.uuid(), &status.as_str(), &now];
            query(connection, &BY_PLAN_AND_STATUS, &page, &params).await?
        }
        FilterKind::Other => query_filtered(connection, &page, filter, now).await?,
    };
    rows.iter()
        .map(|row| table::from_row(row, lifecycle))
        .collect()
}

async fn query(
    connection: &PooledConnection,
    list: &'static ByAgeSql,
    page: &PageParams,
    filter: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, Error> {
    let sql = list.in_order(page.order);
    connection.query(sql, &page.with_filter(filter)).await
}

async fn query_filtered(
    connection: &mut PooledConnection,
    page: &PageParams,
    filter: &SubscriptionFilter,
    now: Timestamp,
) -> Result<Vec<Row>, Error> {
    fn uuids<I: Id + Copy>(ids: Option<&Vec<I>>) -> Option<Vec<Uuid>> {
        ids.map(|ids| ids.iter().map(|id| id.uuid()).collect())
    }
    let statuses = filter.statuses.as_ref();
    let statuses = statuses.map(|all| all.iter().map(|status| status.as_str()).collect::<Vec<_>>());
    let external_ids = filter.external_ids.as_ref();
    let external_ids =
        external_ids.map(|ids| ids.iter().map(ExternalId::as_str).collect::<Vec<_>>());
    let params: [&(dyn ToSql + Sync); 10] = [
        &uuids(filter.users.as_ref()),
        &uuids(filter.plans.as_ref()),
        &statuses,
        &now,
        &filter.is_active,
        &external_ids,
        &filter.renews_at.from,
        &filter.renews_at.before,
        &filter.ends_at.from,
        &filter.ends_at.before,
    ];
    let sql = FILTERED.in_order(page.order);
    connection
        .query_custom_plan(sql, &page.with_filter(&params))
        .await
}
