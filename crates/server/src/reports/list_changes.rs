//! `GET /reports/changes`
//!
//! The changes come from the journal, by the same function that computes the sums, so they add up to the figures of the
//! reports.

use std::{collections::BTreeMap, str::FromStr, sync::Arc};

use axum::extract::State;
use jiff::{SignedDuration, Timestamp, ToSpan, civil::Date, tz::TimeZone};
use perennial_domain::{
    Contribution, Currency, Id, MovementKind, OutcomeKind, RecordedState, Rule, Segment, TenantId,
    UserId, ValidationError,
};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    ReportContext,
    journal_sql::{self, ChangeTime},
    report_query::{ChangeParams, DayParam, ReportQuery, SumsFilter},
    report_view::{RecurringAmount, day},
};
use crate::{
    app::App,
    auth::{Caller, ReportsRead},
    db::{Error, PooledConnection},
    http::{
        pagination::{Page, PageRequest, SortKey},
        problem::{CommonResponses, Problem},
        query::QueryParams,
        response::display,
        schema::named,
    },
};

/// How many states are read at a time.
const CHUNK: i64 = 500;
/// The most states that a request reads. A page can then have fewer changes than allowed, and even none.
const MAX_STATES: usize = 10_000;

/// What the changes of a list are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ChangeKind {
    Movement(MovementKind),
    Outcome(OutcomeKind),
}

impl FromStr for ChangeKind {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        let movement = text.parse().map(Self::Movement);
        let kind = movement.or_else(|_| text.parse().map(Self::Outcome));
        kind.map_err(|_: ValidationError| {
            let names: Vec<_> = named::change_kinds().collect();
            let names = names.join(", ");
            ValidationError::new(Rule::UnknownValue, format!("must be one of {names}"))
        })
    }
}

/// A change of a user that a report counts.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReportChange {
    /// The day, in UTC.
    #[serde(serialize_with = "day")]
    #[schema(value_type = String, format = Date, example = "2026-11-15")]
    day: Date,
    /// The user.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5")]
    user_id: UserId,
    /// The currency (ISO 4217).
    #[schema(example = "USD")]
    currency: &'static str,
    /// What the change is: a movement of revenue, or what happened to a trial or a late payment.
    #[schema(example = "churned")]
    kind: &'static str,
    #[serde(flatten)]
    amount: RecurringAmount,
    /// How many more subscriptions the figure counts, negative if fewer.
    #[schema(example = -1)]
    subscriptions: i64,
}

/// Where a page ends: a state, and how many of the changes of its user and day were returned.
#[derive(Debug, Clone, Copy)]
struct ChangeKey {
    time: ChangeTime,
    returned: usize,
}

impl SortKey for ChangeKey {
    fn encode(&self) -> String {
        let (at, user) = self.time;
        format!("{at} {} {}", user.uuid(), self.returned)
    }

    fn decode(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let at = parts.next()?.parse().ok()?;
        let user: Uuid = parts.next()?.parse().ok()?;
        let returned = parts.next()?.parse().ok()?;
        Some(Self {
            time: (at, UserId::new(user)),
            returned,
        })
    }
}

/// List the changes behind a report
///
/// Each user's change that a figure counts, the newest day first: filter by `kind` and the parameters of the report. All
/// currencies, unless one is chosen. A page can be empty although there are more.
#[utoipa::path(
    get,
    path = "/reports/changes",
    tag = "Reports",
    operation_id = "listReportChanges",
    params(ChangeParams),
    responses(
        (status = 200, description = "A page of changes.", body = Page<ReportChange>),
        CommonResponses,
    ),
)]
pub async fn list_changes(
    State(app): State<Arc<App>>,
    caller: Caller<ReportsRead>,
    mut params: QueryParams,
) -> Result<Page<ReportChange>, Problem> {
    let mut context = ReportContext::for_caller(&app, &caller).await?;
    let request = PageRequest::parse_unsorted(&mut params, ());
    let kinds: Option<Vec<ChangeKind>> = params.any_of("kind");
    let started: Option<DayParam> = params.value("started_month");
    let query = ReportQuery::parse(params, context.today(), true)?;
    let tenant = context.tenant;
    let list = "GET /reports/changes";
    let page = request.verify(&app.cursor_key, &[&list, &tenant, &kinds, &started, &query])?;
    let filter = query.sums_filter(&context.connection, tenant).await?;
    let walk = Walk {
        tenant,
        from: start_of(query.from),
        until: end_of(query.to).min(context.now),
        kinds,
        started_month: started.map(|DayParam(day)| day.first_of_month()),
        filter,
    };
    let limit = page.limit();
    let (changes, next) = walk
        .page(&mut context.connection, page.after, limit)
        .await?;
    Ok(page.finish_at(changes, next))
}

fn start_of(day: Date) -> Timestamp {
    let midnight = day.to_zoned(TimeZone::UTC);
    midnight.map_or(Timestamp::MAX, |midnight| midnight.timestamp())
}

/// Returns the last microsecond of a day.
fn end_of(day: Date) -> Timestamp {
    let next = start_of(day.saturating_add(1.day()));
    next - SignedDuration::from_micros(1)
}

/// The changes of a list.
struct Walk {
    tenant: TenantId,
    from: Timestamp,
    until: Timestamp,
    kinds: Option<Vec<ChangeKind>>,
    /// Only outcomes of trials and late payments that began in this month.
    started_month: Option<Date>,
    filter: SumsFilter,
}

impl Walk {
    /// Returns up to `limit` changes, and where the next page starts.
    async fn page(
        &self,
        connection: &mut PooledConnection,
        after: Option<ChangeKey>,
        limit: usize,
    ) -> Result<(Vec<ReportChange>, Option<ChangeKey>), Error> {
        let mut position = after.unwrap_or(ChangeKey {
            time: (self.until, UserId::new(Uuid::max())),
            returned: 0,
        });
        let mut changes = Vec::new();
        let mut read = 0;
        let tx = connection.begin();
        loop {
            let range = (self.from, position.time);
            let times = journal_sql::change_times(&tx, self.tenant, range, CHUNK).await?;
            let mut users: Vec<_> = times.iter().map(|(_, user)| (self.tenant, *user)).collect();
            users.sort_unstable();
            users.dedup();
            let states = journal_sql::states_of_users(&tx, &users).await?;
            for time in &times {
                let (_, user) = *time;
                let returned = if *time == position.time {
                    position.returned
                } else {
                    0
                };
                let states = states.get(&(self.tenant, user));
                let states = states.map_or(&[][..], Vec::as_slice);
                let of_day = self.changes_at(*time, states);
                let left = limit - changes.len();
                let rest = of_day.len().saturating_sub(returned);
                changes.extend(of_day.into_iter().skip(returned).take(left));
                position = ChangeKey {
                    time: *time,
                    returned: returned + rest.min(left),
                };
                if rest > left {
                    return Ok((changes, Some(position)));
                }
            }
            read += times.len();
            if times.len() < usize::try_from(CHUNK).unwrap_or(usize::MAX) {
                return Ok((changes, None));
            }
            if changes.len() >= limit || read >= MAX_STATES {
                return Ok((changes, Some(position)));
            }
        }
    }

    /// Returns the changes of a user on the day of a state, if it is the day's last.
    fn changes_at(&self, (at, user): ChangeTime, states: &[RecordedState]) -> Vec<ReportChange> {
        let day_of = |at| TimeZone::UTC.to_datetime(at).date();
        let day = day_of(at);
        let is_later = |state: &RecordedState| state.at > at && day_of(state.at) == day;
        if states.iter().any(is_later) {
            return Vec::new();
        }
        let contribution = Contribution::of_user(states);
        let mut changes: BTreeMap<(Currency, &'static str), (i128, i64)> = BTreeMap::new();
        let mut add = |key: (Date, Currency, Option<Segment>), kind, value, subscriptions| {
            let (of_day, currency, segment) = key;
            if of_day == day && self.matches_segment(currency, segment) {
                let name = match kind {
                    ChangeKind::Movement(kind) => kind.as_str(),
                    ChangeKind::Outcome(kind) => kind.as_str(),
                };
                let sums = changes.entry((currency, name)).or_default();
                sums.0 += value;
                sums.1 += subscriptions;
            }
        };
        for (key, sums) in &contribution.movements {
            let kind = ChangeKind::Movement(key.kind);
            if self.matches(kind, None) {
                let of = (key.day, key.currency, key.segment);
                add(of, kind, sums.annual_value, sums.subscriptions);
            }
        }
        for (key, sums) in &contribution.outcomes {
            let kind = ChangeKind::Outcome(key.kind);
            if self.matches(kind, Some(key.started_month)) {
                let of = (key.day, key.currency, key.segment);
                add(of, kind, sums.annual_value, sums.subscriptions);
            }
        }
        let change =
            |((currency, kind), (value, subscriptions)): ((Currency, _), _)| ReportChange {
                day,
                user_id: user,
                currency: currency.code(),
                kind,
                amount: RecurringAmount::new(value, currency),
                subscriptions,
            };
        changes.into_iter().map(change).collect()
    }

    fn matches(&self, kind: ChangeKind, started_month: Option<Date>) -> bool {
        let is_kind = match &self.kinds {
            Some(kinds) => kinds.contains(&kind),
            None => matches!(kind, ChangeKind::Movement(_)),
        };
        is_kind && (self.started_month.is_none() || self.started_month == started_month)
    }

    fn matches_segment(&self, currency: Currency, segment: Option<Segment>) -> bool {
        self.filter.contains(segment) && self.filter.currency.is_none_or(|only| only == currency)
    }
}
