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
        openapi::CursorParams,
        pagination::Page,
        path_param::PathParamWithQuery,
        problem::{CommonResponses, Problem, ProblemBody},
        query::QueryParams,
    },
    subscriptions::RecordList,
};

/// The payments of a subscription.
pub static PAYMENTS: RecordList<Payment> = RecordList {
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
    operation_id = "listPayments",
    params(
        ("id" = String, Path, description = "The subscription's id.", example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
            pattern = "^sub_[0-9a-f]{32}$"),
        CursorParams,
        ("sort" = Option<String>, Query, example = "-created_at", pattern = "^-?created_at$",
            description = "`created_at` (default) or `-created_at` for newest first."),
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
