//! `GET /subscriptions/{id}/ledger`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Id, SubscriptionId};

use super::{
    table::{self, StoredEntry},
    view::LedgerEntryView,
};
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

/// The entries of a subscription.
pub static ENTRIES: RecordList<StoredEntry> = RecordList {
    endpoint: "GET /subscriptions/{id}/ledger",
    sql: &table::BY_SUBSCRIPTION,
    from_row: table::from_row,
    sort_key: |stored| AgeKey {
        created_at: stored.entry.at,
        id: stored.id.uuid(),
    },
};

/// List a subscription's ledger
///
/// Every movement of the credit of a managed subscription, and every stretch of free time. Entries are
/// never changed or deleted. Results are paginated by cursor. With a user's access token, only that
/// user's subscriptions are found.
#[utoipa::path(
    get,
    path = "/subscriptions/{id}/ledger",
    tag = "Subscriptions",
    operation_id = "listLedgerEntries",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(
        SubscriptionIdPath,
        CursorParams,
        CreatedAtSortParam,
    ),
    responses(
        (status = 200, description = "A page of ledger entries.", body = Page<LedgerEntryView>),
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
) -> Result<Page<LedgerEntryView>, Problem> {
    ENTRIES.page(&app, &caller, id, params).await
}
