//! What a supervisor sees, on a listener of its own: `/livez`, `/readyz` and `/metrics`.
//!
//! Liveness never touches the database: a restart of the process would not bring that back.
//! Readiness does: a load balancer should send requests where they can be served.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{Router, http::StatusCode, routing::get};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio_util::sync::CancellationToken;

use crate::{app::App, db::HOME, http::envelope};

/// The app, once its databases are prepared.
pub type Prepared = Arc<OnceLock<Arc<App>>>;

/// How long a database may take to answer before it counts as away.
const PATIENCE: Duration = Duration::from_secs(1);

/// The endpoints.
pub fn router(prepared: &Prepared, metrics: PrometheusHandle, stop: CancellationToken) -> Router {
    let (ready, measured) = (prepared.clone(), prepared.clone());
    Router::new()
        .route("/livez", get(async || "ok\n"))
        .route(
            "/readyz",
            get(async move || readiness(ready.get(), &stop).await),
        )
        .route(
            "/metrics",
            get(async move || {
                metrics::gauge!("perennial_http_requests_in_flight").set(envelope::in_flight());
                if let Some(app) = measured.get() {
                    measure_connections(app);
                }
                metrics.render()
            }),
        )
}

/// Begins to collect measurements; to be called once.
pub fn collect_metrics() -> anyhow::Result<PrometheusHandle> {
    let seconds = [
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
    ];
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &seconds)?
        .install_recorder()?;
    metrics::describe_histogram!(
        "perennial_http_request_seconds",
        "Time from a request's header to its answer, by route"
    );
    metrics::describe_gauge!(
        "perennial_http_requests_in_flight",
        "Requests that are being served"
    );
    metrics::describe_gauge!(
        "perennial_connections_open",
        "Open connections, by listener; PERENNIAL_CONNECTIONS is the most of the interface's"
    );
    metrics::describe_counter!(
        "perennial_shed_total",
        "What was turned away at once: by a rate (client, peer), by a line that is too long (connection, \
         lane), by connections_per_peer"
    );
    metrics::describe_histogram!(
        "perennial_database_wait_seconds",
        "Time that a request waited for a connection (pool), or for the answer of a read by key (lane), by cell"
    );
    metrics::describe_gauge!(
        "perennial_database_lanes_open",
        "Open shared connections for reads by key, by cell"
    );
    metrics::describe_gauge!(
        "perennial_database_pool_open",
        "Open connections for writes, by cell"
    );
    metrics::describe_gauge!(
        "perennial_database_pool_idle",
        "Open connections for writes that nobody uses, by cell"
    );
    metrics::describe_counter!(
        "perennial_session_checks_total",
        "Checks whether a session lives: answered from memory, or by asking the database"
    );
    metrics::describe_counter!(
        "perennial_task_items_total",
        "Items that background tasks have done"
    );
    metrics::describe_counter!(
        "perennial_task_failures_total",
        "Failed attempts of background tasks"
    );
    let upkeep = handle.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            upkeep.run_upkeep();
        }
    });
    Ok(handle)
}

/// Ready while the home database answers. A further cell that is away is told, and is no reason to
/// take the tenants of all others away from their load balancer.
async fn readiness(app: Option<&Arc<App>>, stop: &CancellationToken) -> (StatusCode, String) {
    let not_ready = |reason: &str| (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n"));
    if stop.is_cancelled() {
        return not_ready("stopping");
    }
    let Some(app) = app else {
        return not_ready("waiting for the database");
    };
    let mut said = String::from("ready\n");
    for cell in app.db.cells() {
        match answers(app, cell).await {
            Ok(()) => {}
            Err(reason) if cell == HOME => return not_ready(reason),
            Err(reason) => said += &format!("but in the cell {cell}, {reason}\n"),
        }
    }
    (StatusCode::OK, said)
}

/// Whether a cell can be used, told apart: not prepared, slow, or away.
async fn answers(app: &App, cell: &str) -> Result<(), &'static str> {
    let Ok(engine) = app.db.cell(cell) else {
        return Err("the database is not prepared yet");
    };
    match tokio::time::timeout(PATIENCE, engine.ping()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err("the database is away"),
        Err(_) => Err("the database is slow"),
    }
}

fn measure_connections(app: &App) {
    // As gauges they are small numbers, far from where an f64 loses count.
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    for cell in app.db.cells() {
        let Ok(engine) = app.db.cell(cell) else {
            continue;
        };
        let (open, idle) = engine.pool_status();
        let label = [("cell", cell.to_owned())];
        metrics::gauge!("perennial_database_lanes_open", &label).set(number(engine.open_lanes()));
        metrics::gauge!("perennial_database_pool_open", &label).set(number(open));
        metrics::gauge!("perennial_database_pool_idle", &label).set(number(idle));
    }
}
