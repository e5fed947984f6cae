//! What only a sandbox has: a billing clock that can be advanced, and demo data.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /sandbox/clock` | `clock_endpoints.rs` | secret clients with `sandbox:write` |
//! | `PUT /sandbox/clock` | `clock_endpoints.rs` | secret clients with `sandbox:write` |
//! | `POST /sandbox/demo-data` | `demo_data_endpoint.rs` | secret clients with `sandbox:write` |
//!
//! In live mode, the endpoints respond with `sandbox_only`. `perennial sandbox clock` and `perennial seed` call the same
//! functions. A change continues if its client disconnects, and only one runs at a time in an instance.

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    config::Mode,
    db,
    http::problem::{Code, Problem},
};

mod clock_body;
mod clock_endpoints;
pub mod demo_data;
mod demo_data_endpoint;
mod sandbox_clock;

pub use clock_body::{add_span, parse_span};
use sandbox_clock::MAX_ADVANCE;
pub use sandbox_clock::{ClockReport, advance, apply_all_due, reset};

/// The path of the clock, whose requests may take long.
pub const CLOCK_PATH: &str = "/sandbox/clock";
/// The path of the demo data, whose requests may take long.
pub const DEMO_DATA_PATH: &str = "/sandbox/demo-data";

/// Returns the endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(clock_endpoints::read, clock_endpoints::advance))
        .routes(routes!(demo_data_endpoint::create))
}

/// Rejects a request to a live installation.
fn check_mode(app: &App) -> Result<(), Problem> {
    if app.mode == Mode::Sandbox {
        return Ok(());
    }
    let detail =
        "this installation is in live mode; time moves and data is created only in a sandbox";
    Err(Problem::new(Code::SandboxOnly, detail))
}

/// Runs a change of the sandbox to its end, also if the client disconnects. Rejects it while another one runs.
async fn run_change<T: Send + 'static>(
    app: &App,
    change: impl Future<Output = anyhow::Result<T>> + Send + 'static,
) -> Result<T, Problem> {
    let Ok(guard) = app.sandbox_changes.clone().try_lock_owned() else {
        let detail = "the clock is being advanced or demo data is being created; retry later";
        return Err(Problem::retryable(Code::SandboxBusy, detail));
    };
    let running = tokio::spawn(async move {
        let result = change.await;
        drop(guard);
        result
    });
    let result = running.await.map_err(|error| Problem::internal(&error))?;
    result.map_err(|error| match error.downcast::<db::Error>() {
        Ok(error) => error.into(),
        Err(error) => Problem::internal(&format!("{error:#}")),
    })
}
