//! SQL of `GET /subscription-plans`.

use jiff::Timestamp;
use perennial_domain::{BillingCycle, Id, Plan, TenantId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::table::{columns, from_row, select};
use crate::db::{AgeOrder, ByAgeSql, Error, PooledConnection, Sql, by_age};

/// Conditions on the plans of a list; `None` matches all.
#[derive(Debug, Default)]
pub(super) struct PlanFilter {
    pub is_active: Option<Vec<bool>>,
    pub tier: Option<Vec<i32>>,
    pub billing_cycle: Option<Vec<BillingCycle>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum PlanOrder {
    ByAge(AgeOrder),
    LowestTierFirst,
    HighestTierFirst,
}

/// The sort keys of a plan in all orders.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlanKey {
    pub created_at: Timestamp,
    pub tier: i32,
    pub id: Uuid,
}

impl PlanKey {
    /// Sorts before all plans.
    const FIRST: Self = Self {
        created_at: Timestamp::UNIX_EPOCH,
        tier: i32::MIN,
        id: Uuid::nil(),
    };
    /// Sorts after all plans.
    const LAST: Self = Self {
        created_at: Timestamp::MAX,
        tier: i32::MAX,
        id: Uuid::max(),
    };
}

/// The conditions of [`PlanFilter`]. They follow the parameters of [`by_age!`]: `$1` is the tenant,
/// `$2` and `$3` are the key to start after, and `$4` is the limit.
macro_rules! filters {
    () => {
        "($5::boolean[] IS NULL OR is_active = ANY ($5)) AND ($6::integer[] IS NULL OR tier = ANY ($6))
       AND ($7::text[] IS NULL OR billing_cycle = ANY ($7)) AND "
    };
}

static BY_AGE: ByAgeSql = by_age!(select, filters!(),);
static LOWEST_TIER_FIRST: Sql = Sql::new(select!(
    filters!(),
    "(tier, id) > ($2, $3) ORDER BY tier, id LIMIT $4"
));
static HIGHEST_TIER_FIRST: Sql = Sql::new(select!(
    filters!(),
    "(tier, id) < ($2, $3) ORDER BY tier DESC, id DESC LIMIT $4"
));

/// Returns up to `limit` plans after a key.
pub(super) async fn list(
    connection: &PooledConnection,
    tenant: TenantId,
    filter: &PlanFilter,
    (order, after): (PlanOrder, Option<PlanKey>),
    limit: i64,
) -> Result<Vec<Plan>, Error> {
    let (sql, start) = match order {
        PlanOrder::ByAge(AgeOrder::OldestFirst) => (&BY_AGE.oldest_first, PlanKey::FIRST),
        PlanOrder::ByAge(AgeOrder::NewestFirst) => (&BY_AGE.newest_first, PlanKey::LAST),
        PlanOrder::LowestTierFirst => (&LOWEST_TIER_FIRST, PlanKey::FIRST),
        PlanOrder::HighestTierFirst => (&HIGHEST_TIER_FIRST, PlanKey::LAST),
    };
    let after = after.unwrap_or(start);
    let sort_key: &(dyn ToSql + Sync) = match order {
        PlanOrder::ByAge(_) => &after.created_at,
        PlanOrder::LowestTierFirst | PlanOrder::HighestTierFirst => &after.tier,
    };
    let billing_cycles: Option<Vec<&str>> = filter
        .billing_cycle
        .as_ref()
        .map(|cycles| cycles.iter().map(|cycle| cycle.as_str()).collect());
    let params: [&(dyn ToSql + Sync); 7] = [
        &tenant.uuid(),
        sort_key,
        &after.id,
        &limit,
        &filter.is_active,
        &filter.tier,
        &billing_cycles,
    ];
    let rows = connection.query(sql, &params).await?;
    rows.iter().map(from_row).collect()
}

/// Returns all plans of a tenant, lowest tier first.
pub async fn list_all(connection: &PooledConnection, tenant: TenantId) -> Result<Vec<Plan>, Error> {
    let start = (PlanOrder::LowestTierFirst, None);
    list(connection, tenant, &PlanFilter::default(), start, i64::MAX).await
}
