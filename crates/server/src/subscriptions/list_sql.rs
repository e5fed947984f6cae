//! SQL of `GET /subscriptions`.
//!
//! In the order of creation, the common filters have a statement each, with a cached generic plan: none, one user, one
//! plan, one status, one plan and status, one billing cycle, and suspended. Any other order or combination uses a
//! statement that PostgreSQL plans with the actual values on every execution, so that it selects the best index.

use jiff::Timestamp;
use perennial_domain::{
    BillingCycle, ExternalId, Id, PlanId, Slug, Subscription, SubscriptionStatus, UserId,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::{
    subscription_row::{columns, from_row, select, selected},
    table::Scope,
};
use crate::db::{
    AgeOrder, ByAgeSql, Error, PooledConnection, TimeRange, by_age, by_key, by_value, uuids,
};

/// Conditions on the subscriptions of a list; `None` matches all.
#[derive(Debug, Default)]
pub(super) struct SubscriptionFilter {
    pub users: Option<Vec<UserId>>,
    /// Resolved to `users` before the query.
    pub external_user_ids: Option<Vec<ExternalId>>,
    pub plans: Option<Vec<PlanId>>,
    /// Resolved to `plans` before the query.
    pub plan_slugs: Option<Vec<Slug>>,
    /// Statuses as shown, not as stored.
    pub statuses: Option<Vec<SubscriptionStatus>>,
    pub billing_cycles: Option<Vec<BillingCycle>>,
    pub is_active: Option<bool>,
    pub suspended: Option<bool>,
    pub external_ids: Option<Vec<ExternalId>>,
    pub created_at: TimeRange,
    pub updated_at: TimeRange,
    pub renews_at: TimeRange,
    pub ends_at: TimeRange,
}

/// The order of a list.
#[derive(Debug, Clone, Copy)]
pub(super) enum SubscriptionOrder {
    Created(AgeOrder),
    /// Subscriptions without a renewal are last, and first in descending order.
    Renewal(AgeOrder),
    Updated(AgeOrder),
}

/// The sort key of a subscription: the time of the order, then the id.
#[derive(Debug, Clone, Copy)]
pub(super) struct SubscriptionKey {
    /// `None` without a renewal.
    pub at: Option<Timestamp>,
    pub id: Uuid,
}

impl SubscriptionOrder {
    fn direction(self) -> AgeOrder {
        match self {
            Self::Created(direction) | Self::Renewal(direction) | Self::Updated(direction) => {
                direction
            }
        }
    }

    /// Returns the key of a subscription in this order.
    pub fn key(self, subscription: &Subscription) -> SubscriptionKey {
        let at = match self {
            Self::Created(_) => Some(subscription.created_at),
            Self::Renewal(_) => subscription.renews_at,
            Self::Updated(_) => Some(subscription.updated_at),
        };
        SubscriptionKey {
            at,
            id: subscription.id.uuid(),
        }
    }

    /// Returns a key just before the first row of a filter.
    fn start(self, filter: &SubscriptionFilter) -> SubscriptionKey {
        let range = match self {
            Self::Created(_) => filter.created_at,
            Self::Renewal(_) => filter.renews_at,
            Self::Updated(_) => filter.updated_at,
        };
        let start = self.direction().start(range);
        let is_after_all =
            matches!(self, Self::Renewal(AgeOrder::NewestFirst)) && range.before.is_none();
        SubscriptionKey {
            at: Some(start.created_at).filter(|_| !is_after_all),
            id: start.id,
        }
    }
}

/// The kind of a filter in the order of creation. Each kind has its own statement.
enum FilterKind {
    All,
    User(UserId),
    Plan(PlanId),
    /// Any status except expired, which also matches subscriptions past their end.
    Status(SubscriptionStatus),
    PlanAndStatus(PlanId, SubscriptionStatus),
    BillingCycle(BillingCycle),
    Suspended,
    Other,
}

impl SubscriptionFilter {
    fn kind(&self, order: SubscriptionOrder) -> FilterKind {
        let Self {
            users,
            external_user_ids: _,
            plans,
            plan_slugs: _,
            statuses,
            billing_cycles,
            is_active,
            suspended,
            external_ids,
            created_at: _,
            updated_at,
            renews_at,
            ends_at,
        } = self;
        let has_other_conditions = is_active.is_some()
            || external_ids.is_some()
            || [updated_at, renews_at, ends_at]
                .into_iter()
                .any(|range| !range.is_unbounded())
            || !matches!(order, SubscriptionOrder::Created(_));
        if has_other_conditions {
            return FilterKind::Other;
        }
        let of_plans = (users.as_deref(), plans.as_deref(), statuses.as_deref());
        match (of_plans, billing_cycles.as_deref(), suspended) {
            ((None, None, None), Some([cycle]), None) => FilterKind::BillingCycle(*cycle),
            ((None, None, None), None, Some(true)) => FilterKind::Suspended,
            (of_plans, None, None) => match of_plans {
                (None, None, None) => FilterKind::All,
                (Some([user]), None, None) => FilterKind::User(*user),
                (None, Some([plan]), None) => FilterKind::Plan(*plan),
                (_, _, Some([SubscriptionStatus::Expired])) => FilterKind::Other,
                (None, None, Some([status])) => FilterKind::Status(*status),
                (None, Some([plan]), Some([status])) => FilterKind::PlanAndStatus(*plan, *status),
                _ => FilterKind::Other,
            },
            _ => FilterKind::Other,
        }
    }
}

macro_rules! not_ended {
    ($now:literal) => {
        concat!("(ends_at IS NULL OR ends_at > ", $now, ")")
    };
}

/// The range of `created_at` in the statements with a generic plan.
macro_rules! created {
    () => {
        "created_at >= $5 AND created_at < $6 AND "
    };
}

static ALL: ByAgeSql = by_age!(select, created!(),);
// `=` and not `= ANY`, because with several values the index does not return rows in order.
static BY_USER: ByAgeSql = by_age!(select, created!(), "user_id = $7 AND ",);
static BY_PLAN: ByAgeSql = by_value!(select, "plan_id", "$7",);
static BY_STATUS: ByAgeSql = by_value!(select, "status", "$7", not_ended!("$8"), " AND ",);
static BY_PLAN_AND_STATUS: ByAgeSql = by_value!(
    select,
    "status",
    "$8",
    "plan_id = $7 AND ",
    not_ended!("$9"),
    " AND ",
);
static BY_CYCLE: ByAgeSql = by_value!(select, "billing_cycle", "$7",);
static SUSPENDED: ByAgeSql = by_age!(select, created!(), "suspended AND ",);

// The planner removes the conditions of null parameters from a custom plan. The conditions on
// status and access repeat `Subscription::status_at` and `has_access`; a test compares them.
// `updated_at` covers changes by an instance whose clock is ahead. `ends_at` needs no such condition:
// an update at or after the end stores the status `expired`. The conditions on `renews_at` are those of its index, and
// the statistics `subscriptions_next_renewal` tell the planner how many rows match.
macro_rules! conditions {
    () => {
        concat!(
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
       AND ($11::timestamptz IS NULL OR coalesce(renews_at, 'infinity'::timestamptz) >= $11)
       AND ($12::timestamptz IS NULL OR coalesce(renews_at, 'infinity'::timestamptz) < $12)
       AND ($11 IS NULL AND $12 IS NULL OR renews_at IS NOT NULL)
       AND ($13::timestamptz IS NULL OR ends_at >= $13) AND ($14::timestamptz IS NULL OR ends_at < $14)
       AND ($15::timestamptz IS NULL OR created_at >= $15) AND ($16::timestamptz IS NULL OR created_at < $16)
       AND ($17::timestamptz IS NULL OR updated_at >= $17) AND ($18::timestamptz IS NULL OR updated_at < $18)
       AND ($19::text[] IS NULL OR billing_cycle = ANY ($19)) AND ($20::boolean IS NULL OR suspended = $20)
       AND "
        )
    };
}

static FILTERED: ByAgeSql = by_age!(select, conditions!(),);
static FILTERED_BY_UPDATE: ByAgeSql = by_key!(select, "updated_at", "$2", conditions!(),);
static FILTERED_BY_RENEWAL: ByAgeSql = by_key!(
    select,
    "coalesce(renews_at, 'infinity'::timestamptz)",
    "coalesce($2, 'infinity'::timestamptz)",
    conditions!(),
);

/// The parameters `$1` to `$4` of every list, and the range of `created_at`: `$5` and `$6` with a generic plan.
struct PageParams {
    tenant: Uuid,
    order: SubscriptionOrder,
    after: SubscriptionKey,
    limit: i64,
    created: (Timestamp, Timestamp),
}

impl PageParams {
    /// Returns all parameters of a list: the page's, then the filter's.
    fn with_filter<'a>(&'a self, filter: &[&'a (dyn ToSql + Sync)]) -> Vec<&'a (dyn ToSql + Sync)> {
        let SubscriptionKey { at, id } = &self.after;
        let mut params: Vec<&(dyn ToSql + Sync)> = vec![&self.tenant, at, id, &self.limit];
        params.extend(filter);
        params
    }
}

/// Returns up to `limit` subscriptions after a key, filtered by their state at `now`.
pub(super) async fn list(
    connection: &mut PooledConnection,
    (tenant, lifecycle): Scope,
    filter: &SubscriptionFilter,
    (order, after): (SubscriptionOrder, Option<SubscriptionKey>),
    limit: i64,
    now: Timestamp,
) -> Result<Vec<Subscription>, Error> {
    let page = PageParams {
        tenant: tenant.uuid(),
        order,
        after: after.unwrap_or_else(|| order.start(filter)),
        limit,
        created: filter.created_at.bounds(),
    };
    let rows = match filter.kind(order) {
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
        FilterKind::BillingCycle(cycle) => {
            query(connection, &BY_CYCLE, &page, &[&cycle.as_str()]).await?
        }
        FilterKind::Suspended => query(connection, &SUSPENDED, &page, &[]).await?,
        FilterKind::Other => query_filtered(connection, &page, filter, now).await?,
    };
    rows.iter().map(|row| from_row(row, lifecycle)).collect()
}

async fn query(
    connection: &PooledConnection,
    list: &'static ByAgeSql,
    page: &PageParams,
    filter: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, Error> {
    let sql = list.in_order(page.order.direction());
    let (from, before) = &page.created;
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![from, before];
    params.extend(filter);
    connection.query(sql, &page.with_filter(&params)).await
}

async fn query_filtered(
    connection: &mut PooledConnection,
    page: &PageParams,
    filter: &SubscriptionFilter,
    now: Timestamp,
) -> Result<Vec<Row>, Error> {
    let statuses = filter.statuses.as_ref();
    let statuses = statuses.map(|all| all.iter().map(|status| status.as_str()).collect::<Vec<_>>());
    let external_ids = filter.external_ids.as_ref();
    let external_ids =
        external_ids.map(|ids| ids.iter().map(ExternalId::as_str).collect::<Vec<_>>());
    let cycles = filter.billing_cycles.as_ref();
    let cycles = cycles.map(|all| all.iter().map(|cycle| cycle.as_str()).collect::<Vec<_>>());
    let params: [&(dyn ToSql + Sync); 16] = [
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
        &filter.created_at.from,
        &filter.created_at.before,
        &filter.updated_at.from,
        &filter.updated_at.before,
        &cycles,
        &filter.suspended,
    ];
    let sql = match page.order {
        SubscriptionOrder::Created(_) => &FILTERED,
        SubscriptionOrder::Renewal(_) => &FILTERED_BY_RENEWAL,
        SubscriptionOrder::Updated(_) => &FILTERED_BY_UPDATE,
    };
    let sql = sql.in_order(page.order.direction());
    connection
        .query_custom_plan(sql, &page.with_filter(&params))
        .await
}
