//! SQL of due transitions: finds, claims and updates subscriptions in bulk.

use jiff::Timestamp;
use perennial_domain::{Id, Lifecycle, Subscription, TenantId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::subscription_row::{columns, from_row, selected};
use crate::{
    auth,
    db::{CellDatabase, Error, PooledConnection, Sql, Transaction},
};

/// The `FROM` clause for the subscriptions of a tenant with transitions due at `$1`, longest due
/// first. The conditions are those of the partial index.
macro_rules! from_due {
    () => {
        "FROM subscriptions
         WHERE tenant_id = tenant.id AND deleted_at IS NULL AND external_id IS NULL AND status <> 'expired'
           AND due_at <= $1::timestamptz ORDER BY due_at"
    };
}

static TENANTS_WITH_DUE: Sql = Sql::new(concat!(
    "SELECT tenant.id FROM unnest($2::uuid[]) AS tenant (id), LATERAL (SELECT id ",
    from_due!(),
    " LIMIT 1) AS due"
));

// Each CTE reads its own index in order of the due date. Rows locked by another worker are skipped.
// The locked rows are returned directly: reading them again could see their previous values.
static CLAIM: Sql = Sql::new(concat!(
    "WITH ending AS (
        SELECT tenant_id, ",
    selected!(),
    " FROM subscriptions
        WHERE deleted_at IS NULL AND status <> 'expired' AND ends_at <= $1
        ORDER BY ends_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED),
     managed AS (
        SELECT due.* FROM unnest($3::uuid[]) AS tenant (id),
        LATERAL (SELECT tenant_id, ",
    selected!(),
    " ",
    from_due!(),
    " LIMIT $4 FOR NO KEY UPDATE SKIP LOCKED) AS due)
     TABLE ending UNION TABLE managed"
));

static OLDEST: Sql = Sql::new(concat!(
    "SELECT least(
        (SELECT min(ends_at) FROM subscriptions WHERE deleted_at IS NULL AND status <> 'expired' AND ends_at <= $1),
        (SELECT min(due.at) FROM unnest($2::uuid[]) AS tenant (id),
         LATERAL (SELECT due_at AS at ",
    from_due!(),
    " LIMIT 1) AS due))"
));

fn ids(managed: &[(TenantId, Lifecycle)]) -> Vec<Uuid> {
    managed.iter().map(|(tenant, _)| tenant.uuid()).collect()
}

/// Returns the due date of the oldest transition that was not applied by `now`.
pub async fn oldest_due_at(
    home: &CellDatabase,
    connection: &PooledConnection,
    now: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    let tenants = ids(&auth::tenants::table::list_managed(home).await?);
    let params: [&(dyn ToSql + Sync); 2] = [&now, &tenants];
    let rows = connection.query(&OLDEST, &params).await?;
    rows.first().map_or(Ok(None), |row| Ok(row.try_get(0)?))
}

/// Locks and returns subscriptions of all tenants with transitions due by `now`: up to `limit` past
/// their end, and about `limit` of managed tenants. Claims the longest due first.
pub(super) async fn claim(
    tx: &Transaction<'_>,
    managed: &[(TenantId, Lifecycle)],
    now: Timestamp,
    limit: i64,
) -> Result<Vec<(TenantId, Subscription)>, Error> {
    let rows = tx.query(&TENANTS_WITH_DUE, &[&now, &ids(managed)]).await?;
    let tenants = rows
        .iter()
        .map(|row| Ok(row.try_get(0)?))
        .collect::<Result<Vec<Uuid>, Error>>()?;
    let count = i64::try_from(tenants.len()).unwrap_or(i64::MAX);
    // An equal share per tenant, so that a tenant with much due work does not delay the others.
    let share = (limit / count.max(1)).max(1);
    let params: [&(dyn ToSql + Sync); 4] = [&now, &limit, &tenants, &share];
    let rows = tx.query(&CLAIM, &params).await?;
    rows.iter()
        .map(|row| {
            let tenant = TenantId::new(row.try_get("tenant_id")?);
            let lifecycle = managed.iter().find(|(id, _)| *id == tenant);
            let lifecycle = lifecycle.map_or(Lifecycle::Recorded, |(_, lifecycle)| *lifecycle);
            Ok((tenant, from_row(row, lifecycle)?))
        })
        .collect()
}

// Only the columns that transitions change.
static UPDATE_MANY: Sql = Sql::new(
    "UPDATE subscriptions SET status = new.status, starts_at = new.starts_at, renews_at = new.renews_at,
        ends_at = new.ends_at, anchor = new.anchor, late_since = new.late_since, trial_plan_id = new.trial_plan_id,
        trial_ends_at = new.trial_ends_at, credit_minor = new.credit_minor, period_starts_at = new.period_starts_at,
        period_ends_at = new.period_ends_at, period_cycle = new.period_cycle,
        period_cost_minor = new.period_cost_minor, period_given_minor = new.period_given_minor,
        period_waived_minor = new.period_waived_minor, free_starts_at = new.free_starts_at,
        free_ends_at = new.free_ends_at, free_cycle = new.free_cycle, free_cost_minor = new.free_cost_minor,
        free_given_minor = new.free_given_minor, free_waived_minor = new.free_waived_minor,
        managed_since = new.managed_since,
        updated_at = new.updated_at, due_at = coalesce(new.due_at, 'infinity')
     FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[],
        $7::timestamptz[], $8::timestamptz[], $9::uuid[], $10::timestamptz[], $11::bigint[], $12::timestamptz[],
        $13::timestamptz[], $14::text[], $15::bigint[], $16::bigint[], $17::bigint[], $18::timestamptz[],
        $19::timestamptz[], $20::text[], $21::bigint[], $22::bigint[], $23::bigint[], $24::timestamptz[],
        $25::timestamptz[], $26::timestamptz[])
        AS new (tenant_id, id, status, starts_at, renews_at, ends_at, anchor, late_since, trial_plan_id, trial_ends_at,
            credit_minor, period_starts_at, period_ends_at, period_cycle, period_cost_minor, period_given_minor,
            period_waived_minor, free_starts_at, free_ends_at, free_cycle, free_cost_minor, free_given_minor,
            free_waived_minor, managed_since, updated_at, due_at)
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
    let params: [&(dyn ToSql + Sync); 26] = [
        &tenants,
        &column(subscriptions, |row| row.id.uuid()),
        &column(subscriptions, |row| row.status.as_str()),
        &column(subscriptions, |row| row.starts_at),
        &column(subscriptions, |row| row.renews_at),
        &column(subscriptions, |row| row.ends_at),
        &column(subscriptions, |row| row.anchor),
        &column(subscriptions, |row| row.late_since),
        &column(subscriptions, |row| {
            row.trial.map(|trial| trial.plan.uuid())
        }),
        &column(subscriptions, |row| row.trial.map(|trial| trial.ends_at)),
        &column(subscriptions, |row| row.credit),
        &column(subscriptions, |row| Some(row.period?.starts_at)),
        &column(subscriptions, |row| row.period?.ends_at),
        &column(subscriptions, |row| Some(row.period?.cycle.as_str())),
        &column(subscriptions, |row| Some(row.period?.cost)),
        &column(subscriptions, |row| Some(row.period?.given)),
        &column(subscriptions, |row| Some(row.period?.waived)),
        &column(subscriptions, |row| Some(row.free_time?.starts_at)),
        &column(subscriptions, |row| row.free_time?.ends_at),
        &column(subscriptions, |row| Some(row.free_time?.cycle.as_str())),
        &column(subscriptions, |row| Some(row.free_time?.cost)),
        &column(subscriptions, |row| Some(row.free_time?.given)),
        &column(subscriptions, |row| Some(row.free_time?.waived)),
        &column(subscriptions, |row| row.managed_since),
        &column(subscriptions, |row| row.updated_at),
        &column(subscriptions, Subscription::due_at),
    ];
    tx.enqueue(&UPDATE_MANY, &params).await
}
