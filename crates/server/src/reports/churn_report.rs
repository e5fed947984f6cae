//! `GET /reports/churn`

use std::sync::Arc;

use axum::{extract::State, http::HeaderMap, response::Response};
use jiff::civil::Date;
use perennial_domain::{Currency, MovementKind};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ReportContext, definitions,
    levels::{IntervalLevels, RevenueLevels},
    report_query::{PlanReportParams, ReportQuery},
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

/// Churn over time.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChurnReport {
    #[serde(flatten)]
    frame: ReportFrame,
    /// One item for each currency; they are never added.
    pub currencies: Vec<CurrencyChurn>,
}

/// Churn in a currency.
#[derive(Debug, Serialize, ToSchema)]
pub struct CurrencyChurn {
    /// The currency (ISO 4217).
    #[schema(example = "USD")]
    pub currency: &'static str,
    /// The intervals, oldest first.
    pub intervals: Vec<ChurnInterval>,
}

/// Churn in an interval.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChurnInterval {
    /// The first day.
    #[serde(serialize_with = "day")]
    #[schema(value_type = String, format = Date, example = "2026-11-01")]
    pub from: Date,
    /// The last day.
    #[serde(serialize_with = "day")]
    #[schema(value_type = String, format = Date, example = "2026-11-30")]
    pub to: Date,
    /// Users who paid at the start.
    #[schema(example = 80)]
    pub opening_users: i64,
    /// Users who stopped paying.
    #[schema(example = 2)]
    pub churned_users: i64,
    /// MRR at the start.
    pub opening: RecurringAmount,
    /// Lost with users who stopped paying.
    pub churned: RecurringAmount,
    /// Lost with users who pay less.
    pub contraction: RecurringAmount,
    /// Added by users who pay more.
    pub expansion: RecurringAmount,
    /// Added by users who pay again.
    pub reactivated: RecurringAmount,
    /// Churned ÷ opening users; null if there were none.
    #[schema(required, example = "0.0250")]
    pub user_churn_rate: Option<String>,
    /// Churned and contracted ÷ opening MRR; null if there was none.
    #[schema(required, example = "0.0310")]
    pub gross_revenue_churn_rate: Option<String>,
    /// The same minus expanded and reactivated MRR; null if there was none.
    #[schema(required, example = "-0.0125")]
    pub net_revenue_churn_rate: Option<String>,
}

/// Report churn
///
/// The share of users and of MRR that was lost, by interval and currency. With `Accept: text/csv`, one row per currency and
/// interval.
#[utoipa::path(
    get,
    path = "/reports/churn",
    tag = "Reports",
    operation_id = "reportChurn",
    params(PlanReportParams),
    responses(
        (status = 200, description = "The report.", content(
            (ChurnReport = "application/json", example = json!({
                "as_of": "2026-11-15T09:30:00.000000Z",
                "from": "2026-11-01",
                "to": "2026-11-15",
                "interval": "month",
                "definitions": {"user_churn_rate": "Users who churned in the interval ÷ users who paid at its start."},
                "currencies": [{
                    "currency": "USD",
                    "intervals": [{
                        "from": "2026-11-01",
                        "to": "2026-11-15",
                        "opening_users": 80,
                        "churned_users": 2,
                        "opening": {"mrr": "1999.00", "arr": "23988.00"},
                        "churned": {"mrr": "-39.98", "arr": "-479.76"},
                        "contraction": {"mrr": "0.00", "arr": "0.00"},
                        "expansion": {"mrr": "19.99", "arr": "239.88"},
                        "reactivated": {"mrr": "0.00", "arr": "0.00"},
                        "user_churn_rate": "0.0250",
                        "gross_revenue_churn_rate": "0.0200",
                        "net_revenue_churn_rate": "0.0100"
                    }]
                }]
            })),
            (String = "text/csv", example = json!("currency,from,to,opening_users,…\r\nUSD,2026-11-01,2026-11-15,80,…\r\n")),
        )),
        CommonResponses,
    ),
)]
pub async fn read_churn(
    State(app): State<Arc<App>>,
    caller: Caller<ReportsRead>,
    headers: HeaderMap,
    params: QueryParams,
) -> Result<Response, Problem> {
    let mut context = ReportContext::for_caller(&app, &caller).await?;
    let query = ReportQuery::parse(params, context.today(), true)?;
    let report = churn_report(&mut context, &query).await?;
    Ok(respond(&headers, &report))
}

/// Returns the report of churn.
pub async fn churn_report(
    context: &mut ReportContext,
    query: &ReportQuery,
) -> Result<ChurnReport, Problem> {
    let frame = context.frame(query, definitions::CHURN);
    let sums = context.sums(query).await?;
    let movements = sums.movements().await?;
    let levels = RevenueLevels::new(query, &movements, &[], std::iter::empty());
    let currencies = levels.by_currency.iter().map(|(currency, levels)| {
        let intervals = levels.iter();
        let intervals = intervals.map(|interval| churn_interval(interval, *currency));
        CurrencyChurn {
            currency: currency.code(),
            intervals: intervals.collect(),
        }
    });
    Ok(ChurnReport {
        frame,
        currencies: currencies.collect(),
    })
}

fn churn_interval(interval: &IntervalLevels, currency: Currency) -> ChurnInterval {
    let value = |kind| interval.movement(kind).annual_value;
    let churned = value(MovementKind::Churned);
    let churned_users = -interval.movement(MovementKind::Churned).users;
    let contraction = value(MovementKind::Contraction);
    let expansion = value(MovementKind::Expansion);
    let reactivated = value(MovementKind::Reactivated);
    let opening = interval.opening.annual_value;
    let gross = -(churned + contraction);
    let users = interval.opening.users;
    let amount = |value| RecurringAmount::new(value, currency);
    ChurnInterval {
        from: interval.from,
        to: interval.to,
        opening_users: users,
        churned_users,
        opening: amount(opening),
        churned: amount(churned),
        contraction: amount(contraction),
        expansion: amount(expansion),
        reactivated: amount(reactivated),
        user_churn_rate: rate(i128::from(churned_users), i128::from(users)),
        gross_revenue_churn_rate: rate(gross, opening),
        net_revenue_churn_rate: rate(gross - expansion - reactivated, opening),
    }
}

impl Tabular for ChurnReport {
    fn table(&self) -> ReportTable {
        let header = vec![
            "currency",
            "from",
            "to",
            "opening_users",
            "churned_users",
            "opening_mrr",
            "churned",
            "contraction",
            "expansion",
            "reactivated",
            "user_churn_rate",
            "gross_revenue_churn_rate",
            "net_revenue_churn_rate",
        ];
        let rows = self.currencies.iter().flat_map(|currency| {
            currency.intervals.iter().map(|interval| {
                let rate = |rate: &Option<String>| rate.clone().unwrap_or_default();
                vec![
                    currency.currency.to_owned(),
                    interval.from.to_string(),
                    interval.to.to_string(),
                    interval.opening_users.to_string(),
                    interval.churned_users.to_string(),
                    interval.opening.mrr.clone(),
                    interval.churned.mrr.clone(),
                    interval.contraction.mrr.clone(),
                    interval.expansion.mrr.clone(),
                    interval.reactivated.mrr.clone(),
                    rate(&interval.user_churn_rate),
                    rate(&interval.gross_revenue_churn_rate),
                    rate(&interval.net_revenue_churn_rate),
                ]
            })
        });
        ReportTable {
            header,
            rows: rows.collect(),
        }
    }
}
