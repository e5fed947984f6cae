//! SQL of `GET /subscriptions/counts`, and other counts of a tenant's subscriptions.
//!
//! Counting all rows would take longer with every subscription. So each plan and status is counted in its index up to a
//! limit, and the result says whether there may be more.

use std::collections::BTreeMap;

use jiff::Timestamp;
use perennial_domain::{Id, PlanId, Slug, SubscriptionStatus, TenantId};
use tokio_postgres::types::ToSql;

use crate::db::{Error, PooledConnection, RowReader, Sql};

/// The most subscriptions of a plan and status that are counted.
pub(super) const MAX_COUNT: i64 = 1_000;
/// The most subscriptions past their end whose stored status is corrected. Usually there are few.
const MAX_LAPSED: i64 = 10_000;

/// The number of a plan's subscriptions with a status, as shown.
#[derive(Debug)]
pub(super) struct PlanCount {
    pub plan: PlanId,
    pub slug: Slug,
    pub status: SubscriptionStatus,
    pub count: i64,
    /// Whether there may be more.
    pub is_at_least: bool,
}

// The order selects the index by plan and status, even in a table without statistics.
static STORED: Sql = Sql::new(
    "SELECT plan.id, plan.slug, status.name AS status, found.count
     FROM subscription_plans AS plan
     CROSS JOIN unnest($2::text[]) AS status (name)
     CROSS JOIN LATERAL (
        SELECT count(*) FROM (
            SELECT FROM subscriptions
            WHERE subscriptions.tenant_id = $1 AND plan_id = plan.id AND subscriptions.status = status.name
              AND subscriptions.deleted_at IS NULL
            ORDER BY subscriptions.created_at, subscriptions.id LIMIT $3) AS counted) AS found
     WHERE plan.tenant_id = $1 AND found.count > 0",
);

// Reads the index of those that the background task has not stored as expired yet.
static LAPSED: Sql = Sql::new(
    "SELECT plan_id AS id, status, count(*) AS count FROM (
        SELECT plan_id, status FROM subscriptions
        WHERE tenant_id = $1 AND deleted_at IS NULL AND status <> 'expired' AND ends_at <= $2 LIMIT $3) AS lapsed
     GROUP BY plan_id, status",
);

/// Counts the subscriptions at `now`, by plan and status.
pub(super) async fn count(
    connection: &mut PooledConnection,
    tenant: TenantId,
    now: Timestamp,
) -> Result<Vec<PlanCount>, Error> {
    let tenant = tenant.uuid();
    let statuses = SubscriptionStatus::ALL.map(SubscriptionStatus::as_str);
    let one_more = MAX_COUNT + 1;
    let params: [&(dyn ToSql + Sync); 3] = [&tenant, &statuses.as_slice(), &one_more];
    let mut slugs = BTreeMap::new();
    let mut counts: BTreeMap<(PlanId, SubscriptionStatus), i64> = BTreeMap::new();
    for row in connection.query(&STORED, &params).await? {
        let row = RowReader::new(&row);
        let plan = PlanId::new(row.get("id")?);
        slugs.insert(plan, row.parse::<Slug>("slug")?);
        counts.insert((plan, row.parse("status")?), row.get("count")?);
    }
    let params: [&(dyn ToSql + Sync); 3] = [&tenant, &now, &MAX_LAPSED];
    for row in connection.query_custom_plan(&LAPSED, &params).await? {
        let row = RowReader::new(&row);
        let (plan, count) = (PlanId::new(row.get("id")?), row.get::<i64>("count")?);
        // A number above the limit stays: there may be as many others.
        let stored = counts.entry((plan, row.parse("status")?)).or_default();
        if *stored <= MAX_COUNT {
            *stored -= count;
        }
        *counts
            .entry((plan, SubscriptionStatus::Expired))
            .or_default() += count;
    }
    let known = |((plan, status), count): ((PlanId, SubscriptionStatus), i64)| {
        let slug = *slugs.get(&plan)?;
        (count > 0).then(|| PlanCount {
            plan,
            slug,
            status,
            count: count.min(MAX_COUNT),
            is_at_least: count > MAX_COUNT,
        })
    };
    Ok(counts.into_iter().filter_map(known).collect())
}

static COUNT_EXTERNAL: Sql = Sql::new(
    "SELECT count(*) FROM (
        SELECT FROM subscriptions
        WHERE tenant_id = $1 AND deleted_at IS NULL AND external_id IS NOT NULL AND status <> 'expired'
          AND (ends_at IS NULL OR ends_at > $2) LIMIT $3) AS counted",
);

/// Counts up to `limit` live subscriptions with an external id, which the service does not manage.
pub async fn count_external(
    connection: &PooledConnection,
    tenant: TenantId,
    now: Timestamp,
    limit: i64,
) -> Result<i64, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &now, &limit];
    let rows = connection.query(&COUNT_EXTERNAL, &params).await?;
    rows.first().map_or(Ok(0), |row| Ok(row.try_get(0)?))
}
