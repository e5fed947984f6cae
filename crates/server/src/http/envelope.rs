//! What every request passes on its way in and every answer on its way out: a request id, a span
//! for the log, problem documents, the headers that all answers carry, and the measurements.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, OnceLock},
    task::Poll,
    time::{Duration, Instant},
};

use axum::{
    extract::Request,
    http::{HeaderValue, Method, StatusCode, Version, header},
    response::{IntoResponse, Response},
};
use metrics::Histogram;
use tracing::{Instrument, Span};

use super::{
    problem::{Code, Problem},
    request_id::{self, RequestId},
    span,
};
use crate::{clock::Clock, logging};

/// The version of the interface: a date, since paths carry none and changes only add.
const API_VERSION: HeaderValue = HeaderValue::from_static("2026-11-15");

/// How many headers are added to every answer, at most: those here, the rates, and what hyper adds.
const ALL_HAVE: usize = 10;

/// Until when a request may take.
pub type Deadline = tokio::time::Instant;

/// How long a request may take, from its header to its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// What the envelope knows of the service.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// Our own address, without a slash at its end.
    pub public_url: Arc<str>,
    /// Whether spans go to a collector.
    pub traced: bool,
}

/// Wraps a request that goes to this route.
pub async fn wrap<F: Future<Output = Response>>(
    envelope: &Envelope,
    route: &'static str,
    mut request: Request,
    next: impl FnOnce(Request, Deadline) -> F,
) -> Response {
    let id = RequestId::of(request.headers(), Clock::System.now());
    request.extensions_mut().insert(id.clone());
    let logged = logging::Request {
        id: id.shared(),
        method: request.method().clone(),
        route,
    };
    logged
        .during(answer(envelope, id, route, request, next))
        .await
}

/// The answer to a request, with what all answers have.
async fn answer<F: Future<Output = Response>>(
    envelope: &Envelope,
    id: RequestId,
    route: &'static str,
    request: Request,
    next: impl FnOnce(Request, Deadline) -> F,
) -> Response {
    let begun = Instant::now();
    let deadline = Deadline::from_std(begun + REQUEST_TIMEOUT);
    let method = request.method().clone();
    let uri = request.uri().clone();
    let span = if envelope.traced {
        span::for_collector(id.as_str(), request.headers(), &method, route)
    } else {
        Span::none()
    };
    let in_flight = InFlight::begin();
    // Boxed, because it is large, and would be moved into each of the next ones.
    let answered = Box::pin(async {
        match well_formed(&request) {
            Ok(()) => caught(next(request, deadline)).await,
            Err(problem) => problem.into_response(),
        }
    });
    let mut response = answered.instrument(span.clone()).await;
    let _entered = span.enter();

    if let Some(problem) = problem_of(&mut response) {
        response = problem.render(response, &envelope.public_url, uri.path(), id.as_str());
    }
    let headers = response.headers_mut();
    headers.reserve(ALL_HAVE);
    headers.insert("api-version", API_VERSION);
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        headers.insert(request_id::HEADER, value);
    }

    drop(in_flight);
    let status = response.status().as_u16();
    let seconds = begun.elapsed().as_secs_f64();
    if envelope.traced {
        span.record("status", status);
        if status >= 500 {
            span.record("otel.status_code", "ERROR");
        }
    }
    tracing::debug!(status, seconds, "answered");
    measure(label(&method), route, status, seconds);
    response
}

/// An answer in any case: of whatever takes too long or panics, a problem. Dropped where it stood, a handler leaves
/// nothing behind: its transaction is rolled back, unless its COMMIT is on the way; then the caller learns from its
/// Idempotency-Key what came of it.
pub async fn bounded(deadline: Deadline, answer: impl Future<Output = Response>) -> Response {
    let answered = in_time(deadline, caught(answer)).await;
    answered.unwrap_or_else(IntoResponse::into_response)
}

/// What comes of something that may not take longer than until then.
pub async fn in_time<T>(deadline: Deadline, work: impl Future<Output = T>) -> Result<T, Problem> {
    let done = tokio::time::timeout_at(deadline, work).await;
    done.map_err(|_| {
        tracing::warn!("a request took too long");
        Problem::unavailable("this took too long and was given up; try again in a moment")
    })
}

/// A handler that panics has made a mistake, and so have we.
async fn caught(answer: impl Future<Output = Response>) -> Response {
    let mut answer = pin!(answer);
    poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| {
            Poll::Ready(Problem::internal(&"a handler panicked").into_response())
        })
    })
    .await
}

/// Notes how long a request took. Each thread keeps what it writes to: finding that by its labels takes longer
/// than the writing.
fn measure(method: &'static str, route: &'static str, status: u16, seconds: f64) {
    type Labels = (u16, &'static str, &'static str);
    thread_local! {
        static SERIES: RefCell<BTreeMap<Labels, Histogram>> = const { RefCell::new(BTreeMap::new()) };
    }
    SERIES.with_borrow_mut(|series| {
        let known = series.entry((status, method, route)).or_insert_with(|| {
            let labels = [
                ("method", method.to_owned()),
                ("route", route.to_owned()),
                ("status", status.to_string()),
            ];
            metrics::histogram!("perennial_http_request_seconds", &labels)
        });
        known.record(seconds);
    });
}

/// What hyper lets pass and HTTP does not: a request for nobody, or for two at once.
fn well_formed(request: &Request) -> Result<(), Problem> {
    let hosts = request.headers().get_all(header::HOST).iter().count();
    let wanted = usize::from(request.version() >= Version::HTTP_11);
    if (wanted..=1).contains(&hosts) {
        return Ok(());
    }
    let detail = format!("the header Host stands {hosts} times; HTTP/1.1 wants it exactly once");
    Err(Problem::new(Code::InvalidRequest, detail))
}

/// A request that is being served; counted until it is answered, or its caller has hung up.
struct InFlight(&'static metrics::Gauge);

impl InFlight {
    fn begin() -> Self {
        static GAUGE: OnceLock<metrics::Gauge> = OnceLock::new();
        let gauge = GAUGE.get_or_init(|| metrics::gauge!("perennial_http_requests_in_flight"));
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

/// A method's name for the metrics; a caller who invents methods must not make new series.
fn label(method: &Method) -> &'static str {
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

/// The problem that a response stands for: one of ours, or an error that the framework answered
/// for itself.
fn problem_of(response: &mut Response) -> Option<Problem> {
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        return Some(problem);
    }
    (response.status() == StatusCode::METHOD_NOT_ALLOWED).then(|| {
        // The framework adds that header to what we return here.
        let detail = "the header Allow lists the methods that this path takes";
        Problem::new(Code::MethodNotAllowed, detail)
    })
}
