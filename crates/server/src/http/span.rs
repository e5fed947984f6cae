//! The OpenTelemetry span of a request, as a child of the client's span if it sent one.

use axum::http::{HeaderMap, Method};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::{Span, field::Empty};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Creates a span whose parent comes from the header `traceparent` (W3C Trace Context).
pub(super) fn for_request(id: &str, headers: &HeaderMap, method: &Method, route: &str) -> Span {
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
        let parent = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
        if let Err(error) = span.set_parent(parent) {
            tracing::debug!(%error, "cannot use the client's trace context");
        }
    }
    span
}

struct HeaderExtractor<'a>(&'a HeaderMap);

impl Extractor for HeaderExtractor<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}
