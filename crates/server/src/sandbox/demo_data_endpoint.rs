//! `POST /sandbox/demo-data`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    check_mode,
    demo_data::{self, DemoDataCounts},
    run_change,
};
use crate::{
    app::App,
    auth::{Caller, SandboxWrite, tenants::contents_sql},
    http::{
        json::NoBody,
        problem::{Code, CommonResponses, EmptyBodyResponses, Problem, ProblemBody},
        response::NoStore,
    },
};

/// The created demo data.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DemoData)]
pub struct DemoDataView {
    /// How many plans were created.
    #[schema(example = 3)]
    plans: usize,
    /// How many users with a subscription were created.
    #[schema(example = 240)]
    subscribers: usize,
    /// How many payments were recorded.
    #[schema(example = 1_714)]
    payments: usize,
}

/// Create demo data
///
/// Fills an empty tenant of a sandbox with three plans, 240 subscribers and 14 months of payments, and sets its lifecycle to
/// managed.
#[utoipa::path(
    post,
    path = "/sandbox/demo-data",
    tag = "Sandbox",
    operation_id = "createDemoData",
    responses(
        (status = 200, description = "The number of created records.", body = DemoDataView),
        (status = 409, description = "The tenant has data (`sandbox_not_empty`), or another change of the sandbox is running (`sandbox_busy`).",
            body = ProblemBody, content_type = "application/problem+json"),
        CommonResponses,
        EmptyBodyResponses,
    ),
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller<SandboxWrite>,
    _: NoBody,
) -> Result<NoStore<DemoDataView>, Problem> {
    check_mode(&app)?;
    let tenant = caller.tenant().clone();
    let change = {
        let app = app.clone();
        async move {
            let connection = app.database_for(&tenant)?.connection().await?;
            let contents = contents_sql::list_contents(&connection, tenant.id).await?;
            drop(connection);
            let blocks = |kind: &&str| ["users", "plans", "subscriptions"].contains(kind);
            if contents.iter().any(blocks) {
                return anyhow::Ok(None);
            }
            let now = app.billing_clock.now();
            let context = app.system_context();
            let counts = demo_data::create(&app.db, context, tenant, now, |_| {}).await?;
            Ok(Some(counts))
        }
    };
    let counts = run_change(&app, change).await?.ok_or_else(|| {
        let detail = "the tenant has users, plans or subscriptions, perhaps deleted ones; create another tenant for demo data";
        Problem::new(Code::SandboxNotEmpty, detail)
    })?;
    let DemoDataCounts {
        plans,
        subscribers,
        payments,
    } = counts;
    let view = DemoDataView {
        plans,
        subscribers,
        payments,
    };
    Ok(NoStore(StatusCode::OK, view))
}
