//! SQL of the sums: adds contributions to the tables `revenue_movements`, `revenue_statuses`,
//! `revenue_outcomes`, `revenue_cohorts` and `payments_daily`.

use std::collections::BTreeMap;

use jiff::civil::Date;
use perennial_domain::{Contribution, Currency, Id, PaymentTotalKind, Segment, TenantId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::db::{Error, Sql, Transaction};

/// The sums that a transaction writes to: a tenant's reports of one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    pub tenant: TenantId,
    pub generation: i32,
}

/// The sums of payments, by day, currency and kind: their number and amount.
pub(super) type PaymentSums = BTreeMap<(Date, Currency, PaymentTotalKind), (i64, i128)>;

/// Returns the plan and the billing cycle as stored. All plans together have the nil id and no cycle.
pub(super) fn segment_columns(segment: Option<Segment>) -> (Uuid, &'static str) {
    match segment {
        Some((plan, cycle)) => (plan.uuid(), cycle.as_str()),
        None => (Uuid::nil(), ""),
    }
}

/// The columns that every row of a table starts with.
#[derive(Default)]
struct SegmentColumns {
    plans: Vec<Uuid>,
    cycles: Vec<&'static str>,
    currencies: Vec<&'static str>,
    days: Vec<Date>,
}

impl SegmentColumns {
    fn push(&mut self, segment: Option<Segment>, currency: Currency, day: Date) {
        let (plan, cycle) = segment_columns(segment);
        self.plans.push(plan);
        self.cycles.push(cycle);
        self.currencies.push(currency.code());
        self.days.push(day);
    }
}

/// Adds rows to a table, to the sums of their days and of their months. A span is what `date_trunc` calls its field.
macro_rules! add_spans {
    ($table:literal, $keys:literal, $columns:literal, $sums:literal, $rows:literal, $update:literal) => {
        Sql::new(concat!(
            "INSERT INTO ", $table, " AS sums (tenant_id, generation, span, plan_id, billing_cycle, day, currency, ", $keys, ", ",
            $columns, ")
             SELECT $1, $2, span, plan_id, billing_cycle, date_trunc(span, day::timestamp)::date AS first_day, currency, ", $keys,
            ", ", $sums, "
             FROM unnest($3::uuid[], $4::text[], $5::text[], $6::date[], ", $rows, ") AS new (plan_id, billing_cycle, currency, day, ",
            $keys, ", ", $columns, "), unnest(ARRAY['day', 'month']) AS span
             GROUP BY span, plan_id, billing_cycle, first_day, currency, ", $keys, "
             ON CONFLICT (tenant_id, generation, span, plan_id, billing_cycle, day, currency, ", $keys, ") DO UPDATE SET ", $update
        ))
    };
}

static ADD_MOVEMENTS: Sql = add_spans!(
    "revenue_movements",
    "kind",
    "users, changes, subscriptions, arr_minor",
    "sum(users)::bigint, sum(changes)::bigint, sum(subscriptions)::bigint, sum(arr_minor::numeric)",
    "$7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::text[]",
    "users = sums.users + excluded.users, changes = sums.changes + excluded.changes,
     subscriptions = sums.subscriptions + excluded.subscriptions, arr_minor = sums.arr_minor + excluded.arr_minor"
);

static ADD_STATUSES: Sql = add_spans!(
    "revenue_statuses",
    "status, basis, suspended",
    "subscriptions, arr_minor",
    "sum(subscriptions)::bigint, sum(arr_minor::numeric)",
    "$7::text[], $8::text[], $9::boolean[], $10::bigint[], $11::text[]",
    "subscriptions = sums.subscriptions + excluded.subscriptions, arr_minor = sums.arr_minor + excluded.arr_minor"
);

static ADD_OUTCOMES: Sql = add_spans!(
    "revenue_outcomes",
    "started_month, kind",
    "subscriptions, arr_minor",
    "sum(subscriptions)::bigint, sum(arr_minor::numeric)",
    "$7::date[], $8::text[], $9::bigint[], $10::text[]",
    "subscriptions = sums.subscriptions + excluded.subscriptions, arr_minor = sums.arr_minor + excluded.arr_minor"
);

static ADD_COHORTS: Sql = Sql::new(
    "INSERT INTO revenue_cohorts AS sums (tenant_id, generation, currency, cohort_month, month, joined, users, arr_minor)
     SELECT $1, $2, currency, cohort_month, month, joined, users, arr_minor::numeric
     FROM unnest($3::text[], $4::date[], $5::date[], $6::bigint[], $7::bigint[], $8::text[])
        AS new (currency, cohort_month, month, joined, users, arr_minor)
     ON CONFLICT (tenant_id, generation, currency, cohort_month, month) DO UPDATE SET
        joined = sums.joined + excluded.joined, users = sums.users + excluded.users,
        arr_minor = sums.arr_minor + excluded.arr_minor",
);

/// Adds a contribution to the sums. Waits for each statement, because their rows can be many megabytes.
pub(super) async fn add(
    tx: &Transaction<'_>,
    target: Target,
    contribution: &Contribution,
) -> Result<(), Error> {
    add_movements(tx, target, contribution).await?;
    add_statuses(tx, target, contribution).await?;
    add_outcomes(tx, target, contribution).await?;
    add_cohorts(tx, target, contribution).await
}

async fn add_movements(
    tx: &Transaction<'_>,
    target: Target,
    contribution: &Contribution,
) -> Result<(), Error> {
    if contribution.movements.is_empty() {
        return Ok(());
    }
    let mut rows = SegmentColumns::default();
    for key in contribution.movements.keys() {
        rows.push(key.segment, key.currency, key.day);
    }
    let keys = contribution.movements.keys();
    let kinds: Vec<&str> = keys.map(|key| key.kind.as_str()).collect();
    let sums = || contribution.movements.values();
    let values: Vec<String> = sums().map(|sums| sums.annual_value.to_string()).collect();
    let params: [&(dyn ToSql + Sync); 11] = [
        &target.tenant.uuid(),
        &target.generation,
        &rows.plans,
        &rows.cycles,
        &rows.currencies,
        &rows.days,
        &kinds,
        &sums().map(|sums| sums.users).collect::<Vec<i64>>(),
        &sums().map(|sums| sums.changes).collect::<Vec<i64>>(),
        &sums().map(|sums| sums.subscriptions).collect::<Vec<i64>>(),
        &values,
    ];
    tx.execute(&ADD_MOVEMENTS, &params).await?;
    Ok(())
}

async fn add_statuses(
    tx: &Transaction<'_>,
    target: Target,
    contribution: &Contribution,
) -> Result<(), Error> {
    if contribution.statuses.is_empty() {
        return Ok(());
    }
    let mut rows = SegmentColumns::default();
    for key in contribution.statuses.keys() {
        rows.push(key.segment, key.currency, key.day);
    }
    let keys = || contribution.statuses.keys();
    let sums = || contribution.statuses.values();
    let values: Vec<String> = sums().map(|sums| sums.annual_value.to_string()).collect();
    let params: [&(dyn ToSql + Sync); 11] = [
        &target.tenant.uuid(),
        &target.generation,
        &rows.plans,
        &rows.cycles,
        &rows.currencies,
        &rows.days,
        &keys().map(|key| key.status.as_str()).collect::<Vec<&str>>(),
        &keys().map(|key| key.basis.as_str()).collect::<Vec<&str>>(),
        &keys().map(|key| key.suspended).collect::<Vec<bool>>(),
        &sums().map(|sums| sums.subscriptions).collect::<Vec<i64>>(),
        &values,
    ];
    tx.execute(&ADD_STATUSES, &params).await?;
    Ok(())
}

async fn add_outcomes(
    tx: &Transaction<'_>,
    target: Target,
    contribution: &Contribution,
) -> Result<(), Error> {
    if contribution.outcomes.is_empty() {
        return Ok(());
    }
    let mut rows = SegmentColumns::default();
    for key in contribution.outcomes.keys() {
        rows.push(key.segment, key.currency, key.day);
    }
    let keys = || contribution.outcomes.keys();
    let sums = || contribution.outcomes.values();
    let values: Vec<String> = sums().map(|sums| sums.annual_value.to_string()).collect();
    let params: [&(dyn ToSql + Sync); 10] = [
        &target.tenant.uuid(),
        &target.generation,
        &rows.plans,
        &rows.cycles,
        &rows.currencies,
        &rows.days,
        &keys().map(|key| key.started_month).collect::<Vec<Date>>(),
        &keys().map(|key| key.kind.as_str()).collect::<Vec<&str>>(),
        &sums().map(|sums| sums.subscriptions).collect::<Vec<i64>>(),
        &values,
    ];
    tx.execute(&ADD_OUTCOMES, &params).await?;
    Ok(())
}

async fn add_cohorts(
    tx: &Transaction<'_>,
    target: Target,
    contribution: &Contribution,
) -> Result<(), Error> {
    if contribution.cohorts.is_empty() {
        return Ok(());
    }
    let keys = || contribution.cohorts.keys();
    let sums = || contribution.cohorts.values();
    let values: Vec<String> = sums().map(|sums| sums.annual_value.to_string()).collect();
    let params: [&(dyn ToSql + Sync); 8] = [
        &target.tenant.uuid(),
        &target.generation,
        &keys().map(|key| key.currency.code()).collect::<Vec<&str>>(),
        &keys().map(|key| key.cohort).collect::<Vec<Date>>(),
        &keys().map(|key| key.month).collect::<Vec<Date>>(),
        &sums().map(|sums| sums.joined).collect::<Vec<i64>>(),
        &sums().map(|sums| sums.users).collect::<Vec<i64>>(),
        &values,
    ];
    tx.execute(&ADD_COHORTS, &params).await?;
    Ok(())
}

static ADD_PAYMENTS: Sql = Sql::new(
    "INSERT INTO payments_daily AS sums (tenant_id, generation, currency, day, kind, payments, amount_minor)
     SELECT $1, $2, currency, day, kind, payments, amount_minor::numeric
     FROM unnest($3::text[], $4::date[], $5::text[], $6::bigint[], $7::text[])
        AS new (currency, day, kind, payments, amount_minor)
     ON CONFLICT (tenant_id, generation, currency, day, kind) DO UPDATE SET
        payments = sums.payments + excluded.payments, amount_minor = sums.amount_minor + excluded.amount_minor",
);

/// Adds sums of payments.
pub(super) async fn add_payments(
    tx: &Transaction<'_>,
    target: Target,
    sums: &PaymentSums,
) -> Result<(), Error> {
    if sums.is_empty() {
        return Ok(());
    }
    let keys = || sums.keys();
    let params: [&(dyn ToSql + Sync); 7] = [
        &target.tenant.uuid(),
        &target.generation,
        &keys()
            .map(|(_, currency, _)| currency.code())
            .collect::<Vec<&str>>(),
        &keys().map(|(day, ..)| *day).collect::<Vec<Date>>(),
        &keys()
            .map(|(.., kind)| kind.as_str())
            .collect::<Vec<&str>>(),
        &sums
            .values()
            .map(|(payments, _)| *payments)
            .collect::<Vec<i64>>(),
        &sums
            .values()
            .map(|(_, amount)| amount.to_string())
            .collect::<Vec<String>>(),
    ];
    tx.execute(&ADD_PAYMENTS, &params).await?;
    Ok(())
}

static DELETE_EARLIER: [&Sql; 5] = [
    &Sql::new("DELETE FROM revenue_movements WHERE tenant_id = $1 AND generation < $2"),
    &Sql::new("DELETE FROM revenue_statuses WHERE tenant_id = $1 AND generation < $2"),
    &Sql::new("DELETE FROM revenue_outcomes WHERE tenant_id = $1 AND generation < $2"),
    &Sql::new("DELETE FROM revenue_cohorts WHERE tenant_id = $1 AND generation < $2"),
    &Sql::new("DELETE FROM payments_daily WHERE tenant_id = $1 AND generation < $2"),
];

/// Deletes the sums of earlier generations.
pub(super) async fn delete_earlier(tx: &Transaction<'_>, target: Target) -> Result<(), Error> {
    for sql in DELETE_EARLIER {
        let params: [&(dyn ToSql + Sync); 2] = [&target.tenant.uuid(), &target.generation];
        tx.enqueue(sql, &params).await?;
    }
    Ok(())
}
