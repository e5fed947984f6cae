//! `PUT /subscription-plans/{slug}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{EventKind, Plan, Slug};

use super::{
    body::{UpdatePlan, parse_update},
    table,
    view::PlanView,
};
use crate::{
    app::App,
    auth::{Caller, PlansWrite},
    db::CellDatabase,
    events,
    http::{
        etag::IfMatch,
        json::BodyFields,
        openapi::{IfMatchParam, PlanSlugPath},
        path_param::PathParam,
        problem::{BodyResponses, CommonResponses, ConditionalResponses, Problem, ProblemBody},
        response::OkJson,
    },
    record::{ChangeOrigin, Locked, not_found},
};

/// Update a plan
///
/// Changes only the fields in the request. A new price or trial applies to new subscriptions
/// only. `slug` and `currency` cannot change (`immutable_field`).
#[utoipa::path(
    put,
    path = "/subscription-plans/{slug}",
    tag = "Subscription plans",
    operation_id = "updatePlan",
    params(
        PlanSlugPath,
        IfMatchParam,
    ),
    request_body(content = UpdatePlan, description = "The fields to change."),
    responses(
        (status = 200, description = "The plan.", body = PlanView),
        (status = 404, description = "There is no such plan (`plan_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        ConditionalResponses,
        BodyResponses,
    ),
)]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller<PlansWrite>,
    PathParam(slug): PathParam<Slug>,
    if_match: IfMatch,
    fields: BodyFields,
) -> Result<OkJson<PlanView>, Problem> {
    let slug = slug.map_err(not_found::<Plan>)?;
    let database = app.database_for(caller.tenant())?;
    let origin = ChangeOrigin::new(&caller, app.ids, app.clock);
    let view = update_plan(database, &origin, &slug, &if_match, fields).await?;
    Ok(OkJson(view))
}

/// Updates a plan in a transaction and returns its new representation.
pub async fn update_plan(
    database: &CellDatabase,
    origin: &ChangeOrigin<'_>,
    slug: &Slug,
    if_match: &IfMatch,
    fields: BodyFields,
) -> Result<PlanView, Problem> {
    let tenant = origin.tenant.id;
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let row = table::lock(&tx, tenant, slug).await?;
    let Locked { record, view, now } = Locked::new(row, slug, origin.clock, if_match)?;
    let details = parse_update(fields, &record)?;
    let Some(plan) = record.update(details, now) else {
        return Ok(view);
    };
    let new_view = PlanView::from(&plan);

    table::update(&tx, tenant, &plan).await?;
    let data = events::diff(&view, &new_view)?;
    let context = origin.context(now, &tx);
    context
        .record_event(EventKind::PlanUpdated, plan.id, &data)
        .await?;
    tx.commit().await?;
    Ok(new_view)
}
