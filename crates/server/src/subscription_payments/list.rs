//! `GET /subscriptions/{id}/payments`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Id, Payment, SubscriptionId};

use super::{
    table::{self, Order, Place},
    view::PaymentView,
};
use crate::{
    app::App,
    callers::{Caller, PaymentsRead},
    http::{
        page::{self, List, Page},
        params::Params,
        path::PathParamWithQuery,
        problem::{AnyEndpoint, Problem, ProblemBody},
    },
    subscriptions,
};

/// The orders that a caller can ask for; the first is the default.
const ORDERS: [(&str, Order); 2] = [
    ("created_at", Order::Oldest),
    ("-created_at", Order::Newest),
];

/// List the payments of a subscription
///
/// Page by page; a cursor goes on where the last page ended. On behalf of a user, that user's subscriptions alone are
/// found.
#[utoipa::path(
    get,
    path = "/subscriptions/{id}/payments",
    tag = "Subscription payments",
    operation_id = "listPayments",
    params(
        ("id" = String, Path, description = "The subscription's id.", example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
            pattern = "^sub_[0-9a-f]{32}$"),
        ("limit" = Option<i64>, Query, minimum = 1, maximum = 200, example = 50,
            description = "How many payments a page has. Default: 50."),
        ("cursor" = Option<String>, Query, pattern = "^[A-Za-z0-9_-]+$",
            description = "Where to go on: `next_cursor` of the page before, with the same order."),
        ("sort" = Option<String>, Query, example = "-created_at", pattern = "^-?created_at$",
            description = "`created_at` (the default), or `-created_at` for the newest first."),
    ),
    responses(
        (status = 200, description = "A page of payments.", body = Page<PaymentView>),
        (status = 404, description = "There is no such subscription (`subscription_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
    ),
)]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentsRead>,
    PathParamWithQuery(id): PathParamWithQuery<SubscriptionId>,
    mut params: Params,
) -> Result<Page<PaymentView>, Problem> {
    let limit = page::limit(&mut params);
    let cursor = params.text("cursor");
    let order = params.order(&ORDERS);
    params.finish()?;
    let subscription = subscriptions::find(&app, &caller, id).await?.id;

    let tenant = caller.tenant().id;
    let list = List::new(
        &app.cursor_key,
        &[
            &"GET /subscriptions/{id}/payments",
            &tenant,
            &caller.scope().user,
            &subscription,
            &order,
        ],
    );
    let after = cursor.map(|cursor| list.after(&cursor)).transpose()?;
    let after = after.map(|(created_at, id)| Place { created_at, id });
    let connection = app.engine_of(caller.tenant())?.connection().await?;
    let found = table::list(&connection, tenant, subscription, (order, after), limit + 1).await?;
    let place = |one: &Payment| page::place(one.created_at, one.id.uuid());
    Ok(Page::of(found, limit, &list, place))
}
