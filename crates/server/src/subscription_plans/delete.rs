//! `DELETE /subscription-plans/{slug}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{EventKind, Slug};

use super::{Locked, lock, no_such_plan, table};
use crate::{
    app::App,
    callers::{Caller, PlansWrite},
    events,
    http::{
        answer::Gone,
        etag::IfMatch,
        path::PathParam,
        problem::{AnyEndpoint, Conditional, Problem, ProblemBody},
    },
};

/// Delete a plan
///
/// It is not found from then on and its slug is free; its history stays. To stop new subscriptions
/// only, set `is_active` to false instead.
#[utoipa::path(
    delete,
    path = "/subscription-plans/{slug}",
    tag = "Subscription plans",
    operation_id = "deletePlan",
    params(
        ("slug" = String, Path, description = "The plan's slug, in any case.", example = "pro",
            min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"),
        ("If-Match" = Option<String>, Header, example = "*",
            description = "The ETag of the plan that is meant."),
    ),
    responses(
        (status = 204, description = "It is deleted."),
        (status = 404, description = "There is no such plan (`plan_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
        Conditional,
    ),
)]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller<PlansWrite>,
    PathParam(slug): PathParam<Slug>,
    if_match: IfMatch,
) -> Result<Gone, Problem> {
    let slug = slug.map_err(no_such_plan)?;
    let tenant = caller.tenant().id;
    let mut connection = app.engine_of(caller.tenant())?.connection().await?;
    let tx = connection.begin().await?;
    let Locked { plan, view, now } = lock(&app, &tx, tenant, &slug, &if_match).await?;

    table::bury(&tx, tenant, plan.id, now).await?;
    let event = caller.event(app.ids, now, EventKind::PlanDeleted, plan.id, &view);
    events::record(&tx, &event).await?;
    tx.commit().await?;
    Ok(Gone)
}
