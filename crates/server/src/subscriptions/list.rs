//! `GET /subscriptions`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use jiff::Timestamp;
use perennial_domain::Subscription;
use utoipa::{
    IntoParams,
    openapi::path::{Parameter, ParameterIn},
};

use super::{
    list_sql::{self, SubscriptionFilter, SubscriptionKey, SubscriptionOrder},
    view::SubscriptionView,
};
use crate::{
    app::App,
    auth::{Caller, SubscriptionsRead},
    db::AgeOrder,
    http::{
        csv_list::ListFormat,
        filter_params::{external_ids, filter, time_range},
        openapi::{CursorParams, sort_order},
        pagination::{Page, PageRequest, SortKey},
        problem::{CommonResponses, Problem},
        query::{QueryParams, intersect, time_bounds},
        schema::named,
    },
    subscription_plans, users,
};

/// Values of `sort`; the first is the default.
const ORDERS: [(&str, SubscriptionOrder); 6] = [
    (
        "created_at",
        SubscriptionOrder::Created(AgeOrder::OldestFirst),
    ),
    (
        "-created_at",
        SubscriptionOrder::Created(AgeOrder::NewestFirst),
    ),
    (
        "renews_at",
        SubscriptionOrder::Renewal(AgeOrder::OldestFirst),
    ),
    (
        "-renews_at",
        SubscriptionOrder::Renewal(AgeOrder::NewestFirst),
    ),
    (
        "updated_at",
        SubscriptionOrder::Updated(AgeOrder::OldestFirst),
    ),
    (
        "-updated_at",
        SubscriptionOrder::Updated(AgeOrder::NewestFirst),
    ),
];

/// Values of `sort` with a range of `updated_at`; the first is the default.
const UPDATED_ORDERS: [(&str, SubscriptionOrder); 2] = [
    (
        "updated_at",
        SubscriptionOrder::Updated(AgeOrder::OldestFirst),
    ),
    (
        "-updated_at",
        SubscriptionOrder::Updated(AgeOrder::NewestFirst),
    ),
];

const CREATED_AT: [&str; 4] = time_bounds!("created_at");
const UPDATED_AT: [&str; 4] = time_bounds!("updated_at");
const RENEWS_AT: [&str; 4] = time_bounds!("renews_at");
const ENDS_AT: [&str; 4] = time_bounds!("ends_at");

/// Filters and the order. A comma separates several values of one filter, of which any may match.
struct Filters;

impl IntoParams for Filters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let sort = "`created_at` (default), `renews_at` or `updated_at`; with a leading `-` in descending order. With a \
                    range of `updated_at`, the default is `updated_at`, and no other field is allowed.";
        let is_active = "Only subscriptions that give access now (`true`), or do not (`false`).";
        let suspended = "Only subscriptions that are suspended (`true`), or are not (`false`).";
        let mut params = vec![
            filter("sort", sort_order(sort, &ORDERS.map(|(name, _)| name))),
            filter(
                "user_id",
                named::USER_ID_LIST.reference("Only subscriptions of these users."),
            ),
            external_ids(
                "external_user_id",
                "Only subscriptions of the users with these ids in your system.",
                "customer-1042",
            ),
            filter(
                "subscription_plan_id",
                named::PLAN_ID_LIST.reference("Only subscriptions to these plans."),
            ),
            filter(
                "subscription_plan_slug",
                named::SLUG_LIST.reference("Only subscriptions to the plans with these slugs."),
            ),
            filter(
                "status",
                named::SUBSCRIPTION_STATUS_LIST
                    .reference("Only subscriptions with these statuses."),
            ),
            filter(
                "billing_cycle",
                named::BILLING_CYCLE_LIST
                    .reference("Only subscriptions with these billing cycles."),
            ),
            filter("is_active", named::BOOLEAN_LIST.reference(is_active)),
            filter("suspended", named::BOOLEAN_LIST.reference(suspended)),
            external_ids(
                "external_subscription_id",
                "Only subscriptions with these external ids.",
                "sub_42",
            ),
        ];
        for bounds in [CREATED_AT, UPDATED_AT, RENEWS_AT, ENDS_AT] {
            params.extend(time_range(bounds));
        }
        params
    }
}

/// List subscriptions
///
/// Results are paginated by cursor. With a user's access token, only that user's subscriptions are
/// listed. The filters match the values that responses show: a subscription past its `ends_at` is
/// `expired`.
///
/// Subscriptions without `renews_at` sort after all others by `renews_at`. To find changes, filter by `updated_at` and let the
/// ranges of two runs overlap by some minutes: the background task stores a change, such as an expiry, with the time at
/// which it was due.
#[utoipa::path(
    get,
    path = "/subscriptions",
    tag = "Subscriptions",
    operation_id = "listSubscriptions",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(
        CursorParams,
        Filters,
    ),
    responses(
        (status = 200, description = "A page of subscriptions, or as CSV up to 10,000 rows. The header `Link` of CSV has the next page.",
            content((Page<SubscriptionView> = "application/json"), (String = "text/csv", example = json!("id,user_id,…,updated_at\r\nsub_0192f0c1a2b37c4d8e5f60718293a4b5,…\r\n")))),
        CommonResponses,
    ),
)]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller<SubscriptionsRead>,
    format: ListFormat,
    mut params: QueryParams,
) -> Result<Response, Problem> {
    let mut filter = SubscriptionFilter {
        users: params.any_of("user_id"),
        external_user_ids: params.any_of("external_user_id"),
        plans: params.any_of("subscription_plan_id"),
        plan_slugs: params.any_of("subscription_plan_slug"),
        statuses: params.any_of("status"),
        billing_cycles: params.any_of("billing_cycle"),
        is_active: params.boolean("is_active"),
        suspended: params.boolean("suspended"),
        external_ids: params.any_of("external_subscription_id"),
        created_at: params.time_range(CREATED_AT),
        updated_at: params.time_range(UPDATED_AT),
        renews_at: params.time_range(RENEWS_AT),
        ends_at: params.time_range(ENDS_AT),
    };
    // In another order, a page would read most subscriptions to find those of the range.
    let request = if filter.updated_at.is_unbounded() {
        PageRequest::parse_as(&mut params, &ORDERS, &format)
    } else {
        PageRequest::parse_as(&mut params, &UPDATED_ORDERS, &format)
    };
    params.finish()?;

    let tenant = caller.tenant().id;
    let user = caller.idempotency_scope().user;
    // A cursor is valid only for the same tenant, user and filter.
    let page = request.verify(
        &app.cursor_key,
        &[&"GET /subscriptions", &tenant, &user, &filter],
    )?;
    filter.resolve(&app, &caller).await?;
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
    let order = page.order;
    let page: Page<SubscriptionView> = page
        .finish(rows, |(subscription, _): &(Subscription, Timestamp)| {
            order.key(subscription)
        });
    Ok(format.respond(page))
}

impl SubscriptionFilter {
    /// Looks up the users and plans that the filter names by other ids, and limits it to one user if the client
    /// calls on behalf of one.
    async fn resolve<P>(&mut self, app: &App, caller: &Caller<P>) -> Result<(), Problem> {
        let (tenant, database) = (caller.tenant().id, app.database_for(caller.tenant())?);
        if let Some(external_ids) = &self.external_user_ids {
            let found =
                users::table::find_ids_by_external_id(database, tenant, external_ids).await?;
            intersect(&mut self.users, found);
        }
        if let Some(slugs) = &self.plan_slugs {
            let found =
                subscription_plans::table::find_ids_by_slug(database, tenant, slugs).await?;
            intersect(&mut self.plans, found);
        }
        if let Some(session) = caller.user_session() {
            intersect(&mut self.users, vec![session.user.id]);
        }
        Ok(())
    }
}

impl SortKey for SubscriptionKey {
    fn encode(&self) -> String {
        match self.at {
            Some(at) => format!("{at} {}", self.id),
            None => format!("- {}", self.id),
        }
    }

    fn decode(text: &str) -> Option<Self> {
        let (at, id) = text.split_once(' ')?;
        let at = match at {
            "-" => None,
            at => Some(at.parse().ok()?),
        };
        let id = id.parse().ok()?;
        Some(Self { at, id })
    }
}
