//! The admin endpoints, on a separate listener: `/livez`, `/readyz` and `/metrics`.
//!
//! Liveness does not check the database, because restarting the process would not repair it. Readiness
//! does, so that load balancers send requests to instances that can serve them.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{Router, http::StatusCode, routing::get};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio_util::sync::CancellationToken;

use crate::{app::App, db::HOME, events, http::middleware, webhooks};

mod event_metrics;
mod payment_metrics;

/// The app, once its databases are migrated and connected.
pub type ReadyApp = Arc<OnceLock<Arc<App>>>;

const PING_TIMEOUT: Duration = Duration::from_secs(1);

pub fn router(ready_app: &ReadyApp, metrics: PrometheusHandle, stop: CancellationToken) -> Router {
    let (readiness_app, metrics_app) = (ready_app.clone(), ready_app.clone());
    Router::new()
        .route("/livez", get(async || "ok\n"))
        .route(
            "/readyz",
            get(async move || readiness(readiness_app.get(), &stop).await),
        )
        .route(
            "/metrics",
            get(async move || {
                metrics::gauge!("perennial_http_requests_in_flight").set(middleware::in_flight());
                if let Some(app) = metrics_app.get() {
                    record_connections(app);
                    record_sessions(app);
                    record_signing_key(app).await;
                    record_event_log(app).await;
                    record_webhooks(app).await;
                    payment_metrics::record(app).await;
                }
                metrics.render()
            }),
        )
}

/// Installs the global metrics recorder. Fails if one is already installed.
pub fn install_metrics() -> anyhow::Result<PrometheusHandle> {
    let seconds = [
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
    ];
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &seconds)?
        .install_recorder()?;
    metrics::describe_histogram!(
        "perennial_http_request_seconds",
        "Seconds from a request's header to its response, by route"
    );
    metrics::describe_gauge!(
        "perennial_http_requests_in_flight",
        "Requests being handled"
    );
    metrics::describe_gauge!(
        "perennial_connections_open",
        "Open connections, by listener; PERENNIAL_CONNECTIONS limits those of the API"
    );
    metrics::describe_counter!(
        "perennial_shed_total",
        "Rejected requests and connections: by rate limit (client, payment account, peer, peer/56, peer/48), by admission control \
         (connection, lane), by connections_per_peer, by the limits of waiting event readers (event_readers, \
         event_readers_per_tenant); connections closed for new ones (connections)"
    );
    metrics::describe_gauge!(
        "perennial_event_readers",
        "Requests that wait for events; PERENNIAL_EVENT_READERS limits them"
    );
    metrics::describe_histogram!(
        "perennial_database_wait_seconds",
        "Seconds that a request waited for a pooled connection (pool) or for a pipelined read (lane), by cell"
    );
    metrics::describe_gauge!(
        "perennial_database_lanes_open",
        "Open pipelined connections for reads by key, by cell"
    );
    metrics::describe_gauge!(
        "perennial_database_pool_open",
        "Open pooled connections, by cell"
    );
    metrics::describe_gauge!(
        "perennial_database_pool_idle",
        "Idle pooled connections, by cell"
    );
    metrics::describe_counter!(
        "perennial_session_checks_total",
        "Session checks, from the cache or from the database"
    );
    metrics::describe_gauge!(
        "perennial_session_cache_entries",
        "Cached sessions, by cell; PERENNIAL_SESSION_CACHE_ENTRIES limits them"
    );
    metrics::describe_counter!(
        "perennial_client_reads_total",
        "Clients and allowed origins read from the database, because they were not cached"
    );
    metrics::describe_gauge!(
        "perennial_notifications_caught_up",
        "Whether notifications arrive, by cell; 0: sessions and payment accounts, and in the home cell \
         clients, are read from the database instead of the cache"
    );
    metrics::describe_gauge!(
        "perennial_signing_key_started_timestamp_seconds",
        "When the current key started to sign access tokens, in seconds since the Unix epoch"
    );
    metrics::describe_counter!(
        "perennial_identity_provider_failures_total",
        "Failures of an identity provider, by issuer: to return its metadata and keys (discovery), or to verify the \
         token of a sign-in (sign_in)"
    );
    metrics::describe_counter!(
        "perennial_refusals_total",
        "Refused credentials and authorizations (401 and 403 responses), by problem code"
    );
    metrics::describe_counter!(
        "perennial_task_items_total",
        "Items processed by background tasks"
    );
    metrics::describe_counter!(
        "perennial_task_failures_total",
        "Failed runs of background tasks"
    );
    metrics::describe_gauge!(
        "perennial_task_succeeded_timestamp_seconds",
        "When a background task last succeeded, in seconds since the Unix epoch"
    );
    metrics::describe_gauge!(
        "perennial_subscriptions_late_seconds",
        "How late the oldest due transition of a subscription was at the last check, by cell"
    );
    event_metrics::describe();
    payment_metrics::describe();
    let upkeep = handle.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            upkeep.run_upkeep();
        }
    });
    Ok(handle)
}

/// Returns 200 while the home database responds. If another cell is unavailable, the response only
/// mentions it, because tenants of the other cells can still be served.
async fn readiness(app: Option<&Arc<App>>, stop: &CancellationToken) -> (StatusCode, String) {
    let not_ready = |reason: &str| (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n"));
    if stop.is_cancelled() {
        return not_ready("stopping");
    }
    let Some(app) = app else {
        return not_ready("waiting for the database");
    };
    if app.refresh_keys.0.is_replaced() {
        return not_ready("the master key was replaced; set PERENNIAL_MASTER_KEY and restart");
    }
    let mut report = String::from("ready\n");
    for cell in app.db.cell_names() {
        match check_cell(app, cell).await {
            Ok(()) => {}
            Err(reason) if cell == HOME => return not_ready(reason),
            Err(reason) => report += &format!("cell {cell}: {reason}\n"),
        }
    }
    (StatusCode::OK, report)
}

/// Pings a cell's database. The error is the reason why the cell cannot be used.
async fn check_cell(app: &App, cell: &str) -> Result<(), &'static str> {
    let Ok(database) = app.db.cell(cell) else {
        return Err("the database is not ready");
    };
    match tokio::time::timeout(PING_TIMEOUT, database.ping()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err("the database is unavailable"),
        Err(_) => Err("the database is slow"),
    }
}

/// Converts a number by way of `u32`, which `f64` represents exactly.
fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn record_sessions(app: &App) {
    for (cell, sessions) in app.authenticator.sessions.cached_sessions() {
        let label = [("cell", cell.to_owned())];
        metrics::gauge!("perennial_session_cache_entries", &label).set(number(sessions));
    }
    for (cell, is_caught_up) in app.authenticator.sessions.caught_up_cells() {
        let label = [("cell", cell.to_owned())];
        metrics::gauge!("perennial_notifications_caught_up", &label)
            .set(f64::from(u8::from(is_caught_up)));
    }
}

/// Records since when the signing key is in use. Keeps the last value while the database is
/// unavailable: a scrape must work without it.
async fn record_signing_key(app: &App) {
    let keyring = app.authenticator.tokens.keyring();
    let signs_since = keyring.signs_since(app.clock.now());
    if let Ok(Ok(Some(since))) = tokio::time::timeout(PING_TIMEOUT, signs_since).await {
        metrics::gauge!("perennial_signing_key_started_timestamp_seconds")
            .set(since.as_duration().as_secs_f64());
    }
}

/// Records for how long events have been waiting for a position. Keeps the last value of a cell whose database is
/// unavailable.
async fn record_event_log(app: &App) {
    for cell in app.db.cell_names() {
        let Ok(database) = app.db.cell(cell) else {
            continue;
        };
        let behind = async {
            let connection = database.background_connection().await?;
            events::log::seconds_behind(&connection).await
        };
        if let Ok(Ok(seconds)) = tokio::time::timeout(PING_TIMEOUT, behind).await {
            metrics::gauge!("perennial_event_log_behind_seconds", "cell" => cell.to_owned())
                .set(seconds);
        }
    }
}

/// Records what webhook endpoints have not received. Keeps the last values of a cell whose database is unavailable.
async fn record_webhooks(app: &App) {
    for cell in app.db.cell_names() {
        let Ok(database) = app.db.cell(cell) else {
            continue;
        };
        let backlog = async {
            let connection = database.background_connection().await?;
            webhooks::measure_backlog(&connection).await
        };
        if let Ok(Ok(backlog)) = tokio::time::timeout(PING_TIMEOUT, backlog).await {
            let label = [("cell", cell.to_owned())];
            let failing = u32::try_from(backlog.failing_endpoints).unwrap_or(u32::MAX);
            metrics::gauge!("perennial_webhook_endpoints_failing", &label).set(failing);
            metrics::gauge!("perennial_webhook_behind_seconds", &label).set(backlog.behind_seconds);
        }
    }
}

fn record_connections(app: &App) {
    metrics::gauge!("perennial_event_readers").set(number(app.event_readers.in_use()));
    for cell in app.db.cell_names() {
        let Ok(database) = app.db.cell(cell) else {
            continue;
        };
        let (open, idle) = database.pool_status();
        let label = [("cell", cell.to_owned())];
        metrics::gauge!("perennial_database_lanes_open", &label)
            .set(number(database.open_pipelined_connections()));
        metrics::gauge!("perennial_database_pool_open", &label).set(number(open));
        metrics::gauge!("perennial_database_pool_idle", &label).set(number(idle));
    }
}
