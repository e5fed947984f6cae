//! SQL of due transitions: finds, claims and updates subscriptions in bulk.

use jiff::Timestamp;
use perennial_domain::{Id, Lifecycle, Subscription, SubscriptionStatus, TenantId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::table::{columns, from_row};
use crate::{
    auth,
    db::{CellDatabase, Error, PooledConnection, Sql, Transaction, check_range},
};

/// For each managed tenant and status: how many days after its due date a transition happens.
/// Three arrays of the same length, for `unnest`.
#[derive(Default)]
struct DueRules {
    tenants: Vec<Uuid>,
    statuses: Vec<&'static str>,
    days: Vec<i32>,
}

impl DueRules {
    fn new(managed: &[(TenantId, Lifecycle)]) -> Self {
        let mut rules = Self::default();
        for (tenant, lifecycle) in managed {
            let Lifecycle::Managed(dunning) = lifecycle else {
                continue;
            };
            let past_due_days = dunning.unpaid_after.min(dunning.expired_after);
            for (status, days) in [
                (SubscriptionStatus::OnTrial, 0),
                (SubscriptionStatus::Active, 0),
                (SubscriptionStatus::PastDue, past_due_days),
                (SubscriptionStatus::Unpaid, dunning.expired_after),
            ] {
                rules.push(tenant.uuid(), status.as_str(), i32::from(days));
            }
        }
        rules
    }

    fn push(&mut self, tenant: Uuid, status: &'static str, days: i32) {
        self.tenants.push(tenant);
        self.statuses.push(status);
        self.days.push(days);
    }

    /// Keeps the rules that match at least one subscription.
    async fn retain_matching(self, tx: &Transaction<'_>, now: Timestamp) -> Result<Self, Error> {
        let params: [&(dyn ToSql + Sync); 4] = [&now, &self.tenants, &self.statuses, &self.days];
        let mut matching = Self::default();
        for row in tx.query(&MATCHING_RULES, &params).await? {
            // `WITH ORDINALITY` counts from 1.
            let index = usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or(usize::MAX);
            if let (Some(tenant), Some(status), Some(days)) = (
                self.tenants.get(index),
                self.statuses.get(index),
                self.days.get(index),
            ) {
                matching.push(*tenant, status, *days);
            }
        }
        Ok(matching)
    }
}

/// The `FROM` clause for the subscriptions that a rule matches at `$1`, longest due first.
/// The conditions are those of the partial index `subscriptions_due`.
macro_rules! from_due {
    () => {
        "FROM subscriptions
            WHERE tenant_id = rule.tenant_id AND status = rule.status AND deleted_at IS NULL AND external_id IS NULL
              AND status IN ('on_trial', 'active', 'past_due', 'unpaid')
              AND coalesce(late_since, renews_at) <= $1::timestamptz - rule.days * interval '24 hours'
            ORDER BY coalesce(late_since, renews_at)"
    };
}

static MATCHING_RULES: Sql = Sql::new(concat!(
    "SELECT index FROM unnest($2::uuid[], $3::text[], $4::integer[]) WITH ORDINALITY AS rule (tenant_id, status, days, index),
        LATERAL (SELECT id ",
    from_due!(),
    " LIMIT 1) AS due"
));

// Each CTE reads its own index in order of the due date. Rows locked by another worker are skipped.
// The locked rows are returned directly: reading them again could see an older version.
static CLAIM: Sql = Sql::new(concat!(
    "WITH ending AS (
        SELECT tenant_id, id, ",
    columns!(),
    " FROM subscriptions
        WHERE deleted_at IS NULL AND status <> 'expired' AND ends_at <= $1
        ORDER BY ends_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED),
     managed AS (
        SELECT due.* FROM unnest($3::uuid[], $4::text[], $5::integer[]) AS rule (tenant_id, status, days),
        LATERAL (SELECT tenant_id, id, ",
    columns!(),
    " ",
    from_due!(),
    " LIMIT $6 FOR NO KEY UPDATE SKIP LOCKED) AS due)
     TABLE ending UNION TABLE managed"
));

static OLDEST: Sql = Sql::new(concat!(
    "SELECT least(
        (SELECT min(ends_at) FROM subscriptions WHERE deleted_at IS NULL AND status <> 'expired' AND ends_at <= $1),
        (SELECT min(due.at) FROM unnest($2::uuid[], $3::text[], $4::integer[]) AS rule (tenant_id, status, days),
         LATERAL (SELECT coalesce(late_since, renews_at) + rule.days * interval '24 hours' AS at ",
    from_due!(),
    " LIMIT 1) AS due))"
));

/// Returns the due date of the oldest transition that was not applied by `now`.
pub async fn oldest_due_at(
    home: &CellDatabase,
    connection: &PooledConnection,
    now: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    let rules = DueRules::new(&auth::tenants::table::list_managed(home).await?);
    let params: [&(dyn ToSql + Sync); 4] = [&now, &rules.tenants, &rules.statuses, &rules.days];
    let rows = connection.query(&OLDEST, &params).await?;
    rows.first().map_or(Ok(None), |row| Ok(row.try_get(0)?))
}

/// Locks and returns subscriptions of all tenants with transitions due by `now`: up to `limit` past
/// their end, and about `limit` that match a rule. Claims the longest due first.
pub(super) async fn claim(
    tx: &Transaction<'_>,
    managed: &[(TenantId, Lifecycle)],
    now: Timestamp,
    limit: i64,
) -> Result<Vec<(TenantId, Subscription)>, Error> {
    let rules = DueRules::new(managed).retain_matching(tx, now).await?;
    let count = i64::try_from(rules.tenants.len()).unwrap_or(i64::MAX);
    // An equal share per rule, so that a tenant with much due work does not delay the others.
    let share = (limit / count.max(1)).max(1);
    let params: [&(dyn ToSql + Sync); 6] = [
        &now,
        &limit,
        &rules.tenants,
        &rules.statuses,
        &rules.days,
        &share,
    ];
    let rows = tx.query(&CLAIM, &params).await?;
    rows.iter()
        .map(|row| {
            let tenant = TenantId::new(row.try_get("tenant_id")?);
            Ok((tenant, from_row(row)?))
        })
        .collect()
}

// Only the columns that transitions change.
static UPDATE_MANY: Sql = Sql::new(
    "UPDATE subscriptions SET status = new.status, renews_at = new.renews_at, ends_at = new.ends_at,
        prepaid = new.prepaid, late_since = new.late_since, updated_at = new.updated_at
     FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::integer[],
        $7::timestamptz[], $8::timestamptz[])
        AS new (tenant_id, id, status, renews_at, ends_at, prepaid, late_since, updated_at)
     WHERE subscriptions.tenant_id = new.tenant_id AND subscriptions.id = new.id",
);

/// Updates claimed subscriptions.
pub(super) async fn update_many(
    tx: &Transaction<'_>,
    subscriptions: &[(TenantId, Subscription)],
) -> Result<(), Error> {
    fn column<T>(
        subscriptions: &[(TenantId, Subscription)],
        value: impl Fn(&Subscription) -> T,
    ) -> Vec<T> {
        subscriptions.iter().map(|(_, row)| value(row)).collect()
    }
    let tenants: Vec<Uuid> = subscriptions
        .iter()
        .map(|(tenant, _)| tenant.uuid())
        .collect();
    let prepaid = subscriptions
        .iter()
        .map(|(_, row)| check_range("prepaid", i32::try_from(row.prepaid).ok()))
        .collect::<Result<Vec<_>, _>>()?;
    let params: [&(dyn ToSql + Sync); 8] = [
        &tenants,
        &column(subscriptions, |row| row.id.uuid()),
        &column(subscriptions, |row| row.status.as_str()),
        &column(subscriptions, |row| row.renews_at),
        &column(subscriptions, |row| row.ends_at),
        &prepaid,
        &column(subscriptions, |row| row.past_due_since),
        &column(subscriptions, |row| row.updated_at),
    ];
    tx.enqueue(&UPDATE_MANY, &params).await
}
