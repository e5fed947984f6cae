//! `GET /subscription-plans/{slug}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Plan, Slug};

use super::{table, view::PlanView};
use crate::{
    app::App,
    auth::{Caller, PlansRead},
    http::{
        openapi::PlanSlugPath,
        path_param::PathParam,
        problem::{CommonResponses, Problem, ProblemBody},
        response::{BrowserCacheable, OkJson},
    },
    record::not_found,
};

/// Get a plan
///
/// The slug is case-insensitive. Publishable clients and users find only active plans.
#[utoipa::path(
    get,
    path = "/subscription-plans/{slug}",
    tag = "Subscription plans",
    operation_id = "readPlan",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(PlanSlugPath),
    responses(
        (status = 200, description = "The plan.", body = PlanView),
        (status = 404, description = "No plan has this slug (`plan_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller<PlansRead>,
    PathParam(slug): PathParam<Slug>,
) -> Result<BrowserCacheable<OkJson<PlanView>>, Problem> {
    let slug = slug.map_err(not_found::<Plan>)?;
    let database = app.database_for(caller.tenant())?;
    let plan = table::find(database, caller.tenant().id, &slug).await?;
    plan.filter(|plan| plan.details.is_active || caller.is_unrestricted())
        .map(|plan| BrowserCacheable {
            is_public: caller.is_public(),
            response: OkJson(PlanView::from(&plan)),
        })
        .ok_or_else(|| not_found::<Plan>(&slug))
}
