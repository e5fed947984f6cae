//! The span of a request, for a collector: a trace that began at the caller goes on here.

use axum::http::{HeaderMap, Method};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::{Span, field::Empty};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// A span for a request, named as collectors like it, and hung under the caller's, if the caller has one (`traceparent`,
/// as the W3C lays it down).
pub(super) fn for_collector(id: &str, headers: &HeaderMap, method: &Method, route: &str) -> Span {
    let span = tracing::info_span!(
        "request",
        id,
        %method,
        route,
        status = Empty,
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        otel.status_code = Empty
    );
    if headers.contains_key("traceparent") {
        let parent = TraceContextPropagator::new().extract(&Carrier(headers));
        if let Err(error) = span.set_parent(parent) {
            tracing::debug!(%error, "the caller's trace cannot be gone on with");
        }
    }
    span
}

struct Carrier<'a>(&'a HeaderMap);

impl Extractor for Carrier<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}
