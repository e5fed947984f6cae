//! Middleware for every request: request id, log context and trace span, rendering of problem
//! documents, common response headers, the request timeout, recovery from panics, and metrics.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::Poll,
    time::{Duration, Instant},
};

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderName, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use metrics::Histogram;
use tracing::{Instrument, Span};

use super::{
    allowed_hosts::AllowedHosts,
    client_ip::RemoteAddr,
    etag,
    problem::{Code, Problem},
    request_id::{self, RequestIdHeader},
    response, span,
};
use crate::{clock::Clock, logging};

/// The API version is a date. Paths contain no version, because changes are backward compatible.
const API_VERSION: (HeaderName, HeaderValue) = (
    HeaderName::from_static("api-version"),
    HeaderValue::from_static("2026-11-15"),
);
const NOSNIFF: (HeaderName, HeaderValue) = (
    header::X_CONTENT_TYPE_OPTIONS,
    HeaderValue::from_static("nosniff"),
);
/// The time from the end of the request's headers to its response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a request may wait for something to happen, in addition to [`REQUEST_TIMEOUT`].
pub const MAX_LONG_POLL_WAIT: Duration = Duration::from_secs(25);

/// Response extension: how long the request waited for something to happen. Metrics leave this time out, so that
/// waiting requests do not look slow.
#[derive(Debug, Clone, Copy)]
pub struct LongPollWait(pub Duration);

pub type Deadline = tokio::time::Instant;

/// The properties of a request that are known before routing.
#[derive(Debug, Clone)]
pub struct RequestContext {
    pub received_at: Instant,
    pub remote_addr: RemoteAddr,
    pub id: RequestIdHeader,
    /// Whether the listener serves the console, and so accepts the sessions of staff members.
    pub serves_console: bool,
}

impl RequestContext {
    pub fn deadline(&self) -> Deadline {
        Deadline::from_std(self.received_at + REQUEST_TIMEOUT)
    }

    /// Returns the deadline of an endpoint whose requests may wait.
    pub fn long_poll_deadline(&self) -> Deadline {
        self.deadline() + MAX_LONG_POLL_WAIT
    }
}

#[derive(Debug, Clone)]
pub struct RequestMiddleware {
    /// Without a trailing slash.
    pub public_url: Arc<str>,
    /// Whether traces are exported.
    pub traced: bool,
    pub allowed_hosts: AllowedHosts,
    /// Whether the listener serves the console.
    pub serves_console: bool,
}

impl RequestMiddleware {
    /// Runs `next` for a request to this route and completes its response.
    pub async fn run<F: Future<Output = Response>>(
        &self,
        route: &'static str,
        request: Box<Request>,
        remote_addr: RemoteAddr,
        next: impl FnOnce(Box<Request>, RequestContext) -> F,
    ) -> Response {
        let context = RequestContext {
            received_at: Instant::now(),
            remote_addr,
            id: RequestIdHeader::from_headers(request.headers(), Clock::System.now()),
            serves_console: self.serves_console,
        };
        let log_context = logging::RequestLogContext {
            id: context.id.shared(),
            method: request.method().clone(),
            route,
        };
        log_context
            .scope(self.respond(context, route, request, next))
            .await
    }

    async fn respond<F: Future<Output = Response>>(
        &self,
        context: RequestContext,
        route: &'static str,
        request: Box<Request>,
        next: impl FnOnce(Box<Request>, RequestContext) -> F,
    ) -> Response {
        let (received_at, id) = (context.received_at, context.id.clone());
        let method = request.method().clone();
        let uri = request.uri().clone();
        let known_tags = match method {
            Method::GET | Method::HEAD => etag::if_none_match(request.headers()),
            _ => None,
        };
        let span = if self.traced {
            span::for_request(id.as_str(), request.headers(), &method, route)
        } else {
            Span::none()
        };
        let in_flight = InFlight::start();
        let handled = async {
            match self.allowed_hosts.check(&request) {
                Ok(()) => catch_panic(next(request, context)).await,
                Err(problem) => problem.into_response(),
            }
        };
        let mut response = handled.instrument(span.clone()).await;
        let _entered = span.enter();

        if let Some(problem) = take_problem(&mut response) {
            response = problem.render(response, &self.public_url, uri.path(), id.as_str());
        }
        if let Some(tags) = known_tags {
            response = not_modified(response, &tags);
        }
        let headers = response.headers_mut();
        headers.reserve(response::HEADER_CAPACITY.saturating_sub(headers.len()));
        for (name, value) in [API_VERSION, NOSNIFF] {
            headers.insert(name, value);
        }
        // Unless the endpoint allows it, neither browsers nor proxies may store a response.
        headers
            .entry(header::CACHE_CONTROL)
            .or_insert(response::NO_STORE);
        if let Ok(value) = HeaderValue::from_str(id.as_str()) {
            headers.insert(request_id::HEADER, value);
        }

        drop(in_flight);
        let status = response.status().as_u16();
        let waited = response.extensions_mut().remove::<LongPollWait>();
        let waited = waited.map_or(Duration::ZERO, |LongPollWait(waited)| waited);
        let seconds = received_at.elapsed().saturating_sub(waited).as_secs_f64();
        if self.traced {
            span.record("status", status);
            if status >= 500 {
                span.record("otel.status_code", "ERROR");
            }
        }
        tracing::debug!(status, seconds, "response");
        record_duration(method_label(&method), route, status, seconds);
        response
    }
}

/// Returns 304 without a body if the client already has the response, by its entity tag.
fn not_modified(mut response: Response, tags: &[HeaderValue]) -> Response {
    let tag = response.headers().get(header::ETAG);
    let is_known = tag
        .and_then(|tag| tag.to_str().ok())
        .is_some_and(|tag| etag::matches_weakly(tags, tag));
    if response.status() == StatusCode::OK && is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        let headers = response.headers_mut();
        for name in [
            header::CONTENT_TYPE,
            header::CONTENT_LENGTH,
            header::CONTENT_ENCODING,
        ] {
            headers.remove(name);
        }
    }
    response
}

/// Maps timeouts to 503 and panics to 500.
///
/// Dropping the handler rolls back its transaction. If its COMMIT was already sent, the client can
/// find out the outcome by retrying with the same Idempotency-Key.
pub async fn respond_within(
    deadline: Deadline,
    handler: impl Future<Output = Response>,
) -> Response {
    let result = within_deadline(deadline, catch_panic(handler)).await;
    result.unwrap_or_else(IntoResponse::into_response)
}

/// Returns `unavailable` if `work` is not finished at the deadline.
pub async fn within_deadline<T>(
    deadline: Deadline,
    work: impl Future<Output = T>,
) -> Result<T, Problem> {
    let mut work = pin!(work);
    // Hot path: most requests finish at the first poll and need no timer (measured, with the reserved
    // headers and boxed futures: session check 33,100 to 31,300 instructions).
    let first_poll = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
    let result = match first_poll {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => tokio::time::timeout_at(deadline, work).await,
    };
    result.map_err(|_| {
        tracing::warn!("request timed out");
        Problem::unavailable("the request timed out; retry later")
    })
}

async fn catch_panic(handler: impl Future<Output = Response>) -> Response {
    let result = AssertUnwindSafe(handler).catch_unwind().await;
    result.unwrap_or_else(|_| Problem::internal(&"a handler panicked").into_response())
}

/// Hot path: each thread caches the histograms that it writes to, because looking one up by its labels
/// takes longer than recording a value (measured, with the hand-assembled layers and the cached
/// session response: session check 0.47 to 0.53 of the bare route's rate).
fn record_duration(method: &'static str, route: &'static str, status: u16, seconds: f64) {
    type Labels = (u16, &'static str, &'static str);
    thread_local! {
        static HISTOGRAMS: RefCell<BTreeMap<Labels, Histogram>> = const { RefCell::new(BTreeMap::new()) };
    }
    HISTOGRAMS.with_borrow_mut(|histograms| {
        let histogram = histograms
            .entry((status, method, route))
            .or_insert_with(|| {
                let labels = [
                    ("method", method.to_owned()),
                    ("route", route.to_owned()),
                    ("status", status.to_string()),
                ];
                metrics::histogram!("perennial_http_request_seconds", &labels)
            });
        histogram.record(seconds);
    });
}

/// Returns the number of requests that are being handled.
pub fn in_flight() -> u32 {
    IN_FLIGHT.load(Ordering::Relaxed)
}

static IN_FLIGHT: AtomicU32 = AtomicU32::new(0);

/// Counts a request until it has a response or its client has disconnected.
struct InFlight;

impl InFlight {
    fn start() -> Self {
        IN_FLIGHT.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        IN_FLIGHT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the metric label of a method. Unknown methods share one, to bound the number of series.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Removes the problem from a response, or creates one for an error response of axum's router.
fn take_problem(response: &mut Response) -> Option<Problem> {
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        return Some(problem);
    }
    (response.status() == StatusCode::METHOD_NOT_ALLOWED).then(|| {
        // axum sets the Allow header.
        let detail = "the header Allow lists the methods of this path";
        Problem::new(Code::MethodNotAllowed, detail)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panic_of_a_handler_is_an_internal_error() {
        let deadline = Deadline::now() + REQUEST_TIMEOUT;
        let response = respond_within(deadline, async { panic!("a defect") }).await;
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
