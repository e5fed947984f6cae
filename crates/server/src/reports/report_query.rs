//! The parameters of reports, and their schemas in the OpenAPI document.

use jiff::{ToSpan, civil::Date};
use perennial_domain::{
    BillingCycle, Currency, Id, PlanId, Rule, Segment, Slug, TenantId, ValidationError, string_enum,
};
use serde_json::json;
use utoipa::{
    IntoParams,
    openapi::{
        KnownFormat, SchemaFormat,
        path::{Parameter, ParameterIn},
        schema::{Object, ObjectBuilder, Type},
    },
};
use uuid::Uuid;

use super::{figures_sql, sums_sql::segment_columns};
use crate::{
    db::PooledConnection,
    http::{
        filter_params::filter,
        openapi::CursorParams,
        problem::{Code, Problem, ProblemFieldError},
        query::QueryParams,
        schema::named,
    },
};

/// The most intervals that a report can have: three years of days.
pub(super) const MAX_INTERVALS: usize = 1_100;

string_enum! {
    /// The length of the intervals of a report.
    pub enum ReportInterval: "an interval" {
        /// A day, in UTC.
        Day = "day",
        /// A week from Monday to Sunday.
        Week = "week",
        /// A calendar month.
        Month = "month",
        /// A calendar quarter.
        Quarter = "quarter",
        /// A calendar year.
        Year = "year",
    }
}

impl ReportInterval {
    /// Returns the first day of the interval that contains `day`.
    pub(super) fn start(self, day: Date) -> Date {
        match self {
            Self::Day => day,
            Self::Week => {
                let since_monday = i64::from(day.weekday().to_monday_zero_offset());
                day.saturating_sub(since_monday.days())
            }
            Self::Month => day.first_of_month(),
            Self::Quarter => {
                let months = i64::from((day.month() - 1) % 3);
                day.first_of_month().saturating_sub(months.months())
            }
            Self::Year => day.first_of_year(),
        }
    }

    /// Returns the last day of the interval that starts with `start`.
    fn end(self, start: Date) -> Date {
        let next = match self {
            Self::Day => start.saturating_add(1.day()),
            Self::Week => start.saturating_add(1.week()),
            Self::Month => start.saturating_add(1.month()),
            Self::Quarter => start.saturating_add(3.months()),
            Self::Year => start.saturating_add(1.year()),
        };
        next.saturating_sub(1.day())
    }
}

/// A day in a query: `2026-11-15`.
#[derive(Debug, Clone, Copy)]
pub(super) struct DayParam(pub Date);

impl std::str::FromStr for DayParam {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        // The parser also accepts other notations.
        let is_plain = text.len() == 10;
        let day = text.parse().ok().filter(|_| is_plain);
        day.map(Self).ok_or_else(|| {
            let message = "must be a day such as 2026-11-15".to_owned();
            ValidationError::new(Rule::InvalidFormat, message)
        })
    }
}

/// What a report is about.
#[derive(Debug, Clone)]
pub struct ReportQuery {
    /// The first day.
    pub from: Date,
    /// The last day.
    pub to: Date,
    /// The length of the intervals.
    pub interval: ReportInterval,
    /// Only this currency.
    pub currency: Option<Currency>,
    /// Only plans with this slug.
    pub plan: Option<Slug>,
    /// Only subscriptions with this billing cycle.
    pub billing_cycle: Option<BillingCycle>,
}

impl ReportQuery {
    /// Creates the query of the last twelve months by month, as of `today`.
    pub fn last_year(today: Date) -> Self {
        let months_before = today.first_of_month().saturating_sub(11.months());
        Self {
            from: months_before,
            to: today,
            interval: ReportInterval::Month,
            currency: None,
            plan: None,
            billing_cycle: None,
        }
    }

    /// Parses the parameters of a request. `by_plan` says whether the report can be limited to a plan.
    pub(super) fn parse(
        mut params: QueryParams,
        today: Date,
        by_plan: bool,
    ) -> Result<Self, Problem> {
        let default = Self::last_year(today);
        let to = params.value("to").map_or(default.to, |DayParam(day)| day);
        let from = params.value("from").map(|DayParam(day)| day);
        let interval = params.value("interval").unwrap_or(default.interval);
        let mut query = Self {
            from: from.unwrap_or_else(|| Self::last_year(to).from),
            to,
            interval,
            currency: params.value("currency"),
            ..default
        };
        if by_plan {
            query.plan = params.value("plan");
            query.billing_cycle = params.value("billing_cycle");
        }
        if let Err(message) = query.check() {
            params.push_error("from", &message);
        }
        params.finish()?;
        Ok(query)
    }

    /// Returns why the period is not possible.
    pub fn check(&self) -> Result<(), String> {
        if self.from > self.to {
            return Err("cannot be after `to`".to_owned());
        }
        if self.buckets().len() > MAX_INTERVALS {
            return Err(format!(
                "the report would have more than {MAX_INTERVALS} intervals; choose a later day or a longer interval"
            ));
        }
        Ok(())
    }

    /// Returns the intervals from the first day to the last: their first and last days. The first and the last interval
    /// may be cut. At most one more than allowed.
    pub(super) fn buckets(&self) -> Vec<(Date, Date)> {
        let mut buckets = Vec::new();
        let mut start = self.interval.start(self.from);
        while start <= self.to && buckets.len() <= MAX_INTERVALS {
            let end = self.interval.end(start);
            buckets.push((start.max(self.from), end.min(self.to)));
            let next = end.saturating_add(1.day());
            if next <= start {
                break;
            }
            start = next;
        }
        buckets
    }

    /// Returns the first day of the interval whose calendar interval starts with `start`.
    pub(super) fn interval_from(&self, start: Option<Date>) -> Option<Date> {
        start.map(|start| start.max(self.from))
    }

    /// Returns which sums the report reads.
    pub(super) async fn sums_filter(
        &self,
        connection: &PooledConnection,
        tenant: TenantId,
    ) -> Result<SumsFilter, Problem> {
        let plans = figures_sql::plan_ids(connection, tenant, self.plan.as_ref()).await?;
        if let Some(slug) = self.plan.filter(|_| plans.is_empty()) {
            let message = format!("no plan has the slug \"{slug}\"");
            let error = ProblemFieldError::new("?plan".to_owned(), Code::InvalidParameter, message);
            return Err(Problem::parameters(vec![error]));
        }
        Ok(SumsFilter {
            currency: self.currency,
            is_of_all_plans: self.plan.is_none() && self.billing_cycle.is_none(),
            plans,
            billing_cycle: self.billing_cycle,
        })
    }
}

/// Which sums a report reads.
#[derive(Debug, Clone)]
pub(super) struct SumsFilter {
    pub currency: Option<Currency>,
    is_of_all_plans: bool,
    /// The plans of the tenant, or those with the slug.
    plans: Vec<PlanId>,
    billing_cycle: Option<BillingCycle>,
}

impl SumsFilter {
    /// Returns the plans and billing cycles of the sums, as stored.
    pub fn segments(&self) -> (Vec<Uuid>, Vec<&'static str>) {
        if self.is_of_all_plans {
            let (plan, cycle) = segment_columns(None);
            return (vec![plan], vec![cycle]);
        }
        self.plan_segments()
    }

    /// Returns whether the sums of a segment are read.
    pub fn contains(&self, segment: Option<Segment>) -> bool {
        match segment {
            None => self.is_of_all_plans,
            Some((plan, cycle)) => {
                !self.is_of_all_plans
                    && self.plans.contains(&plan)
                    && self.billing_cycle.is_none_or(|only| only == cycle)
            }
        }
    }

    /// Returns the plans and billing cycles of the sums that tell plans apart.
    pub fn plan_segments(&self) -> (Vec<Uuid>, Vec<&'static str>) {
        let plans = self.plans.iter().map(|plan| plan.uuid()).collect();
        let cycles = match self.billing_cycle {
            Some(cycle) => vec![cycle.as_str()],
            None => BillingCycle::ALL.map(BillingCycle::as_str).to_vec(),
        };
        (plans, cycles)
    }
}

fn day_param(name: &str, description: &str) -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Date)))
        .description(Some(description))
        .examples([json!("2026-11-15")])
        .build();
    filter(name, schema)
}

fn interval() -> Object {
    let names = ReportInterval::ALL.map(ReportInterval::as_str);
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(names))
        .description(Some(
            "The length of the intervals, in UTC. A week starts on Monday. Default: `month`.",
        ))
        .examples([json!("month")])
        .build()
}

/// Describes the parameters of all reports.
pub(super) struct ReportParams;

impl IntoParams for ReportParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let from =
            "The first day, in UTC. Default: the first day of the month eleven months before `to`.";
        let to = "The last day, in UTC. Default: today.";
        let currency = "Only this currency (ISO 4217). Default: each currency by itself.";
        vec![
            day_param("from", from),
            day_param("to", to),
            filter("interval", interval()),
            filter("currency", named::CURRENCY_CODE.reference(currency)),
        ]
    }
}

/// Describes the parameters of reports that can be limited to a plan.
pub(super) struct PlanReportParams;

impl IntoParams for PlanReportParams {
    fn into_params(place: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let mut params = ReportParams::into_params(place);
        let plan = "Only plans with this slug, also deleted ones.";
        let cycle = "Only subscriptions with this billing cycle.";
        params.push(filter("plan", named::SLUG.reference(plan)));
        params.push(filter(
            "billing_cycle",
            named::BILLING_CYCLE_INPUT.reference(cycle),
        ));
        params
    }
}

/// Describes the parameters of the list of changes.
pub(super) struct ChangeParams;

impl IntoParams for ChangeParams {
    fn into_params(place: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let mut params = PlanReportParams::into_params(&place);
        let kinds: Vec<_> = named::change_kinds().collect();
        let kinds = kinds.join("`, `");
        let kind = format!("Only changes of these kinds: `{kinds}`. Default: all movements.");
        let started =
            "Only what happened to trials and late payments that began in the month of this day.";
        params.push(filter("kind", named::CHANGE_KIND_LIST.reference(&kind)));
        params.push(day_param("started_month", started));
        params.extend(CursorParams::into_params(place));
        params
    }
}
