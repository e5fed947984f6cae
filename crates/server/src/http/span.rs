//! The span of a request: what is logged while it is served says which request it was, and a trace
//! that began at the caller goes on here.

use axum::http::{HeaderMap, Method};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::{Span, field::Empty};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// A span for a request; the names that begin with `otel` are for the collector.
pub(super) fn of_request(id: &str, method: &Method, route: &str) -> Span {
    tracing::info_span!(
        "request",
        id,
        %method,
        route,
        status = Empty,
        otel.name = Empty,
        otel.kind = Empty,
        otel.status_code = Empty
    )
}

/// Names the span as collectors like it, and hangs it under the caller's, if the caller has one
/// (`traceparent`, as the W3C lays it down).
pub(super) fn prepare_for_collector(
    span: &Span,
    headers: &HeaderMap,
    method: &Method,
    route: &str,
) {
    span.record("otel.name", format!("{method} {route}"));
    span.record("otel.kind", "server");
    if headers.contains_key("traceparent") {
        let parent = TraceContextPropagator::new().extract(&Carrier(headers));
        if let Err(error) = span.set_parent(parent) {
            tracing::debug!(%error, "the caller's trace cannot be gone on with");
        }
    }
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
