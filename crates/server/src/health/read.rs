//! `GET /health`

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{body::Bytes, extract::State, response::Response};
use jiff::Timestamp;
use perennial_domain::TenantId;
use serde::Serialize;
use utoipa::ToSchema;

use super::{HealthCheck, HealthChecker, HealthStatus};
use crate::{
    app::App,
    auth::{Caller, HealthRead, tenants},
    http::{
        problem::{CommonResponses, Problem},
        query::NoQuery,
        response::{no_store_json, timestamp},
    },
};

/// How long a result is returned without checking again.
const REPORT_TTL: Duration = Duration::from_secs(10);
/// The time for all checks of a request, which itself has 10 seconds.
const CHECKS_TIMEOUT: Duration = Duration::from_secs(6);

/// The health of the service and of a tenant's data.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Health)]
pub struct HealthView {
    /// The worst status of all checks.
    status: HealthStatus,
    /// When the checks ran. A result is returned for up to 10 seconds.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    checked_at: Timestamp,
    /// The results of all checks.
    checks: Vec<HealthCheckView>,
}

/// The result of one check.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HealthCheck)]
pub struct HealthCheckView {
    /// What is checked. Several results can have the same name.
    #[schema(example = "worker")]
    name: &'static str,
    status: HealthStatus,
    /// What was found.
    #[schema(example = "background tasks are overdue by 312 s")]
    detail: String,
    /// The suggested action.
    #[schema(
        required,
        example = "run `perennial serve` with PERENNIAL_WORKERS above 0, or `perennial work`"
    )]
    fix: Option<String>,
    /// The path of the page that explains the fix.
    #[schema(required, example = "/docs/runbooks/late-worker")]
    runbook: Option<String>,
}

impl From<HealthCheck> for HealthCheckView {
    fn from(check: HealthCheck) -> Self {
        Self {
            name: check.name,
            status: check.status,
            detail: check.detail,
            fix: check.fix,
            runbook: check.page.map(|page| format!("/docs/{page}")),
        }
    }
}

/// Check the health
///
/// Returns the results of the checks that `perennial doctor` prints: of the databases, the keys, the background tasks, and
/// of the data of this tenant. They run at most every 10 seconds.
#[utoipa::path(
    get,
    path = "/health",
    tag = "Health",
    operation_id = "readHealth",
    responses(
        (status = 200, description = "The results, also if checks failed.", body = HealthView),
        CommonResponses,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller<HealthRead>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let tenant = caller.tenant().id;
    // Held while the checks run, so that only one request at a time runs them.
    let mut reports = app.health_reports.lock().await;
    reports.retain(|(_, checked, _)| checked.elapsed() < REPORT_TTL);
    let known = reports.iter().find(|(of, ..)| *of == tenant);
    if let Some((_, _, report)) = known {
        return Ok(no_store_json(report.clone()));
    }
    let health = check(&app, tenant).await?;
    let report = serde_json::to_vec(&health).map_err(|error| Problem::internal(&error))?;
    let report = Bytes::from(report);
    reports.push((tenant, Instant::now(), report.clone()));
    Ok(no_store_json(report))
}

async fn check(app: &App, tenant: TenantId) -> Result<HealthView, Problem> {
    let home = app.db.home()?.connection().await?;
    let mut tenants = tenants::table::list(&home).await?;
    drop(home);
    tenants.retain(|(other, _)| other.id == tenant);
    let checker = HealthChecker {
        db: &app.db,
        mode: app.mode,
        clocks: app.clocks(),
        keys: Some(&app.keys),
        verifier: Some(&app.identity_verifier),
        tenants: &tenants,
        timeout: CHECKS_TIMEOUT,
    };
    let checks = checker.run().await;
    let worst = checks.iter().map(|check| check.status).max();
    Ok(HealthView {
        status: worst.unwrap_or(HealthStatus::Ok),
        checked_at: app.clock.now(),
        checks: checks.into_iter().map(HealthCheckView::from).collect(),
    })
}
