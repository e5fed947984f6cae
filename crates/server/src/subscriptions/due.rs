//! The subscriptions to which something happens by itself: finding and writing many at once.

use jiff::Timestamp;
use perennial_domain::{Id, Lifecycle, Status, Subscription, TenantId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::table::subscription;
use crate::{
    callers,
    db::{Connection, Engine, Error, Sql, Transaction, row::checked},
};

/// What is looked for: a tenant's subscriptions of a status, so many days after what was due.
#[derive(Default)]
struct Rules {
    tenants: Vec<Uuid>,
    statuses: Vec<&'static str>,
    days: Vec<i32>,
}

impl Rules {
    fn of(managed: &[(TenantId, Lifecycle)]) -> Self {
        let mut rules = Self::default();
        for (tenant, lifecycle) in managed {
            let Lifecycle::Managed(dunning) = lifecycle else {
                continue;
            };
            let first = dunning.unpaid_after.min(dunning.expired_after);
            for (status, days) in [
                (Status::OnTrial, 0),
                (Status::Active, 0),
                (Status::PastDue, first),
                (Status::Unpaid, dunning.expired_after),
            ] {
                rules.tenants.push(tenant.uuid());
                rules.statuses.push(status.as_str());
                rules.days.push(i32::from(days));
            }
        }
        rules
    }

    /// Those that find anything.
    async fn with_something_due(self, tx: &Transaction<'_>, now: Timestamp) -> Result<Self, Error> {
        let params: [&(dyn ToSql + Sync); 4] = [&now, &self.tenants, &self.statuses, &self.days];
        let mut found = Self::default();
        for row in tx.query(&SOMETHING_DUE, &params).await? {
            let place = usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or(usize::MAX);
            let rule = (
                self.tenants.get(place),
                self.statuses.get(place),
                self.days.get(place),
            );
            if let (Some(tenant), Some(status), Some(days)) = rule {
                found.tenants.push(*tenant);
                found.statuses.push(status);
                found.days.push(*days);
            }
        }
        Ok(found)
    }
}

static SOMETHING_DUE: Sql = Sql::new(
    "SELECT place FROM unnest($2::uuid[], $3::text[], $4::integer[]) WITH ORDINALITY AS rule (tenant_id, status, days, place),
        LATERAL (
            SELECT id FROM subscriptions
            WHERE tenant_id = rule.tenant_id AND status = rule.status AND deleted_at IS NULL AND external_id IS NULL
              AND status IN ('on_trial', 'active', 'past_due', 'unpaid')
              AND coalesce(late_since, renews_at) <= $1::timestamptz - rule.days * interval '24 hours'
            ORDER BY coalesce(late_since, renews_at) LIMIT 1) AS due",
);

// Each arm reads its own index from the instant that was due first. A row that another worker has in hand is skipped. What is
// read is what was locked: a second look at the same row would see it as it was before somebody else changed it.
static CLAIM: Sql = Sql::new(
    "WITH ending AS (
        SELECT tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle, external_id, billing_cycle, status,
            suspended, starts_at, renews_at, ends_at, anchor, prepaid, late_since, created_at, updated_at
        FROM subscriptions
        WHERE deleted_at IS NULL AND status <> 'expired' AND ends_at <= $1
        ORDER BY ends_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED),
     turning AS (
        SELECT due.tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle, external_id, billing_cycle,
            due.status, suspended, starts_at, renews_at, ends_at, anchor, prepaid, late_since, created_at, updated_at
        FROM unnest($3::uuid[], $4::text[], $5::integer[]) AS rule (tenant_id, status, days),
        LATERAL (
            SELECT tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle, external_id, billing_cycle, status,
                suspended, starts_at, renews_at, ends_at, anchor, prepaid, late_since, created_at, updated_at
            FROM subscriptions
            WHERE tenant_id = rule.tenant_id AND status = rule.status AND deleted_at IS NULL AND external_id IS NULL
              AND status IN ('on_trial', 'active', 'past_due', 'unpaid')
              AND coalesce(late_since, renews_at) <= $1 - rule.days * interval '24 hours'
            ORDER BY coalesce(late_since, renews_at) LIMIT $6 FOR NO KEY UPDATE SKIP LOCKED) AS due)
     SELECT tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle, external_id, billing_cycle, status,
            suspended, starts_at, renews_at, ends_at, anchor, prepaid, late_since, created_at, updated_at
     FROM ending
     UNION
     SELECT tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle, external_id, billing_cycle, status,
            suspended, starts_at, renews_at, ends_at, anchor, prepaid, late_since, created_at, updated_at
     FROM turning",
);

static OLDEST: Sql = Sql::new(
    "SELECT least(
        (SELECT min(ends_at) FROM subscriptions WHERE deleted_at IS NULL AND status <> 'expired' AND ends_at <= $1),
        (SELECT min(due.at) FROM unnest($2::uuid[], $3::text[], $4::integer[]) AS rule (tenant_id, status, days),
         LATERAL (
            SELECT coalesce(late_since, renews_at) + rule.days * interval '24 hours' AS at FROM subscriptions
            WHERE tenant_id = rule.tenant_id AND status = rule.status AND deleted_at IS NULL AND external_id IS NULL
              AND status IN ('on_trial', 'active', 'past_due', 'unpaid')
              AND coalesce(late_since, renews_at) <= $1 - rule.days * interval '24 hours'
            ORDER BY coalesce(late_since, renews_at) LIMIT 1) AS due))",
);

/// Since when something waits to be moved, if anything does.
pub async fn oldest(
    home: &Engine,
    connection: &Connection,
    now: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    let rules = Rules::of(&callers::tenants::table::managed(home).await?);
    let params: [&(dyn ToSql + Sync); 4] = [&now, &rules.tenants, &rules.statuses, &rules.days];
    let rows = connection.query(&OLDEST, &params).await?;
    rows.first().map_or(Ok(None), |row| Ok(row.try_get(0)?))
}

/// Up to about so many subscriptions to which something was to happen by `now`, of all tenants, the longest overdue first;
/// nobody else changes them until the end of the transaction.
pub(super) async fn claim(
    tx: &Transaction<'_>,
    managed: &[(TenantId, Lifecycle)],
    now: Timestamp,
    limit: i64,
) -> Result<Vec<(TenantId, Subscription)>, Error> {
    let rules = Rules::of(managed).with_something_due(tx, now).await?;
    let count = i64::try_from(rules.tenants.len()).unwrap_or(i64::MAX);
    // Everybody's share: where many have something due, nobody waits for the others.
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
            Ok((tenant, subscription(row)?))
        })
        .collect()
}

// What happens by itself changes nothing else.
static SAVE_ALL: Sql = Sql::new(
    "UPDATE subscriptions SET status = one.status, renews_at = one.renews_at, ends_at = one.ends_at,
        prepaid = one.prepaid, late_since = one.late_since, updated_at = one.updated_at
     FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::integer[],
        $7::timestamptz[], $8::timestamptz[])
        AS one (tenant_id, id, status, renews_at, ends_at, prepaid, late_since, updated_at)
     WHERE subscriptions.tenant_id = one.tenant_id AND subscriptions.id = one.id",
);

/// Writes what has become of subscriptions that were claimed.
pub(super) async fn save_all(
    tx: &Transaction<'_>,
    all: &[(TenantId, Subscription)],
) -> Result<(), Error> {
    let column = |of: fn(&Subscription) -> Option<Timestamp>| {
        all.iter().map(|(_, one)| of(one)).collect::<Vec<_>>()
    };
    let tenants: Vec<Uuid> = all.iter().map(|(tenant, _)| tenant.uuid()).collect();
    let ids: Vec<Uuid> = all.iter().map(|(_, one)| one.id.uuid()).collect();
    let statuses: Vec<&str> = all.iter().map(|(_, one)| one.status.as_str()).collect();
    let prepaid = all
        .iter()
        .map(|(_, one)| checked("prepaid", i32::try_from(one.prepaid).ok()))
        .collect::<Result<Vec<_>, _>>()?;
    let params: [&(dyn ToSql + Sync); 8] = [
        &tenants,
        &ids,
        &statuses,
        &column(|one| one.renews_at),
        &column(|one| one.ends_at),
        &prepaid,
        &column(|one| one.late_since),
        &column(|one| Some(one.updated_at)),
    ];
    tx.write(&SAVE_ALL, &params).await
}
