//! `DELETE /subscriptions/{id}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{RevenueFacts, SubscriptionId};

use super::lock;
use crate::{
    app::App,
    auth::{Caller, SubscriptionsWrite},
    http::{
        etag::IfMatch,
        openapi::{IfMatchParam, SubscriptionIdPath},
        path_param::PathParam,
        problem::{CommonResponses, ConditionalResponses, Problem, ProblemBody},
        response::NoContent,
    },
    record::{ChangeContext, Locked},
    revenue_journal,
};

/// Delete a subscription
///
/// The subscription is no longer found and gives no access. Its payments and events are kept. To
/// end a subscription without deleting it, set `status` to `cancelled` or `expired`.
#[utoipa::path(
    delete,
    path = "/subscriptions/{id}",
    tag = "Subscriptions",
    operation_id = "deleteSubscription",
    params(
        SubscriptionIdPath,
        IfMatchParam,
    ),
    responses(
        (status = 204, description = "Deleted."),
        (status = 404, description = "No subscription has this id (`subscription_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        ConditionalResponses,
    ),
)]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller<SubscriptionsWrite>,
    PathParam(id): PathParam<SubscriptionId>,
    if_match: IfMatch,
) -> Result<NoContent, Problem> {
    let tenant = caller.tenant();
    let mut connection = app.database_for(tenant)?.connection().await?;
    let tx = connection.begin();
    let Locked { record, view, now } = lock(&app, &tx, &caller, id, &if_match).await?;
    let context = ChangeContext::new(&caller, app.ids, now, &tx);
    // It may have ended without being stored as expired.
    let current = record.as_of(now);
    let ended_at = current.updated_at;
    context
        .append_revenue(Some(&record), &current, ended_at)
        .await?;
    let deletion = RevenueFacts::from(&current).deletion(now);
    revenue_journal::append(&tx, &[(tenant.id, deletion)]).await?;
    context.soft_delete(&record, &view).await?;
    tx.commit().await?;
    Ok(NoContent)
}
