//! `DELETE /subscription-plans/{slug}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Plan, Slug};

use super::table;
use crate::{
    app::App,
    auth::{Caller, PlansWrite},
    http::{
        etag::IfMatch,
        openapi::{IfMatchParam, PlanSlugPath},
        path_param::PathParam,
        problem::{Code, CommonResponses, ConditionalResponses, Problem, ProblemBody},
        response::NoContent,
    },
    record::{ChangeContext, Locked, not_found},
};

/// Delete a plan
///
/// The plan is no longer found, and its slug can be reused. Its events are kept. A plan with live
/// subscriptions cannot be deleted; to stop new subscriptions, set `is_active` to false instead.
#[utoipa::path(
    delete,
    path = "/subscription-plans/{slug}",
    tag = "Subscription plans",
    operation_id = "deletePlan",
    params(
        PlanSlugPath,
        IfMatchParam,
    ),
    responses(
        (status = 204, description = "Deleted."),
        (status = 404, description = "There is no such plan (`plan_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 409, description = "The plan has live subscriptions (`plan_in_use`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        ConditionalResponses,
    ),
)]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller<PlansWrite>,
    PathParam(slug): PathParam<Slug>,
    if_match: IfMatch,
) -> Result<NoContent, Problem> {
    let slug = slug.map_err(not_found::<Plan>)?;
    let tenant = caller.tenant();
    let mut connection = app.database_for(tenant)?.connection().await?;
    let tx = connection.begin();
    let row = table::lock_for_delete(&tx, tenant.id, &slug).await?;
    let Locked { record, view, now } = Locked::new(row, slug, app.clock, &if_match)?;
    let live = table::count_live_subscriptions(&tx, tenant.id, record.id, now).await?;
    if live > 0 {
        let at_least = match live {
            table::MAX_LIVE_COUNT.. => "at least ",
            _ => "",
        };
        let detail = format!(
            "cannot delete a plan with live subscriptions ({at_least}{live}); to stop new ones, set is_active to false"
        );
        return Err(Problem::new(Code::PlanInUse, detail).with_live_subscriptions(live));
    }

    let context = ChangeContext::new(&caller, app.ids, now, &tx);
    context.soft_delete(&record, &view).await?;
    tx.commit().await?;
    Ok(NoContent)
}
