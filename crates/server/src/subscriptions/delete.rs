//! `DELETE /subscriptions/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{EventKind, SubscriptionId};

use super::{Locked, lock, table};
use crate::{
    app::App,
    callers::{Caller, SubscriptionsWrite},
    events,
    http::{
        answer::Gone,
        etag::IfMatch,
        path::PathParam,
        problem::{AnyEndpoint, Conditional, Problem, ProblemBody},
    },
};

/// Delete a subscription
///
/// It is not found from then on and gives no access; its payments and its history stay. To end one that was
/// real, set `status` to `cancelled` or `expired` instead.
#[utoipa::path(
    delete,
    path = "/subscriptions/{id}",
    tag = "Subscriptions",
    operation_id = "deleteSubscription",
    params(
        ("id" = String, Path, description = "The subscription's id.", example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
            pattern = "^sub_[0-9a-f]{32}$"),
        ("If-Match" = Option<String>, Header, example = "*",
            description = "The ETag of the subscription that is meant."),
    ),
    responses(
        (status = 204, description = "It is deleted."),
        (status = 404, description = "There is no such subscription (`subscription_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
        Conditional,
    ),
)]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller<SubscriptionsWrite>,
    PathParam(id): PathParam<SubscriptionId>,
    if_match: IfMatch,
) -> Result<Gone, Problem> {
    let tenant = caller.tenant().id;
    let mut connection = app.engine_of(caller.tenant())?.connection().await?;
    let tx = connection.begin();
    let Locked {
        subscription,
        view,
        now,
    } = lock(&app, &tx, tenant, id, &if_match).await?;
    table::bury(&tx, tenant, subscription.id, now).await?;
    let kind = EventKind::SubscriptionDeleted;
    let event = caller.event(app.ids, now, kind, subscription.id, &view);
    events::record(&tx, &event).await?;
    tx.commit().await?;
    Ok(Gone)
}
