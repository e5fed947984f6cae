//! `GET /subscriptions/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::SubscriptionId;

use super::{find, view::SubscriptionView};
use crate::{
    app::App,
    callers::{Caller, SubscriptionsRead},
    http::{
        answer::Found,
        path::PathParam,
        problem::{AnyEndpoint, Problem, ProblemBody},
    },
};

/// Read a subscription
///
/// On behalf of a user, that user's alone are found.
#[utoipa::path(
    get,
    path = "/subscriptions/{id}",
    tag = "Subscriptions",
    operation_id = "readSubscription",
    params(("id" = String, Path, description = "The subscription's id.", example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
        pattern = "^sub_[0-9a-f]{32}$")),
    responses(
        (status = 200, description = "The subscription as it stands.", body = SubscriptionView,
            headers(("ETag" = String, description = "What the subscription looks like, for If-Match."))),
        (status = 404, description = "There is no such subscription (`subscription_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller<SubscriptionsRead>,
    PathParam(id): PathParam<SubscriptionId>,
) -> Result<Found<SubscriptionView>, Problem> {
    let subscription = find(&app, &caller, id).await?;
    let now = app.billing.now();
    Ok(Found(SubscriptionView::at(&subscription, now)))
}
