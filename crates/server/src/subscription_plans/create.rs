//! `POST /subscription-plans`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use perennial_domain::{EventKind, Plan, PlanDetails};

use super::{
    body::{CreatePlan, parse_create},
    insert_problem, table,
    view::PlanView,
};
use crate::{
    app::App,
    auth::{Caller, PlansWrite},
    http::{
        idempotency::{IdempotencyKey, IdempotencyOutcome},
        json::BodyFields,
        openapi::IdempotencyKeyParam,
        problem::{BodyResponses, CommonResponses, Problem, ProblemBody},
    },
    record::ChangeContext,
};

/// Create a plan
///
/// Required: `name`, `slug`, `price` and `billing_cycle`. A response to an invalid body lists all
/// errors.
#[utoipa::path(
    post,
    path = "/subscription-plans",
    tag = "Subscription plans",
    operation_id = "createPlan",
    params(IdempotencyKeyParam),
    request_body(content = CreatePlan, description = "The plan to create."),
    responses(
        (status = 201, description = "The created plan.", body = PlanView),
        (status = 409, description = "Another plan has this slug (`slug_taken`), or a request with the same key is in progress (`idempotency_in_progress`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller<PlansWrite>,
    idempotency_key: IdempotencyKey,
    fields: BodyFields,
) -> Result<Response, Problem> {
    let tenant = caller.tenant();
    let fingerprint = fields.fingerprint();
    // Invalid bodies are rejected before a connection is taken from the pool.
    let details = parse_create(fields, tenant.default_currency)?;
    let mut connection = app.database_for(tenant)?.connection().await?;
    let tx = match idempotency_key
        .begin(&mut connection, &caller.idempotency_scope(), fingerprint)
        .await?
    {
        IdempotencyOutcome::Replayed(response) => return Ok(response),
        IdempotencyOutcome::Proceed(tx) => tx,
    };
    let context = ChangeContext::new(&caller, app.ids, app.clock.now(), &tx);
    let created = insert_plan(&context, details).await.map(|plan| {
        let location = format!("/subscription-plans/{}", plan.details.slug);
        (location, PlanView::from(&plan))
    });
    tx.respond(created).await
}

/// Creates a plan and records the event. The caller commits.
pub async fn insert_plan(
    context: &ChangeContext<'_>,
    details: PlanDetails,
) -> Result<Plan, Problem> {
    let plan = Plan::create(details, context.ids.generate(context.now), context.now);
    table::insert(context.tx, context.tenant, &plan)
        .await
        .map_err(insert_problem)?;
    let view = PlanView::from(&plan);
    context
        .record_event(EventKind::PlanCreated, plan.id, &view)
        .await?;
    Ok(plan)
}
