//! `GET /reports/revenue`

use std::{collections::BTreeMap, sync::Arc};

use axum::{extract::State, http::HeaderMap, response::Response};
use jiff::civil::Date;
use perennial_domain::{Currency, MovementKind, PlanId, RevenueBasis, RevenueStatus, Slug};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ReportContext, definitions,
    figures_sql::StatusSum,
    levels::{IntervalLevels, RevenueLevels, RevenueTotals},
    report_query::{PlanReportParams, ReportQuery},
    report_view::{RecurringAmount, ReportFrame, ReportTable, Tabular, day, respond},
};
use crate::{
    app::App,
    auth::{Caller, ReportsRead},
    http::{
        problem::{CommonResponses, Problem},
        query::QueryParams,
        response::display,
    },
};

/// Recurring revenue over time.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevenueReport {
    #[serde(flatten)]
    frame: ReportFrame,
    /// One item for each currency; they are never added.
    pub currencies: Vec<CurrencyRevenue>,
}

/// Recurring revenue in a currency.
#[derive(Debug, Serialize, ToSchema)]
pub struct CurrencyRevenue {
    /// The currency (ISO 4217).
    #[schema(example = "USD")]
    pub currency: &'static str,
    /// At the end of the last day.
    pub closing: RevenueLevel,
    /// Parts of `closing`.
    #[schema(example = json!({"past_due": {"subscriptions": 1, "mrr": "19.99", "arr": "239.88"}}))]
    includes: BTreeMap<&'static str, StatusFigures>,
    /// Subscriptions that are not part of it, by the reason: a status, or `free`, `lifetime`, `unknown_price`.
    #[schema(example = json!({"on_trial": {"subscriptions": 2, "mrr": "39.98", "arr": "479.76"}}))]
    pub not_counted: BTreeMap<&'static str, StatusFigures>,
    /// The plans on the last day.
    plans: Vec<PlanRevenue>,
    /// The intervals, oldest first.
    pub intervals: Vec<RevenueIntervalView>,
}

/// Recurring revenue at the end of a day.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevenueLevel {
    #[serde(flatten)]
    pub amount: RecurringAmount,
    /// MRR without cancelled subscriptions.
    #[schema(example = "1899.00")]
    pub committed_mrr: String,
    /// How many users pay.
    #[schema(example = 80)]
    pub users: i64,
    /// How many subscriptions count.
    #[schema(example = 100)]
    pub subscriptions: i64,
}

/// A number of subscriptions, and their amount.
#[derive(Debug, Serialize, ToSchema)]
pub struct StatusFigures {
    /// How many subscriptions.
    #[schema(example = 3)]
    pub subscriptions: i64,
    #[serde(flatten)]
    amount: RecurringAmount,
}

/// Recurring revenue of a plan.
#[derive(Debug, Serialize, ToSchema)]
pub struct PlanRevenue {
    /// The plan, which may be deleted.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "plan_0192f0c1a2b37c4d8e5f60718293a4b5")]
    subscription_plan_id: PlanId,
    /// The plan's slug.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "pro")]
    subscription_plan_slug: Slug,
    #[serde(flatten)]
    amount: RecurringAmount,
    /// How many users pay for it. A user with two billing cycles of a plan counts twice.
    #[schema(example = 80)]
    users: i64,
    /// How many subscriptions count.
    #[schema(example = 100)]
    subscriptions: i64,
}

/// Recurring revenue in an interval.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RevenueInterval)]
pub struct RevenueIntervalView {
    /// The first day.
    #[serde(serialize_with = "day")]
    #[schema(value_type = String, format = Date, example = "2026-11-01")]
    pub from: Date,
    /// The last day.
    #[serde(serialize_with = "day")]
    #[schema(value_type = String, format = Date, example = "2026-11-30")]
    pub to: Date,
    /// At the start of the first day.
    pub opening: RevenueLevel,
    /// What changed, by kind: `new`, `expansion`, `contraction`, `churned`, `reactivated`, `imported`, `correction` and
    /// `transferred`. Their sum is the difference of opening and closing.
    #[schema(example = json!({"new": {"mrr": "39.98", "arr": "479.76", "changes": 2}}))]
    pub movements: BTreeMap<&'static str, MovementFigures>,
    /// At the end of the last day.
    pub closing: RevenueLevel,
}

/// Movements of one kind.
#[derive(Debug, Serialize, ToSchema)]
pub struct MovementFigures {
    #[serde(flatten)]
    pub amount: RecurringAmount,
    /// How many users had such a movement, counted once per day.
    #[schema(example = 4)]
    changes: i64,
}

impl RevenueLevel {
    fn new(level: &RevenueTotals, currency: Currency) -> Self {
        let committed = RecurringAmount::new(level.committed, currency);
        Self {
            amount: RecurringAmount::new(level.annual_value, currency),
            committed_mrr: committed.mrr,
            users: level.users,
            subscriptions: level.subscriptions,
        }
    }
}

/// Report recurring revenue
///
/// MRR and its movements by interval, in each currency. With `Accept: text/csv`, one row per currency and interval. A
/// change is part of the report within seconds.
#[utoipa::path(
    get,
    path = "/reports/revenue",
    tag = "Reports",
    operation_id = "reportRevenue",
    params(PlanReportParams),
    responses(
        (status = 200, description = "The report.", content(
            (RevenueReport = "application/json", example = json!({
                "as_of": "2026-11-15T09:30:00.000000Z",
                "from": "2026-11-01",
                "to": "2026-11-15",
                "interval": "month",
                "definitions": {"new": "MRR of users who pay for the first time in this currency."},
                "currencies": [{
                    "currency": "USD",
                    "closing": {"mrr": "1999.00", "arr": "23988.00", "committed_mrr": "1979.01", "users": 80, "subscriptions": 100},
                    "includes": {"past_due": {"subscriptions": 1, "mrr": "19.99", "arr": "239.88"}},
                    "not_counted": {"on_trial": {"subscriptions": 2, "mrr": "39.98", "arr": "479.76"}},
                    "plans": [{
                        "subscription_plan_id": "plan_0192f0c1a2b37c4d8e5f60718293a4b5",
                        "subscription_plan_slug": "pro",
                        "mrr": "1999.00", "arr": "23988.00", "users": 80, "subscriptions": 100
                    }],
                    "intervals": [{
                        "from": "2026-11-01",
                        "to": "2026-11-15",
                        "opening": {"mrr": "1959.02", "arr": "23508.24", "committed_mrr": "1939.03", "users": 78, "subscriptions": 98},
                        "movements": {"new": {"mrr": "39.98", "arr": "479.76", "changes": 2}},
                        "closing": {"mrr": "1999.00", "arr": "23988.00", "committed_mrr": "1979.01", "users": 80, "subscriptions": 100}
                    }]
                }]
            })),
            (String = "text/csv", example = json!("currency,from,to,opening_mrr,…\r\nUSD,2026-11-01,2026-11-15,1959.02,…\r\n")),
        )),
        CommonResponses,
    ),
)]
pub async fn read_revenue(
    State(app): State<Arc<App>>,
    caller: Caller<ReportsRead>,
    headers: HeaderMap,
    params: QueryParams,
) -> Result<Response, Problem> {
    let mut context = ReportContext::for_caller(&app, &caller).await?;
    let query = ReportQuery::parse(params, context.today(), true)?;
    let report = revenue_report(&mut context, &query).await?;
    Ok(respond(&headers, &report))
}

/// Returns the report of recurring revenue.
pub async fn revenue_report(
    context: &mut ReportContext,
    query: &ReportQuery,
) -> Result<RevenueReport, Problem> {
    let frame = context.frame(query, definitions::REVENUE);
    let sums = context.sums(query).await?;
    let movements = sums.movements().await?;
    let cancelled = sums.cancelled().await?;
    let statuses = sums.statuses().await?;
    let plans = sums.plans().await?;
    let currencies = statuses.iter().map(|status| status.currency);
    let levels = RevenueLevels::new(query, &movements, &cancelled, currencies);
    let currencies = levels.by_currency.iter().map(|(currency, levels)| {
        let currency = *currency;
        let plans = plans
            .iter()
            .filter(|plan| plan.currency == currency)
            .map(|plan| PlanRevenue {
                subscription_plan_id: plan.plan,
                subscription_plan_slug: plan.slug,
                amount: RecurringAmount::new(plan.annual_value, currency),
                users: plan.users,
                subscriptions: plan.subscriptions,
            });
        let closing = levels.last().map(|last| last.closing).unwrap_or_default();
        let (includes, not_counted) = status_figures(&statuses, currency);
        CurrencyRevenue {
            currency: currency.code(),
            closing: RevenueLevel::new(&closing, currency),
            includes,
            not_counted,
            plans: plans.collect(),
            intervals: intervals(levels, currency),
        }
    });
    Ok(RevenueReport {
        frame,
        currencies: currencies.collect(),
    })
}

fn intervals(levels: &[IntervalLevels], currency: Currency) -> Vec<RevenueIntervalView> {
    let intervals = levels.iter().map(|interval| {
        let kinds = MovementKind::ALL.map(|kind| {
            let totals = interval.movement(kind);
            let figures = MovementFigures {
                amount: RecurringAmount::new(totals.annual_value, currency),
                changes: totals.changes,
            };
            (kind.as_str(), figures)
        });
        RevenueIntervalView {
            from: interval.from,
            to: interval.to,
            opening: RevenueLevel::new(&interval.opening, currency),
            movements: kinds.into_iter().collect(),
            closing: RevenueLevel::new(&interval.closing, currency),
        }
    });
    intervals.collect()
}

type Figures = BTreeMap<&'static str, StatusFigures>;

/// Returns the parts of recurring revenue that deserve attention, and what is not part of it.
fn status_figures(statuses: &[StatusSum], currency: Currency) -> (Figures, Figures) {
    let mut includes: BTreeMap<&str, (i64, i128)> = BTreeMap::new();
    let mut not_counted: BTreeMap<&str, (i64, i128)> = BTreeMap::new();
    let add = |to: &mut BTreeMap<&'static str, (i64, i128)>, name, sum: &StatusSum| {
        let (subscriptions, value) = to.entry(name).or_default();
        *subscriptions += sum.subscriptions;
        *value += sum.annual_value;
    };
    for sum in statuses.iter().filter(|sum| sum.currency == currency) {
        if sum.basis == RevenueBasis::Recurring && sum.status.is_counted() {
            if sum.status != RevenueStatus::Active {
                add(&mut includes, sum.status.as_str(), sum);
            }
            if sum.suspended {
                add(&mut includes, "suspended", sum);
            }
            continue;
        }
        let reason = match (sum.status, sum.basis) {
            (RevenueStatus::Expired | RevenueStatus::Deleted, _) => continue,
            (_, RevenueBasis::Trial) => RevenueStatus::OnTrial.as_str(),
            (status, RevenueBasis::Recurring) => status.as_str(),
            (_, basis) => basis.as_str(),
        };
        add(&mut not_counted, reason, sum);
    }
    let figures = |sums: BTreeMap<&'static str, (i64, i128)>| {
        let sums = sums.into_iter().filter(|(_, (count, _))| *count != 0);
        sums.map(|(name, (subscriptions, value))| {
            let amount = RecurringAmount::new(value, currency);
            let figures = StatusFigures {
                subscriptions,
                amount,
            };
            (name, figures)
        })
        .collect()
    };
    (figures(includes), figures(not_counted))
}

impl Tabular for RevenueReport {
    fn table(&self) -> ReportTable {
        let mut header = vec!["currency", "from", "to", "opening_mrr"];
        header.extend(MovementKind::ALL.map(MovementKind::as_str));
        header.extend([
            "closing_mrr",
            "closing_arr",
            "committed_mrr",
            "users",
            "subscriptions",
        ]);
        let mut rows = Vec::new();
        for currency in &self.currencies {
            for interval in &currency.intervals {
                let mut row = vec![
                    currency.currency.to_owned(),
                    interval.from.to_string(),
                    interval.to.to_string(),
                    interval.opening.amount.mrr.clone(),
                ];
                row.extend(MovementKind::ALL.map(|kind| {
                    let figures = interval.movements.get(kind.as_str());
                    figures
                        .map(|figures| figures.amount.mrr.clone())
                        .unwrap_or_default()
                }));
                row.extend([
                    interval.closing.amount.mrr.clone(),
                    interval.closing.amount.arr.clone(),
                    interval.closing.committed_mrr.clone(),
                    interval.closing.users.to_string(),
                    interval.closing.subscriptions.to_string(),
                ]);
                rows.push(row);
            }
        }
        ReportTable { header, rows }
    }
}
