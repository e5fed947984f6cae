//! SQL of the figures in reports: reads the sums of a tenant, grouped by interval.
//!
//! Sums before the first day are grouped as one: they are what the first interval starts with.

use jiff::civil::Date;
use perennial_domain::{
    BillingCycle, Currency, Id, MovementKind, OutcomeKind, PaymentTotalKind, PlanId, RevenueBasis,
    RevenueStatus, Slug, TenantId,
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::report_query::{ReportQuery, SumsFilter};
use crate::db::{Error, PooledConnection, RowReader, Sql};

/// The interval of a sum: `None` before the first day.
pub(super) type Bucket = Option<Date>;

/// Selects the interval and the currency. The start of an interval may be before the first day. Parameters: tenant,
/// generation, first day, last day, interval, currency.
macro_rules! grouped {
    ($columns:literal, $table:literal, $conditions:literal, $groups:literal) => {
        concat!(
            "SELECT CASE WHEN day >= $3 THEN date_trunc($5, day::timestamp)::date END AS bucket, currency, ",
            $columns,
            " FROM ",
            $table,
            " WHERE tenant_id = $1 AND generation = $2 AND day <= $4 AND ($6::text IS NULL OR currency = $6) ",
            $conditions,
            " GROUP BY bucket, currency",
            $groups
        )
    };
}

/// The condition for the sums of all plans, or of those with an id in `$7` and the billing cycle `$8`.
macro_rules! by_segment {
    ($columns:literal, $table:literal, $groups:literal) => {
        [
            Sql::new(grouped!(
                $columns,
                $table,
                "AND plan_id = '00000000-0000-0000-0000-000000000000' AND billing_cycle = ''
                 AND $7::uuid[] IS NULL AND $8::text IS NULL",
                $groups
            )),
            Sql::new(grouped!(
                $columns,
                $table,
                "AND plan_id <> '00000000-0000-0000-0000-000000000000'
                 AND ($7::uuid[] IS NULL OR plan_id = ANY ($7)) AND ($8::text IS NULL OR billing_cycle = $8)",
                $groups
            )),
        ]
    };
}

static MOVEMENTS: [Sql; 2] = by_segment!(
    "kind, sum(users)::bigint AS users, sum(changes)::bigint AS changes, sum(subscriptions)::bigint AS subscriptions,
     sum(arr_minor)::text AS arr_minor",
    "revenue_daily",
    ", kind"
);

static STATUSES: [Sql; 2] = by_segment!(
    "status, basis, suspended, sum(subscriptions)::bigint AS subscriptions, sum(arr_minor)::text AS arr_minor",
    "revenue_status_daily",
    ", status, basis, suspended"
);

static OUTCOMES: [Sql; 2] = by_segment!(
    "started_month, kind, sum(subscriptions)::bigint AS subscriptions, sum(arr_minor)::text AS arr_minor",
    "revenue_outcomes",
    ", started_month, kind"
);

static PAYMENTS: Sql = Sql::new(grouped!(
    "kind, sum(payments)::bigint AS payments, sum(amount_minor)::text AS amount_minor",
    "payments_daily",
    "AND day >= $3",
    ", kind"
));

/// The sums of a tenant's reports that a query reads.
pub(super) struct SumsReader<'a> {
    pub connection: &'a mut PooledConnection,
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

/// A sum of subscriptions with a status.
pub(super) struct StatusSum {
    pub bucket: Bucket,
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

/// A sum of payments.
pub(super) struct PaymentSum {
    pub bucket: Bucket,
    pub currency: Currency,
    pub kind: PaymentTotalKind,
    pub payments: i64,
    pub amount: i128,
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

/// A sum of a cohort.
pub(super) struct CohortSum {
    pub currency: Currency,
    pub cohort: Date,
    pub month: Date,
    pub joined: i64,
    pub users: i64,
    pub annual_value: i128,
}

impl SumsReader<'_> {
    /// Runs a statement for all plans, or the one for some plans.
    async fn by_segment(&mut self, [all, some]: [&'static Sql; 2]) -> Result<Vec<Row>, Error> {
        let SumsFilter {
            currency,
            plans,
            billing_cycle,
        } = &self.filter;
        let plans = plans
            .as_ref()
            .map(|plans| -> Vec<Uuid> { plans.iter().map(|plan| plan.uuid()).collect() });
        let cycle = billing_cycle.map(BillingCycle::as_str);
        let sql = if plans.is_none() && cycle.is_none() {
            all
        } else {
            some
        };
        let params: [&(dyn ToSql + Sync); 8] = [
            &self.tenant.uuid(),
            &self.generation,
            &self.query.from,
            &self.query.to,
            &self.query.interval.as_str(),
            &currency.map(Currency::code),
            &plans,
            &cycle,
        ];
        self.connection.query_custom_plan(sql, &params).await
    }

    pub async fn movements(&mut self) -> Result<Vec<MovementSum>, Error> {
        let [all, some] = &MOVEMENTS;
        let rows = self.by_segment([all, some]).await?;
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

    pub async fn statuses(&mut self) -> Result<Vec<StatusSum>, Error> {
        let [all, some] = &STATUSES;
        let rows = self.by_segment([all, some]).await?;
        let read = |row: &Row| {
            let row = RowReader::new(row);
            Ok(StatusSum {
                bucket: row.get("bucket")?,
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

    pub async fn outcomes(&mut self) -> Result<Vec<OutcomeSum>, Error> {
        let [all, some] = &OUTCOMES;
        let rows = self.by_segment([all, some]).await?;
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

    pub async fn payments(&mut self) -> Result<Vec<PaymentSum>, Error> {
        let params: [&(dyn ToSql + Sync); 6] = [
            &self.tenant.uuid(),
            &self.generation,
            &self.query.from,
            &self.query.to,
            &self.query.interval.as_str(),
            &self.filter.currency.map(Currency::code),
        ];
        let rows = self
            .connection
            .query_custom_plan(&PAYMENTS, &params)
            .await?;
        let read = |row: &Row| {
            let row = RowReader::new(row);
            Ok(PaymentSum {
                bucket: row.get("bucket")?,
                currency: row.parse("currency")?,
                kind: row.parse("kind")?,
                payments: row.get("payments")?,
                amount: row.parse("amount_minor")?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// Returns the level of each plan on the last day.
    pub async fn plans(&mut self) -> Result<Vec<PlanSum>, Error> {
        let params: [&(dyn ToSql + Sync); 5] = [
            &self.tenant.uuid(),
            &self.generation,
            &self.query.to,
            &self.filter.currency.map(Currency::code),
            &self.filter.billing_cycle.map(BillingCycle::as_str),
        ];
        let rows = self.connection.query_custom_plan(&PLANS, &params).await?;
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
        rows.iter().map(read).collect()
    }

    pub async fn cohorts(&mut self) -> Result<Vec<CohortSum>, Error> {
        let params: [&(dyn ToSql + Sync); 5] = [
            &self.tenant.uuid(),
            &self.generation,
            &self.query.from,
            &self.query.to,
            &self.filter.currency.map(Currency::code),
        ];
        let rows = self.connection.query_custom_plan(&COHORTS, &params).await?;
        let read = |row: &Row| {
            let row = RowReader::new(row);
            Ok(CohortSum {
                currency: row.parse("currency")?,
                cohort: row.get("cohort_month")?,
                month: row.get("month")?,
                joined: row.get("joined")?,
                users: row.get("users")?,
                annual_value: row.parse("arr_minor")?,
            })
        };
        rows.iter().map(read).collect()
    }
}

static PLANS: Sql = Sql::new(
    "SELECT sums.currency, plan_id, slug, users, subscriptions, arr_minor FROM (
        SELECT currency, plan_id, sum(users)::bigint AS users, sum(subscriptions)::bigint AS subscriptions,
            sum(arr_minor)::text AS arr_minor
        FROM revenue_daily
        WHERE tenant_id = $1 AND generation = $2 AND plan_id <> '00000000-0000-0000-0000-000000000000' AND day <= $3
          AND ($4::text IS NULL OR currency = $4) AND ($5::text IS NULL OR billing_cycle = $5)
        GROUP BY currency, plan_id) AS sums
     JOIN subscription_plans AS plan ON plan.tenant_id = $1 AND plan.id = plan_id
     WHERE subscriptions <> 0 OR arr_minor <> '0'
     ORDER BY sums.currency, slug, plan_id",
);

static COHORTS: Sql = Sql::new(
    "SELECT currency, cohort_month, month, joined, users, arr_minor::text FROM revenue_cohorts
     WHERE tenant_id = $1 AND generation = $2 AND cohort_month >= date_trunc('month', $3::date::timestamp)::date
       AND cohort_month <= $4 AND month <= $4 AND ($5::text IS NULL OR currency = $5)
     ORDER BY currency, cohort_month, month",
);

static PLANS_BY_SLUG: Sql =
    Sql::new("SELECT id FROM subscription_plans WHERE tenant_id = $1 AND lower(slug) = $2");

/// Returns the plans with a slug, also deleted ones.
pub(super) async fn plans_by_slug(
    connection: &PooledConnection,
    tenant: TenantId,
    slug: &Slug,
) -> Result<Vec<PlanId>, Error> {
    let slug = slug.as_str().to_ascii_lowercase();
    let params: [&(dyn ToSql + Sync); 2] = [&tenant.uuid(), &slug];
    let rows = connection.query(&PLANS_BY_SLUG, &params).await?;
    rows.iter()
        .map(|row| Ok(PlanId::new(row.try_get("id")?)))
        .collect()
}
