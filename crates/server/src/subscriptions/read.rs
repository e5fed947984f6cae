//! `GET /subscriptions/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::SubscriptionId;

use super::{find_visible, view::SubscriptionView};
use crate::{
    app::App,
    auth::{Caller, SubscriptionsRead},
    http::{
        openapi::SubscriptionIdPath,
        path_param::PathParam,
        problem::{CommonResponses, Problem, ProblemBody},
        response::OkJson,
    },
};

/// Get a subscription
///
/// With a user's access token, only that user's subscriptions are found.
#[utoipa::path(
    get,
    path = "/subscriptions/{id}",
    tag = "Subscriptions",
    operation_id = "readSubscription",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(SubscriptionIdPath),
    responses(
        (status = 200, description = "The subscription.", body = SubscriptionView),
        (status = 404, description = "No subscription has this id (`subscription_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller<SubscriptionsRead>,
    PathParam(id): PathParam<SubscriptionId>,
) -> Result<OkJson<SubscriptionView>, Problem> {
    let subscription = find_visible(&app, &caller, id).await?;
    let now = app.billing_clock.now();
    Ok(OkJson(SubscriptionView::at(&subscription, now)))
}
