//! `GET /sandbox/clock` and `PUT /sandbox/clock`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use jiff::Timestamp;
use perennial_domain::Transition;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ClockReport, check_mode,
    clock_body::{AdvanceSandboxClock, parse_advance},
    run_change, sandbox_clock,
};
use crate::{
    app::App,
    auth::{Caller, SandboxWrite},
    db::instance,
    http::{
        json::BodyFields,
        problem::{BodyResponses, CommonResponses, Problem, ProblemBody},
        query::NoQuery,
        response::{NoStore, timestamp},
    },
};

/// The clock of a sandbox.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SandboxClock)]
pub struct SandboxClockView {
    /// The billing time, which subscriptions, payments and access use.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-12-15T09:30:00.000000Z")]
    now: Timestamp,
    /// The real time, which sessions and tokens use.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    real_time: Timestamp,
}

/// The clock of a sandbox after it advanced, and what happened to the tenant's subscriptions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AdvancedSandboxClock)]
pub struct AdvancedClockView {
    #[serde(flatten)]
    #[schema(inline = false)]
    clock: SandboxClockView,
    /// How many periods were renewed.
    #[schema(example = 180)]
    renewed: i64,
    /// How many subscriptions became past due.
    #[schema(example = 12)]
    past_due: i64,
    /// How many subscriptions became unpaid.
    #[schema(example = 3)]
    unpaid: i64,
    /// How many subscriptions expired.
    #[schema(example = 2)]
    expired: i64,
    /// How many events were recorded.
    #[schema(example = 197)]
    events: i64,
}

/// Read the sandbox clock
///
/// Returns the billing time of a sandbox and the real time. All tenants of the sandbox share the clock.
#[utoipa::path(
    get,
    path = "/sandbox/clock",
    tag = "Sandbox",
    operation_id = "readSandboxClock",
    responses(
        (status = 200, description = "The clock.", body = SandboxClockView),
        CommonResponses,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    _: Caller<SandboxWrite>,
    _: NoQuery,
) -> Result<NoStore<SandboxClockView>, Problem> {
    check_mode(&app)?;
    Ok(NoStore(StatusCode::OK, clock_view(&app)))
}

fn clock_view(app: &App) -> SandboxClockView {
    SandboxClockView {
        now: app.billing_clock.now(),
        real_time: app.clock.now(),
    }
}

/// Advance the sandbox clock
///
/// Moves the billing time forward, day by day, and applies everything that falls due. All tenants of the sandbox share the
/// clock. Long steps take some seconds; a step continues if the connection is closed.
#[utoipa::path(
    put,
    path = "/sandbox/clock",
    tag = "Sandbox",
    operation_id = "advanceSandboxClock",
    request_body(content = AdvanceSandboxClock, description = "The new billing time."),
    responses(
        (status = 200, description = "The clock, and what happened to the tenant's subscriptions.", body = AdvancedClockView),
        (status = 409, description = "Another change of the sandbox is running (`sandbox_busy`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn advance(
    State(app): State<Arc<App>>,
    caller: Caller<SandboxWrite>,
    fields: BodyFields,
) -> Result<NoStore<AdvancedClockView>, Problem> {
    check_mode(&app)?;
    let from = app.billing_clock.now();
    let to = parse_advance(fields, from)?;
    let tenant = caller.tenant().id;
    let change = {
        let app = app.clone();
        async move {
            sandbox_clock::advance(&app.db, app.clocks(), to, |_, _| {}).await?;
            app.billing_clock
                .set(instance::clock_offset(app.db.home()?).await?);
            anyhow::Ok(ClockReport::load(&app.db, &[tenant], (from, to), 0).await?)
        }
    };
    let report = run_change(&app, change).await?;
    let view = AdvancedClockView {
        clock: clock_view(&app),
        renewed: report.count(Transition::Renewed),
        past_due: report.count(Transition::PastDue),
        unpaid: report.count(Transition::Unpaid),
        expired: report.count(Transition::Expired),
        events: report.count_events(),
    };
    Ok(NoStore(StatusCode::OK, view))
}
