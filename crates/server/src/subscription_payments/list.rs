//! `GET /subscriptions/{id}/payments`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Id, Payment, SubscriptionId};

use super::{table, view::PaymentView};
use crate::{
    app::App,
    auth::{Caller, PaymentsRead},
    db::AgeKey,
    http::{
        openapi::{CreatedAtSortParam, CursorParams, SubscriptionIdPath},
        pagination::Page,
        path_param::PathParamWithQuery,
        problem::{CommonResponses, Problem, ProblemBody},
        query::QueryParams,
    },
    subscriptions::RecordList,
};

/// The payments of a subscription.
static PAYMENTS: RecordList<Payment> = RecordList {
    endpoint: "GET /subscriptions/{id}/payments",
    sql: &table::BY_SUBSCRIPTION,
    from_row: table::from_row,
    sort_key: |payment| AgeKey {
        created_at: payment.created_at,
        id: payment.id.uuid(),
    },
};

/// List a subscription's payments
///
/// Results are paginated by cursor. With a user's access token, only that user's subscriptions are
/// found.
#[utoipa::path(
    get,
    path = "/subscriptions/{id}/payments",
    tag = "Subscription payments",
    operation_id = "listSubscriptionPayments",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(
        SubscriptionIdPath,
        CursorParams,
        CreatedAtSortParam,
    ),
    responses(
        (status = 200, description = "A page of payments.", body = Page<PaymentView>),
        (status = 404, description = "No subscription has this id (`subscription_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller<PaymentsRead>,
    PathParamWithQuery(id): PathParamWithQuery<SubscriptionId>,
    params: QueryParams,
) -> Result<Page<PaymentView>, Problem> {
    PAYMENTS.page(&app, &caller, id, params).await
}
