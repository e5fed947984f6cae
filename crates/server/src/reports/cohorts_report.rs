//! `GET /reports/cohorts`

use std::{collections::BTreeMap, sync::Arc};

use axum::{extract::State, http::HeaderMap, response::Response};
use jiff::{ToSpan, civil::Date};
use perennial_domain::Currency;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ReportContext,
    cohort_sums_sql::CohortSum,
    definitions,
    report_query::{ReportParams, ReportQuery},
    report_view::{RecurringAmount, ReportFrame, ReportTable, Tabular, day, rate, respond},
};
use crate::{
    app::App,
    auth::{Caller, ReportsRead},
    http::{
        problem::{CommonResponses, Problem},
        query::QueryParams,
    },
};

/// How long users stay, by the month in which they first paid.
#[derive(Debug, Serialize, ToSchema)]
pub struct CohortsReport {
    #[serde(flatten)]
    frame: ReportFrame,
    /// The cohorts that began in the period, oldest first.
    pub cohorts: Vec<CohortView>,
}

/// Users who first paid in a month.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Cohort)]
pub struct CohortView {
    /// The currency (ISO 4217).
    #[schema(example = "USD")]
    currency: &'static str,
    /// The first day of the month.
    #[serde(serialize_with = "day")]
    #[schema(value_type = String, format = Date, example = "2026-06-01")]
    month: Date,
    /// The number of users.
    #[schema(example = 50)]
    joined: i64,
    /// The months from the first one on.
    months: Vec<CohortMonth>,
}

/// A cohort at the end of a month, or of the last day of the report.
#[derive(Debug, Serialize, ToSchema)]
pub struct CohortMonth {
    /// The first day of the month.
    #[serde(serialize_with = "day")]
    #[schema(value_type = String, format = Date, example = "2026-11-01")]
    month: Date,
    /// Users of the cohort who pay.
    #[schema(example = 41)]
    users: i64,
    #[serde(flatten)]
    amount: RecurringAmount,
    /// Users ÷ joined; null if the cohort is empty.
    #[schema(required, example = "0.8200")]
    user_retention: Option<String>,
    /// MRR ÷ MRR at the end of the first month; null if that is zero.
    #[schema(required, example = "1.0400")]
    revenue_retention: Option<String>,
}

/// Report cohorts
///
/// Users by the month in which they first paid, and how many of them and how much of their MRR is left in each month since.
/// With `Accept: text/csv`, one row per currency, cohort and month.
#[utoipa::path(
    get,
    path = "/reports/cohorts",
    tag = "Reports",
    operation_id = "reportCohorts",
    params(ReportParams),
    responses(
        (status = 200, description = "The report.", content(
            (CohortsReport = "application/json", example = json!({
                "as_of": "2026-11-15T09:30:00.000000Z",
                "from": "2026-11-01",
                "to": "2026-11-15",
                "interval": "month",
                "definitions": {"joined": "The number of users in the cohort."},
                "cohorts": [{
                    "currency": "USD",
                    "month": "2026-11-01",
                    "joined": 50,
                    "months": [{
                        "month": "2026-11-01", "users": 49, "mrr": "979.51", "arr": "11754.12",
                        "user_retention": "0.9800", "revenue_retention": "1.0000"
                    }]
                }]
            })),
            (String = "text/csv", example = json!("currency,cohort,joined,…\r\nUSD,2026-11-01,50,…\r\n")),
        )),
        CommonResponses,
    ),
)]
pub async fn read_cohorts(
    State(app): State<Arc<App>>,
    caller: Caller<ReportsRead>,
    headers: HeaderMap,
    params: QueryParams,
) -> Result<Response, Problem> {
    let mut context = ReportContext::for_caller(&app, &caller).await?;
    let query = ReportQuery::parse(params, context.today(), false)?;
    let report = cohorts_report(&mut context, &query).await?;
    Ok(respond(&headers, &report))
}

/// Returns the report of cohorts.
pub async fn cohorts_report(
    context: &mut ReportContext,
    query: &ReportQuery,
) -> Result<CohortsReport, Problem> {
    let frame = context.frame(query, definitions::COHORTS);
    let sums = context.sums(query).await?.cohorts().await?;
    let mut by_cohort: BTreeMap<(Currency, Date), Vec<&CohortSum>> = BTreeMap::new();
    for sum in &sums {
        let key = (sum.currency, sum.cohort);
        by_cohort.entry(key).or_default().push(sum);
    }
    let cohorts = by_cohort.into_iter();
    let cohorts = cohorts.map(|(key, sums)| cohort_view(key, &sums, query.to));
    Ok(CohortsReport {
        frame,
        cohorts: cohorts.filter(|cohort| cohort.joined != 0).collect(),
    })
}

fn cohort_view((currency, cohort): (Currency, Date), sums: &[&CohortSum], to: Date) -> CohortView {
    let joined: i64 = sums.iter().map(|sum| sum.joined).sum();
    let (mut users, mut value) = (0, 0);
    let mut first_value = None;
    let mut months = Vec::new();
    let mut month = cohort;
    while month <= to {
        for sum in sums.iter().filter(|sum| sum.month == month) {
            users += sum.users;
            value += sum.annual_value;
        }
        let first = *first_value.get_or_insert(value);
        months.push(CohortMonth {
            month,
            users,
            amount: RecurringAmount::new(value, currency),
            user_retention: rate(i128::from(users), i128::from(joined)),
            revenue_retention: rate(value, first),
        });
        let next = month.saturating_add(1.month());
        if next <= month {
            break;
        }
        month = next;
    }
    CohortView {
        currency: currency.code(),
        month: cohort,
        joined,
        months,
    }
}

impl Tabular for CohortsReport {
    fn table(&self) -> ReportTable {
        let rows = self.cohorts.iter().flat_map(|cohort| {
            cohort.months.iter().map(|month| {
                vec![
                    cohort.currency.to_owned(),
                    cohort.month.to_string(),
                    cohort.joined.to_string(),
                    month.month.to_string(),
                    month.users.to_string(),
                    month.amount.mrr.clone(),
                    month.user_retention.clone().unwrap_or_default(),
                    month.revenue_retention.clone().unwrap_or_default(),
                ]
            })
        });
        ReportTable {
            header: vec![
                "currency",
                "cohort",
                "joined",
                "month",
                "users",
                "mrr",
                "user_retention",
                "revenue_retention",
            ],
            rows: rows.collect(),
        }
    }
}
