//! `GET /payments`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Id, Payment};
use utoipa::{
    IntoParams,
    openapi::path::{Parameter, ParameterIn},
};

use super::{
    payment_list_sql::{self, PaymentFilter, PaymentOrder},
    view::PaymentView,
};
use crate::{
    app::App,
    auth::{Caller, PaymentsRead},
    db::{AgeKey, AgeOrder},
    http::{
        filter_params::{external_ids, filter, time_range},
        openapi::{CursorParams, sort_order},
        pagination::{Page, PageRequest},
        problem::{CommonResponses, Problem},
        query::{QueryParams, intersect, time_bounds},
        schema::named,
    },
    users,
};

/// Values of `sort`; the first is the default.
pub const ORDERS: [(&str, PaymentOrder); 4] = [
    ("created_at", PaymentOrder::Created(AgeOrder::OldestFirst)),
    ("-created_at", PaymentOrder::Created(AgeOrder::NewestFirst)),
    ("paid_at", PaymentOrder::Paid(AgeOrder::OldestFirst)),
    ("-paid_at", PaymentOrder::Paid(AgeOrder::NewestFirst)),
];
/// Values of `sort` with a range of `paid_at`; the first is the default.
const PAID_ORDERS: [(&str, PaymentOrder); 2] = [
    ("paid_at", PaymentOrder::Paid(AgeOrder::OldestFirst)),
    ("-paid_at", PaymentOrder::Paid(AgeOrder::NewestFirst)),
];

const CREATED_AT: [&str; 4] = time_bounds!("created_at");
const PAID_AT: [&str; 4] = time_bounds!("paid_at");

/// Filters and the order. A comma separates several values of one filter, of which any may match.
struct Filters;

impl IntoParams for Filters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let sort = "`created_at` (default) or `paid_at`; with a leading `-` in descending order. With a range of \
                    `paid_at`, the default is `paid_at`, and no other field is allowed.";
        let mut params = vec![
            filter("sort", sort_order(sort, &ORDERS.map(|(name, _)| name))),
            filter(
                "subscription_id",
                named::SUBSCRIPTION_ID_LIST.reference("Only payments for these subscriptions."),
            ),
            filter(
                "user_id",
                named::USER_ID_LIST.reference("Only payments for subscriptions of these users."),
            ),
            external_ids(
                "external_user_id",
                "Only payments for subscriptions of the users with these ids in your system.",
                "customer-1042",
            ),
            filter(
                "status",
                named::PAYMENT_STATUS_LIST.reference("Only payments with these statuses."),
            ),
            external_ids(
                "external_payment_id",
                "Only the payments with these ids at the payment provider.",
                "pi_42",
            ),
            filter(
                "currency",
                named::CURRENCY_CODE_LIST.reference("Only payments in these currencies."),
            ),
        ];
        params.extend(time_range(CREATED_AT));
        params.extend(time_range(PAID_AT));
        params
    }
}

/// List payments
///
/// The payments of all subscriptions. Results are paginated by cursor. With a user's access token, only payments for
/// that user's subscriptions are listed. Sorted by `paid_at`, the list has only payments with a `paid_at`.
#[utoipa::path(
    get,
    path = "/payments",
    tag = "Subscription payments",
    operation_id = "listPayments",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(
        CursorParams,
        Filters,
    ),
    responses(
        (status = 200, description = "A page of payments.", body = Page<PaymentView>),
        CommonResponses,
    ),
)]
pub async fn list_all(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentsRead>,
    mut params: QueryParams,
) -> Result<Page<PaymentView>, Problem> {
    let mut filter = PaymentFilter {
        subscriptions: params.any_of("subscription_id"),
        users: params.any_of("user_id"),
        external_user_ids: params.any_of("external_user_id"),
        statuses: params.any_of("status"),
        external_ids: params.any_of("external_payment_id"),
        currencies: params.any_of("currency"),
        created_at: params.time_range(CREATED_AT),
        paid_at: params.time_range(PAID_AT),
    };
    let request = if filter.paid_at.is_unbounded() {
        PageRequest::parse(&mut params, &ORDERS)
    } else {
        PageRequest::parse(&mut params, &PAID_ORDERS)
    };
    params.finish()?;

    let tenant = caller.tenant().id;
    let user = caller.user_session().map(|session| session.user.id);
    // A cursor is valid only for the same tenant, user and filter.
    let page = request.verify(
        &app.cursor_key,
        &[&"GET /payments", &tenant, &user, &filter],
    )?;
    let database = app.database_for(caller.tenant())?;
    if let Some(external_ids) = &filter.external_user_ids {
        let found = users::table::find_ids_by_external_id(database, tenant, external_ids).await?;
        intersect(&mut filter.users, found);
    }
    if let Some(user) = user {
        intersect(&mut filter.users, vec![user]);
    }
    let mut connection = database.connection().await?;
    let start = (page.order, page.after);
    let payments =
        payment_list_sql::list(&mut connection, tenant, &filter, start, page.row_limit()).await?;
    let order = page.order;
    Ok(page.finish(payments, |payment: &Payment| {
        let time = match order {
            PaymentOrder::Created(_) => None,
            PaymentOrder::Paid(_) => payment.paid_at,
        };
        AgeKey {
            created_at: time.unwrap_or(payment.created_at),
            id: payment.id.uuid(),
        }
    }))
}
