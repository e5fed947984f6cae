//! `GET /subscription-plans/{slug}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::Slug;

use super::{no_such_plan, table, view::PlanView};
use crate::{
    app::App,
    callers::{Caller, PlansRead},
    http::{
        answer::Found,
        path::PathParam,
        problem::{AnyEndpoint, Problem, ProblemBody},
    },
};

/// Read a plan
///
/// By its slug, in any case. Publishable clients and users find active plans only.
#[utoipa::path(
    get,
    path = "/subscription-plans/{slug}",
    tag = "Subscription plans",
    operation_id = "readPlan",
    params(("slug" = String, Path, description = "The plan's slug, in any case.", example = "pro",
        min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")),
    responses(
        (status = 200, description = "The plan as it stands.", body = PlanView,
            headers(("ETag" = String, description = "What the plan looks like, for If-Match."))),
        (status = 404, description = "There is no such plan (`plan_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller<PlansRead>,
    PathParam(slug): PathParam<Slug>,
) -> Result<Found<PlanView>, Problem> {
    let slug = slug.map_err(no_such_plan)?;
    let engine = app.engine_of(caller.tenant())?;
    let plan = table::find(engine, caller.tenant().id, &slug).await?;
    plan.filter(|plan| plan.terms.is_active || caller.sees_everything())
        .map(|plan| Found(PlanView::from(&plan)))
        .ok_or_else(|| no_such_plan(&slug))
}
