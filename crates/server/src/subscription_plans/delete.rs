//! `DELETE /subscription-plans/{slug}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{EventKind, Slug};

use super::{Locked, locked, no_such_plan, table};
use crate::{
    app::App,
    callers::{Caller, PlansWrite},
    events,
    http::{
        answer::Gone,
        etag::IfMatch,
        path::PathParam,
        problem::{AnyEndpoint, Code, Conditional, Problem, ProblemBody},
    },
};

/// Delete a plan
///
/// It is not found from then on and its slug is free; its history stays. Refused while live subscriptions point at it: to
/// stop new ones only, set `is_active` to false instead.
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
        (status = 409, description = "Live subscriptions point at it (`plan_in_use`).", body = ProblemBody,
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
    let tx = connection.begin();
    let found = table::lock_to_delete(&tx, tenant, &slug).await?;
    let Locked { plan, view, now } = locked(&app, found, &slug, &if_match)?;
    let live = table::count_live(&tx, tenant, plan.id, now).await?;
    if live > 0 {
        let at_least = match live {
            table::MOST_COUNTED.. => "at least ",
            _ => "",
        };
        let detail = format!(
            "live subscriptions point at this plan, {at_least}{live} of them; to stop new ones only, set is_active to false"
        );
        return Err(Problem::new(Code::PlanInUse, detail).in_use_by(live));
    }

    table::bury(&tx, tenant, plan.id, now).await?;
    let event = caller.event(app.ids, now, EventKind::PlanDeleted, plan.id, &view);
    events::record(&tx, &event).await?;
    tx.commit().await?;
    Ok(Gone)
}
