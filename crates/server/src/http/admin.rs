//! Health for whoever supervises the process. On a listener of its own, away from callers.

use axum::{Router, routing::get};

/// `/livez`: the process runs. Never touches the database: a restart would not mend that.
pub fn router() -> Router {
    Router::new().route("/livez", get(async || "ok\n"))
}
