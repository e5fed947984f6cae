//! `GET /reports/trials`

use std::{collections::BTreeMap, sync::Arc};

use axum::{extract::State, http::HeaderMap, response::Response};
use jiff::civil::Date;
use perennial_domain::OutcomeKind;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ReportContext, definitions,
    figures_sql::OutcomeSum,
    report_query::{PlanReportParams, ReportQuery},
    report_view::{ReportFrame, ReportTable, Tabular, day, rate, respond},
};
use crate::{
    app::App,
    auth::{Caller, ReportsRead},
    http::{
        problem::{CommonResponses, Problem},
        query::QueryParams,
    },
};

/// Trials over time.
#[derive(Debug, Serialize, ToSchema)]
pub struct TrialsReport {
    #[serde(flatten)]
    frame: ReportFrame,
    /// The intervals, oldest first: trials by what happened in the interval.
    pub intervals: Vec<TrialInterval>,
    /// Trials by the month in which they began.
    pub cohorts: Vec<TrialCohort>,
}

/// Trials in an interval.
#[derive(Debug, Serialize, ToSchema)]
pub struct TrialInterval {
    /// The first day.
    #[serde(serialize_with = "day")]
    #[schema(value_type = String, format = Date, example = "2026-11-01")]
    pub from: Date,
    /// The last day.
    #[serde(serialize_with = "day")]
    #[schema(value_type = String, format = Date, example = "2026-11-30")]
    pub to: Date,
    #[serde(flatten)]
    pub outcomes: TrialOutcomes,
}

/// Trials that began in a month.
#[derive(Debug, Serialize, ToSchema)]
pub struct TrialCohort {
    /// The first day of the month.
    #[serde(serialize_with = "day")]
    #[schema(value_type = String, format = Date, example = "2026-11-01")]
    month: Date,
    #[serde(flatten)]
    outcomes: TrialOutcomes,
    /// Trials that still run or wait for a payment.
    #[schema(example = 7)]
    undecided: i64,
}

/// What happened to trials.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct TrialOutcomes {
    /// Trials that began.
    #[schema(example = 40)]
    pub started: i64,
    /// Trials that became active subscriptions.
    #[schema(example = 21)]
    pub converted: i64,
    /// Trials that ended without one.
    #[schema(example = 12)]
    pub lost: i64,
    /// Converted ÷ (converted + lost); null if no trial ended.
    #[schema(required, example = "0.6364")]
    pub conversion_rate: Option<String>,
}

impl TrialOutcomes {
    fn add(&mut self, sum: &OutcomeSum) {
        let count = sum.subscriptions;
        match sum.kind {
            OutcomeKind::TrialStarted => self.started += count,
            OutcomeKind::TrialConverted => self.converted += count,
            OutcomeKind::TrialLost => self.lost += count,
            OutcomeKind::LateStarted | OutcomeKind::LateRecovered | OutcomeKind::LateLost => {}
        }
    }

    fn with_rate(mut self) -> Self {
        let ended = i128::from(self.converted + self.lost);
        self.conversion_rate = rate(i128::from(self.converted), ended);
        self
    }
}

/// Report trials
///
/// Trials that began, converted and were lost, by interval and by the month in which they began. All currencies together.
/// With `Accept: text/csv`, one row per interval.
#[utoipa::path(
    get,
    path = "/reports/trials",
    tag = "Reports",
    operation_id = "reportTrials",
    params(PlanReportParams),
    responses(
        (status = 200, description = "The report.", content(
            (TrialsReport = "application/json", example = json!({
                "as_of": "2026-11-15T09:30:00.000000Z",
                "from": "2026-11-01",
                "to": "2026-11-15",
                "interval": "month",
                "definitions": {"started": "Trials that began in the interval."},
                "intervals": [{"from": "2026-11-01", "to": "2026-11-15", "started": 40, "converted": 21, "lost": 12, "conversion_rate": "0.6364"}],
                "cohorts": [{"month": "2026-11-01", "started": 40, "converted": 9, "lost": 4, "conversion_rate": "0.6923", "undecided": 27}]
            })),
            (String = "text/csv", example = json!("from,to,started,converted,lost,conversion_rate\r\n2026-11-01,2026-11-15,40,21,12,0.6364\r\n")),
        )),
        CommonResponses,
    ),
)]
pub async fn read_trials(
    State(app): State<Arc<App>>,
    caller: Caller<ReportsRead>,
    headers: HeaderMap,
    params: QueryParams,
) -> Result<Response, Problem> {
    let mut context = ReportContext::for_caller(&app, &caller).await?;
    let query = ReportQuery::parse(params, context.today(), true)?;
    let report = trials_report(&mut context, &query).await?;
    Ok(respond(&headers, &report))
}

/// Returns the report of trials.
pub async fn trials_report(
    context: &mut ReportContext,
    query: &ReportQuery,
) -> Result<TrialsReport, Problem> {
    let frame = context.frame(query, definitions::TRIALS);
    let outcomes = context.sums(query).await?.outcomes().await?;
    let mut by_interval: BTreeMap<Option<Date>, TrialOutcomes> = BTreeMap::new();
    let mut by_month: BTreeMap<Date, TrialOutcomes> = BTreeMap::new();
    for sum in &outcomes {
        let interval = query.interval_from(sum.bucket);
        by_interval.entry(interval).or_default().add(sum);
        if sum.started_month >= query.from.first_of_month() {
            by_month.entry(sum.started_month).or_default().add(sum);
        }
    }
    let intervals = query.buckets().into_iter().map(|(from, to)| TrialInterval {
        from,
        to,
        outcomes: by_interval
            .remove(&Some(from))
            .unwrap_or_default()
            .with_rate(),
    });
    let intervals = intervals.collect();
    let is_started = |(_, outcomes): &(Date, TrialOutcomes)| outcomes.started != 0;
    let cohorts = by_month.into_iter().filter(is_started);
    let cohorts = cohorts.map(|(month, outcomes)| TrialCohort {
        month,
        undecided: outcomes.started - outcomes.converted - outcomes.lost,
        outcomes: outcomes.with_rate(),
    });
    Ok(TrialsReport {
        frame,
        intervals,
        cohorts: cohorts.collect(),
    })
}

impl Tabular for TrialsReport {
    fn table(&self) -> ReportTable {
        let rows = self.intervals.iter().map(|interval| {
            let outcomes = &interval.outcomes;
            vec![
                interval.from.to_string(),
                interval.to.to_string(),
                outcomes.started.to_string(),
                outcomes.converted.to_string(),
                outcomes.lost.to_string(),
                outcomes.conversion_rate.clone().unwrap_or_default(),
            ]
        });
        ReportTable {
            header: vec![
                "from",
                "to",
                "started",
                "converted",
                "lost",
                "conversion_rate",
            ],
            rows: rows.collect(),
        }
    }
}
