//! SQL of the figures in reports: reads the sums of a tenant, grouped by interval.
//!
//! Sums before the first day are grouped as one: they are what the first interval starts with.

use jiff::civil::Date;
use perennial_domain::{
    Currency, Id, MovementKind, OutcomeKind, PlanId, RevenueBasis, RevenueStatus, Slug, TenantId,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::{
    report_query::{ReportInterval, ReportQuery, SumsFilter},
    sum_spans::SumSpans,
};
use crate::db::{Error, PooledConnection, RowReader, Sql, Transaction};

/// The interval of a sum: `None` before the first day.
pub(super) type Bucket = Option<Date>;

/// Selects sums of plans and billing cycles: of months where possible, and of days. Parameters: tenant, generation, plans,
/// billing cycles, currency, last day, and the days of [`SumSpans`]; by interval also the first day and the interval. The
/// start of an interval may be before the first day.
macro_rules! sums {
    (by interval, $table:literal, $conditions:literal, $groups:literal, [$($column:literal as $type:literal),+]) => {
        IntervalSql {
            grouped: sums!(
                [
                    "CASE WHEN day >= $10 THEN date_trunc($11, day::timestamp)::date END AS bucket, ",
                    $groups, $(", sum(", $column, ")::", $type, " AS ", $column),+
                ],
                $table,
                $conditions,
                [" GROUP BY bucket, ", $groups]
            ),
            daily: sums!(
                [
                    "CASE WHEN day >= $10 THEN day END AS bucket, ",
                    $groups, $(", ", $column, "::", $type),+
                ],
                $table,
                $conditions,
                [""]
            ),
        }
    };
    ($columns:literal, $table:literal, $groups:literal) => {
        sums!([$columns], $table, "", [" GROUP BY ", $groups])
    };
    ([$($columns:tt)+], $table:literal, $conditions:literal, [$($groups:literal),+]) => {
        Sql::new(concat!(
            "SELECT ",
            $($columns)+,
            " FROM (SELECT * FROM ",
            $table,
            " WHERE tenant_id = $1 AND generation = $2 AND span = 'month' AND plan_id = ANY ($3) AND billing_cycle = ANY ($4)
                AND (day < $7 OR day >= $8 AND day < $9) ",
            $conditions,
            " UNION ALL SELECT * FROM ",
            $table,
            " WHERE tenant_id = $1 AND generation = $2 AND span = 'day' AND plan_id = ANY ($3) AND billing_cycle = ANY ($4)
                AND day >= $7 AND day <= $6 AND (day < $8 OR day >= $9) ",
            $conditions,
            ") AS sums WHERE ($5::text IS NULL OR currency = $5)",
            $($groups),+
        ))
    };
}

/// Selects sums by interval.
struct IntervalSql {
    grouped: Sql,
    /// The rows of each day as they are. For one plan and billing cycle, grouping them would only take time.
    daily: Sql,
}

static MOVEMENTS: IntervalSql = sums!(
    by interval,
    "revenue_movements",
    "",
    "currency, kind",
    ["users" as "bigint", "changes" as "bigint", "subscriptions" as "bigint", "arr_minor" as "text"]
);

static CANCELLED: IntervalSql = sums!(
    by interval,
    "revenue_statuses",
    "AND status = 'cancelled' AND basis = 'recurring'",
    "currency",
    ["arr_minor" as "text"]
);

static STATUSES: Sql = sums!(
    "currency, status, basis, suspended, sum(subscriptions)::bigint AS subscriptions, sum(arr_minor)::text AS arr_minor",
    "revenue_statuses",
    "currency, status, basis, suspended"
);

static OUTCOMES: IntervalSql = sums!(
    by interval,
    "revenue_outcomes",
    "",
    "currency, started_month, kind",
    ["subscriptions" as "bigint", "arr_minor" as "text"]
);

static PLANS: Sql = sums!(
    "currency, plan_id, (SELECT slug FROM subscription_plans AS plan WHERE plan.tenant_id = $1 AND plan.id = plan_id) AS slug,
     sum(users)::bigint AS users, sum(subscriptions)::bigint AS subscriptions, sum(arr_minor)::text AS arr_minor",
    "revenue_movements",
    "currency, plan_id"
);

/// The sums of a tenant's reports that a query reads, all as of the same instant.
pub(super) struct SumsReader<'a> {
    pub tx: Transaction<'a>,
    pub tenant: TenantId,
    pub generation: i32,
    pub query: &'a ReportQuery,
    pub filter: SumsFilter,
}

/// A sum of movements.
pub(super) struct MovementSum {
    pub bucket: Bucket,
    pub currency: Currency,
    pub kind: MovementKind,
    pub users: i64,
    pub changes: i64,
    pub subscriptions: i64,
    pub annual_value: i128,
}

/// A sum of subscriptions that end, because they are cancelled.
pub(super) struct CancelledSum {
    pub bucket: Bucket,
    pub currency: Currency,
    pub annual_value: i128,
}

/// A sum of subscriptions with a status, on the last day.
pub(super) struct StatusSum {
    pub currency: Currency,
    pub status: RevenueStatus,
    pub basis: RevenueBasis,
    pub suspended: bool,
    pub subscriptions: i64,
    pub annual_value: i128,
}

/// A sum of outcomes.
pub(super) struct OutcomeSum {
    pub bucket: Bucket,
    pub currency: Currency,
    pub started_month: Date,
    pub kind: OutcomeKind,
    pub subscriptions: i64,
    pub annual_value: i128,
}

/// A sum of a plan.
pub(super) struct PlanSum {
    pub currency: Currency,
    pub plan: PlanId,
    pub slug: Slug,
    pub users: i64,
    pub subscriptions: i64,
    pub annual_value: i128,
}

impl SumsReader<'_> {
    /// Reads sums with the interval that they belong to. An interval can have several.
    async fn by_interval(&self, sql: &'static IntervalSql) -> Result<Vec<Row>, Error> {
        let (plans, cycles) = self.filter.segments();
        let spans = SumSpans::of(self.query);
        let tenant = self.tenant.uuid();
        let currency = self.filter.currency.map(Currency::code);
        let interval = self.query.interval;
        let mut params: Vec<&(dyn ToSql + Sync)> = vec![
            &tenant,
            &self.generation,
            &plans,
            &cycles,
            &currency,
            &self.query.to,
            &spans.days_from,
            &spans.months_from,
            &spans.months_until,
            &self.query.from,
        ];
        let interval_name = interval.as_str();
        let is_one_segment = plans.len() * cycles.len() == 1;
        let sql = if interval == ReportInterval::Day && is_one_segment {
            &sql.daily
        } else {
            params.push(&interval_name);
            &sql.grouped
        };
        self.tx.query(sql, &params).await
    }

    /// Reads sums of all days up to the last.
    async fn on_last_day(
        &self,
        sql: &'static Sql,
        (plans, cycles): (Vec<Uuid>, Vec<&'static str>),
    ) -> Result<Vec<Row>, Error> {
        let spans = SumSpans::until(self.query.to);
        let params: [&(dyn ToSql + Sync); 9] = [
            &self.tenant.uuid(),
            &self.generation,
            &plans,
            &cycles,
            &self.filter.currency.map(Currency::code),
            &self.query.to,
            &spans.days_from,
            &spans.months_from,
            &spans.months_until,
        ];
        self.tx.query(sql, &params).await
    }

    pub async fn movements(&self) -> Result<Vec<MovementSum>, Error> {
        let rows = self.by_interval(&MOVEMENTS).await?;
        let read = |row: &Row| {
            let row = RowReader::new(row);
            Ok(MovementSum {
                bucket: row.get("bucket")?,
                currency: row.parse("currency")?,
                kind: row.parse("kind")?,
                users: row.get("users")?,
                changes: row.get("changes")?,
                subscriptions: row.get("subscriptions")?,
                annual_value: row.parse("arr_minor")?,
            })
        };
        rows.iter().map(read).collect()
    }

    pub async fn cancelled(&self) -> Result<Vec<CancelledSum>, Error> {
        let rows = self.by_interval(&CANCELLED).await?;
        let read = |row: &Row| {
            let row = RowReader::new(row);
            Ok(CancelledSum {
                bucket: row.get("bucket")?,
                currency: row.parse("currency")?,
                annual_value: row.parse("arr_minor")?,
            })
        };
        rows.iter().map(read).collect()
    }

    pub async fn statuses(&self) -> Result<Vec<StatusSum>, Error> {
        let segments = self.filter.segments();
        let rows = self.on_last_day(&STATUSES, segments).await?;
        let read = |row: &Row| {
            let row = RowReader::new(row);
            Ok(StatusSum {
                currency: row.parse("currency")?,
                status: row.parse("status")?,
                basis: row.parse("basis")?,
                suspended: row.get("suspended")?,
                subscriptions: row.get("subscriptions")?,
                annual_value: row.parse("arr_minor")?,
            })
        };
        rows.iter().map(read).collect()
    }

    pub async fn outcomes(&self) -> Result<Vec<OutcomeSum>, Error> {
        let rows = self.by_interval(&OUTCOMES).await?;
        let read = |row: &Row| {
            let row = RowReader::new(row);
            Ok(OutcomeSum {
                bucket: row.get("bucket")?,
                currency: row.parse("currency")?,
                started_month: row.get("started_month")?,
                kind: row.parse("kind")?,
                subscriptions: row.get("subscriptions")?,
                annual_value: row.parse("arr_minor")?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// Returns the level of each plan on the last day, by currency and slug.
    pub async fn plans(&self) -> Result<Vec<PlanSum>, Error> {
        let segments = self.filter.plan_segments();
        let rows = self.on_last_day(&PLANS, segments).await?;
        let read = |row: &Row| {
            let row = RowReader::new(row);
            Ok(PlanSum {
                currency: row.parse("currency")?,
                plan: PlanId::new(row.get("plan_id")?),
                slug: row.parse("slug")?,
                users: row.get("users")?,
                subscriptions: row.get("subscriptions")?,
                annual_value: row.parse("arr_minor")?,
            })
        };
        let mut plans = rows
            .iter()
            .map(read)
            .collect::<Result<Vec<PlanSum>, Error>>()?;
        plans.retain(|plan| plan.subscriptions != 0 || plan.annual_value != 0);
        plans.sort_by(|a, b| {
            let key = |plan: &PlanSum| (plan.currency, plan.slug, plan.plan);
            key(a).cmp(&key(b))
        });
        Ok(plans)
    }
}

static PLAN_IDS: Sql = Sql::new(
    "SELECT id FROM subscription_plans WHERE tenant_id = $1 AND ($2::text IS NULL OR lower(slug) = $2)",
);

/// Returns the plans of a tenant, or those with a slug. Also deleted ones.
pub(super) async fn plan_ids(
    connection: &PooledConnection,
    tenant: TenantId,
    slug: Option<&Slug>,
) -> Result<Vec<PlanId>, Error> {
    let slug = slug.map(|slug| slug.as_str().to_ascii_lowercase());
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &slug];
    let rows = connection.query(&PLAN_IDS, &params).await?;
    rows.iter()
        .map(|row| Ok(PlanId::new(row.try_get("id")?)))
        .collect()
}
