//! `GET /subscriptions`

use std::sync::Arc;

use axum::extract::State;
use jiff::{SignedDuration, Timestamp};
use perennial_domain::{Id, Moment, Subscription};
use utoipa::IntoParams;

use super::{
    listed::{self, Filter, Order, Place, Range},
    shape,
    view::SubscriptionView,
};
use crate::{
    app::App,
    callers::{Caller, SubscriptionsRead},
    http::{
        page::{self, List, Page},
        params::Params,
        problem::{AnyEndpoint, Problem},
    },
};

/// The orders that a caller can ask for; the first is the default.
const ORDERS: [(&str, Order); 2] = [
    ("created_at", Order::Oldest),
    ("-created_at", Order::Newest),
];

/// Which subscriptions are listed. Several values of one filter are separated by commas, and mean "or".
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `list` reads it")]
struct Filters {
    #[param(required = false, schema_with = shape::of_users)]
    user_id: (),
    #[param(required = false, schema_with = shape::of_plans)]
    subscription_plan_id: (),
    #[param(required = false, schema_with = shape::statuses)]
    status: (),
    #[param(required = false, schema_with = shape::access)]
    is_active: (),
    #[param(required = false, schema_with = shape::external_ids)]
    external_subscription_id: (),
    #[param(rename = "renews_at[gte]", required = false, schema_with = shape::then_or_later)]
    renews_from: (),
    #[param(rename = "renews_at[gt]", required = false, schema_with = shape::later)]
    renews_after: (),
    #[param(rename = "renews_at[lte]", required = false, schema_with = shape::then_or_earlier)]
    renews_until: (),
    #[param(rename = "renews_at[lt]", required = false, schema_with = shape::earlier)]
    renews_before: (),
    #[param(rename = "ends_at[gte]", required = false, schema_with = shape::then_or_later)]
    ends_from: (),
    #[param(rename = "ends_at[gt]", required = false, schema_with = shape::later)]
    ends_after: (),
    #[param(rename = "ends_at[lte]", required = false, schema_with = shape::then_or_earlier)]
    ends_until: (),
    #[param(rename = "ends_at[lt]", required = false, schema_with = shape::earlier)]
    ends_before: (),
}

/// List subscriptions
///
/// Page by page; a cursor goes on where the last page ended. On behalf of a user, that user's alone are shown. Filters go
/// by what is shown: one that has passed its `ends_at` is `expired`, whenever that was.
#[utoipa::path(
    get,
    path = "/subscriptions",
    tag = "Subscriptions",
    operation_id = "listSubscriptions",
    params(
        ("limit" = Option<i64>, Query, minimum = 1, maximum = 200, example = 50,
            description = "How many subscriptions a page has. Default: 50."),
        ("cursor" = Option<String>, Query, pattern = "^[A-Za-z0-9_-]+$",
            description = "Where to go on: `next_cursor` of the page before, with the same filters and order."),
        ("sort" = Option<String>, Query, example = "-created_at", pattern = "^-?created_at$",
            description = "`created_at` (the default), or `-created_at` for the newest first."),
        Filters,
    ),
    responses(
        (status = 200, description = "A page of subscriptions.", body = Page<SubscriptionView>),
        AnyEndpoint,
    ),
)]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller<SubscriptionsRead>,
    mut params: Params,
) -> Result<Page<SubscriptionView>, Problem> {
    let limit = page::limit(&mut params);
    let cursor = params.text("cursor");
    let order = params.order(&ORDERS);
    let mut filter = Filter {
        users: params.any_of("user_id"),
        plans: params.any_of("subscription_plan_id"),
        statuses: params.any_of("status"),
        is_active: one_of(params.any_of("is_active")),
        external_ids: params.any_of("external_subscription_id"),
        renews_at: range(
            &mut params,
            [
                "renews_at[gte]",
                "renews_at[gt]",
                "renews_at[lt]",
                "renews_at[lte]",
            ],
        ),
        ends_at: range(
            &mut params,
            ["ends_at[gte]", "ends_at[gt]", "ends_at[lt]", "ends_at[lte]"],
        ),
    };
    params.finish()?;
    if let Some(own) = caller.user() {
        let users = filter.users.get_or_insert_with(|| vec![own.user.id]);
        users.retain(|user| *user == own.user.id);
    }

    let tenant = caller.tenant().id;
    let list = List::new(
        &app.cursor_key,
        &[
            &"GET /subscriptions",
            &tenant,
            &caller.scope().user,
            &filter,
            &order,
        ],
    );
    let after = cursor.map(|cursor| list.after(&cursor)).transpose()?;
    let after = after.map(|(created_at, id)| Place { created_at, id });
    let now = app.billing.now();
    let mut connection = app.engine_of(caller.tenant())?.connection().await?;
    let found = listed::list(
        &mut connection,
        tenant,
        &filter,
        (order, after),
        limit + 1,
        now,
    )
    .await?;
    let found = found.into_iter().map(|one| (one, now)).collect();
    let place = |(one, _): &(Subscription, Timestamp)| page::place(one.created_at, one.id.uuid());
    Ok(Page::of(found, limit, &list, place))
}

/// Both, or neither, is no filter.
fn one_of(wanted: Option<Vec<bool>>) -> Option<bool> {
    let wanted = wanted?;
    let first = wanted.first().copied()?;
    wanted.iter().all(|one| *one == first).then_some(first)
}

/// From the later of two bounds on, and before the earlier of two others.
fn range(params: &mut Params, [gte, gt, lt, lte]: [&'static str; 4]) -> Range {
    // What is stored has microseconds: later than an instant is from the next one on.
    let next = |moment: Moment| {
        let tick = SignedDuration::from_micros(1);
        moment.get().saturating_add(tick).unwrap_or(Timestamp::MAX)
    };
    let from = params.value(gte).map(Moment::get);
    let after = params.value(gt).map(next);
    let before = params.value(lt).map(Moment::get);
    let until = params.value(lte).map(next);
    Range {
        from: from.into_iter().chain(after).max(),
        before: before.into_iter().chain(until).min(),
    }
}
