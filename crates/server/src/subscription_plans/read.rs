//! `GET /subscription-plans/{slug}`, where the slug may be the plan's id

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Plan, Slug};

use super::{table, view::PlanView};
use crate::{
    app::App,
    auth::{Caller, PlansRead},
    http::{
        openapi::PlanSlugOrIdPath,
        path_param::PathParam,
        problem::{CommonResponses, Problem, ProblemBody},
        response::{BrowserCacheable, OkJson},
    },
    record::not_found,
};

/// Get a plan
///
/// By its slug, which is case-insensitive, or by its id. Publishable clients and users find only active plans, and users also
/// the plans of their subscriptions.
#[utoipa::path(
    get,
    path = "/subscription-plans/{slug}",
    tag = "Subscription plans",
    operation_id = "readPlan",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(PlanSlugOrIdPath),
    responses(
        (status = 200, description = "The plan.", body = PlanView),
        (status = 404, description = "There is no such plan (`plan_not_found`).", body = ProblemBody,
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
    let tenant = caller.tenant().id;
    let mut plan = table::find(database, tenant, &slug).await?;
    // A slug takes precedence: it may look like an id.
    if plan.is_none()
        && let Ok(id) = slug.as_str().parse()
    {
        plan = table::find_by_id(database, tenant, id).await?;
    }
    let plan = plan.ok_or_else(|| not_found::<Plan>(&slug))?;
    let is_visible = plan.details.is_active
        || caller.is_unrestricted()
        || match caller.user_session() {
            Some(session) => {
                table::is_subscriber(database, tenant, session.user.id, plan.id).await?
            }
            None => false,
        };
    if !is_visible {
        return Err(not_found::<Plan>(&slug));
    }
    Ok(BrowserCacheable {
        is_public: caller.is_public(),
        response: OkJson(PlanView::from(&plan)),
    })
}
