//! `GET /payments`

use std::sync::Arc;

use axum::{extract::State, response::Response};
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
        csv_list::ListFormat,
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
        (status = 200, description = "A page of payments, or as CSV up to 10,000 rows. The header `Link` of CSV has the next page.",
            content((Page<PaymentView> = "application/json"), (String = "text/csv", example = json!("id,subscription_id,…,updated_at\r\npay_0192f0c1a2b37c4d8e5f60718293a4b5,…\r\n")))),
        CommonResponses,
    ),
)]
pub async fn list_all(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentsRead>,
    format: ListFormat,
    mut params: QueryParams,
) -> Result<Response, Problem> {
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
        PageRequest::parse_as(&mut params, &ORDERS, &format)
    } else {
        PageRequest::parse_as(&mut params, &PAID_ORDERS, &format)
    };
    params.finish()?;

    let tenant = caller.tenant().id;
    let user = caller.user();
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
    let page: Page<PaymentView> = page.finish(payments, |payment: &Payment| {
        let time = match order {
            PaymentOrder::Created(_) => None,
            PaymentOrder::Paid(_) => payment.paid_at,
        };
        AgeKey {
            created_at: time.unwrap_or(payment.created_at),
            id: payment.id.uuid(),
        }
    });
    Ok(format.respond(page))
}
