//! The events of a tenant, in the order in which they were committed.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /events` | `read_events.rs` | secret clients with `events:read` |
//! | `GET /events/{id}` | `read_event.rs` | secret clients with `events:read` |
//!
//! The list is a page (`read_events.rs`), for which the request may wait, or a stream of server-sent events
//! (`server_sent_events.rs`). Both read [`events::log`](crate::events::log), and neither holds a database connection while it
//! waits. The number of waiting requests is limited per tenant and process.

use std::sync::Arc;

use perennial_domain::TenantId;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    http::{
        concurrency_limit::{ConcurrencyPermit, ExceededLimit},
        problem::{Code, Problem},
    },
};

mod event_cursor;
mod event_params;
mod read_event;
mod read_events;
mod server_sent_events;

/// The path of the endpoint, whose requests may take longer than others.
pub const PATH: &str = "/events";

/// Returns the endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(read_events::read_events))
        .routes(routes!(read_event::read_event))
}

/// Counts a request that waits for events, until the permit is dropped.
fn start_waiting(app: &App, tenant: TenantId) -> Result<ConcurrencyPermit<TenantId>, Problem> {
    const RETRY_AFTER_SECONDS: u32 = 5;
    app.event_readers.acquire(tenant).map_err(|exceeded| {
        let shed_by = match exceeded {
            ExceededLimit::PerKey => "event_readers_per_tenant",
            ExceededLimit::Total => "event_readers",
        };
        metrics::counter!("perennial_shed_total", "by" => shed_by).increment(1);
        let problem = match exceeded {
            ExceededLimit::PerKey => {
                let limit = app.event_readers.max_per_key();
                let detail = format!(
                    "{limit} requests of this tenant already wait for events; share a stream, or retry later"
                );
                Problem::new(Code::RateLimited, detail)
            }
            ExceededLimit::Total => {
                let detail = "too many requests wait for events; retry later";
                Problem::new(Code::Overloaded, detail)
            }
        };
        problem.retry_after(RETRY_AFTER_SECONDS)
    })
}
