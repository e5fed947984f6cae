//! `GET /subscriptions`

use std::sync::Arc;

use axum::extract::State;
use jiff::{SignedDuration, Timestamp};
use perennial_domain::{Id, PlanId, Rfc3339Timestamp, Subscription, SubscriptionStatus, UserId};
use utoipa::{
    IntoParams,
    openapi::{Ref, schema::Object},
};

use super::{
    list_sql::{self, SubscriptionFilter, TimeRange},
    view::SubscriptionView,
};
use crate::{
    app::App,
    auth::{Caller, SubscriptionsRead},
    db::{AgeKey, AgeOrder},
    http::{
        openapi::{CreatedAtSortParam, CursorParams},
        pagination::{Page, PageRequest},
        problem::{CommonResponses, Problem},
        query::QueryParams,
        schema::{comma_separated, named::TIMESTAMP, pattern},
    },
};

/// Values of `sort`; the first is the default.
const ORDERS: [(&str, AgeOrder); 2] = [
    ("created_at", AgeOrder::OldestFirst),
    ("-created_at", AgeOrder::NewestFirst),
];

const USER_EXAMPLE: &str = "usr_0192f0c1a2b37c4d8e5f60718293a4b5";
const PLAN_EXAMPLE: &str = "plan_0192f0c1a2b37c4d8e5f60718293a4b5";

/// Filters. A comma separates several values of one filter, of which any may match.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `list` parses it")]
struct Filters {
    #[param(required = false, schema_with = user_ids)]
    user_id: (),
    #[param(required = false, schema_with = plan_ids)]
    subscription_plan_id: (),
    #[param(required = false, schema_with = statuses)]
    status: (),
    #[param(required = false, schema_with = is_active)]
    is_active: (),
    #[param(required = false, schema_with = external_ids)]
    external_subscription_id: (),
    #[param(rename = "renews_at[gte]", required = false, schema_with = at_or_after)]
    renews_from: (),
    #[param(rename = "renews_at[gt]", required = false, schema_with = after)]
    renews_after: (),
    #[param(rename = "renews_at[lte]", required = false, schema_with = at_or_before)]
    renews_until: (),
    #[param(rename = "renews_at[lt]", required = false, schema_with = before)]
    renews_before: (),
    #[param(rename = "ends_at[gte]", required = false, schema_with = at_or_after)]
    ends_from: (),
    #[param(rename = "ends_at[gt]", required = false, schema_with = after)]
    ends_after: (),
    #[param(rename = "ends_at[lte]", required = false, schema_with = at_or_before)]
    ends_until: (),
    #[param(rename = "ends_at[lt]", required = false, schema_with = before)]
    ends_before: (),
}

fn user_ids() -> Object {
    let description = "Only subscriptions of these users.";
    comma_separated(&pattern::id(UserId::PREFIX), description, USER_EXAMPLE)
}

fn plan_ids() -> Object {
    let description = "Only subscriptions to these plans.";
    comma_separated(&pattern::id(PlanId::PREFIX), description, PLAN_EXAMPLE)
}

fn statuses() -> Object {
    let names = SubscriptionStatus::ALL.map(SubscriptionStatus::as_str);
    let aliases = SubscriptionStatus::ALIASES.map(|(alias, _)| alias);
    let item = pattern::any_case(names.into_iter().chain(aliases));
    let description = "Only subscriptions with these statuses.";
    comma_separated(&item, description, "active,past_due")
}

fn is_active() -> Object {
    let description = "Only subscriptions that give access now (`true`), or do not (`false`).";
    comma_separated("true|false", description, "true")
}

fn external_ids() -> Object {
    let description =
        "Only subscriptions with these external ids. An id that contains a comma cannot be found.";
    comma_separated(&pattern::listed_line(), description, "sub_42")
}

fn at_or_after() -> Ref {
    TIMESTAMP.reference("Only at or after this time.")
}

fn after() -> Ref {
    TIMESTAMP.reference("Only after this time.")
}

fn at_or_before() -> Ref {
    TIMESTAMP.reference("Only at or before this time.")
}

fn before() -> Ref {
    TIMESTAMP.reference("Only before this time.")
}

/// List subscriptions
///
/// Results are paginated by cursor. With a user's access token, only that user's subscriptions are
/// listed. The filters match the values that responses show: a subscription past its `ends_at` is
/// `expired`.
#[utoipa::path(
    get,
    path = "/subscriptions",
    tag = "Subscriptions",
    operation_id = "listSubscriptions",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(
        CursorParams,
        CreatedAtSortParam,
        Filters,
    ),
    responses(
        (status = 200, description = "A page of subscriptions.", body = Page<SubscriptionView>),
        CommonResponses,
    ),
)]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller<SubscriptionsRead>,
    mut params: QueryParams,
) -> Result<Page<SubscriptionView>, Problem> {
    let request = PageRequest::parse(&mut params, &ORDERS);
    let mut filter = SubscriptionFilter {
        users: params.any_of("user_id"),
        plans: params.any_of("subscription_plan_id"),
        statuses: params.any_of("status"),
        is_active: single_value(params.any_of("is_active")),
        external_ids: params.any_of("external_subscription_id"),
        renews_at: time_range(
            &mut params,
            [
                "renews_at[gte]",
                "renews_at[gt]",
                "renews_at[lt]",
                "renews_at[lte]",
            ],
        ),
        ends_at: time_range(
            &mut params,
            ["ends_at[gte]", "ends_at[gt]", "ends_at[lt]", "ends_at[lte]"],
        ),
    };
    params.finish()?;
    if let Some(session) = caller.user_session() {
        let users = filter.users.get_or_insert_with(|| vec![session.user.id]);
        users.retain(|user| *user == session.user.id);
    }

    let tenant = caller.tenant().id;
    let user = caller.idempotency_scope().user;
    // A cursor is valid only for the same tenant, user and filter.
    let page = request.verify(
        &app.cursor_key,
        &[&"GET /subscriptions", &tenant, &user, &filter],
    )?;
    let now = app.billing_clock.now();
    let mut connection = app.database_for(caller.tenant())?.connection().await?;
    let subscriptions = list_sql::list(
        &mut connection,
        (tenant, caller.tenant().lifecycle),
        &filter,
        (page.order, page.after),
        page.row_limit(),
        now,
    )
    .await?;
    let rows = subscriptions.into_iter().map(|row| (row, now)).collect();
    Ok(
        page.finish(rows, |(subscription, _): &(Subscription, Timestamp)| {
            AgeKey {
                created_at: subscription.created_at,
                id: subscription.id.uuid(),
            }
        }),
    )
}

/// Returns the value of a boolean filter, or `None` if the filter is absent or lists both values.
fn single_value(values: Option<Vec<bool>>) -> Option<bool> {
    let values = values?;
    let first = values.first().copied()?;
    values.iter().all(|value| *value == first).then_some(first)
}

/// Combines the four bounds into one half-open range.
fn time_range(params: &mut QueryParams, [gte, gt, lt, lte]: [&'static str; 4]) -> TimeRange {
    // Stored timestamps have microsecond precision, so "after" means from the next microsecond on.
    let next = |bound: Rfc3339Timestamp| {
        let microsecond = SignedDuration::from_micros(1);
        bound
            .get()
            .saturating_add(microsecond)
            .unwrap_or(Timestamp::MAX)
    };
    let from = params.value(gte).map(Rfc3339Timestamp::get);
    let after = params.value(gt).map(next);
    let before = params.value(lt).map(Rfc3339Timestamp::get);
    let until = params.value(lte).map(next);
    TimeRange {
        from: from.into_iter().chain(after).max(),
        before: before.into_iter().chain(until).min(),
    }
}
