//! What every request passes on its way in and every answer on its way out: a request id, a span
//! for the log, problem documents, the headers that all answers carry, and the measurements.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::Poll,
    time::{Duration, Instant},
};

use axum::{
    extract::Request,
    http::{HeaderName, HeaderValue, Method, StatusCode, Version, header},
    response::{IntoResponse, Response},
};
use metrics::Histogram;
use tracing::{Instrument, Span};

use super::{
    answer,
    peer::Sender,
    problem::{Code, Problem},
    request_id::{self, RequestId},
    span,
};
use crate::{clock::Clock, logging};

/// The version of the interface: a date, since paths carry none and changes only add.
const API_VERSION: (HeaderName, HeaderValue) = (
    HeaderName::from_static("api-version"),
    HeaderValue::from_static("2026-11-15"),
);
/// What we say that it is, it is.
const AS_DECLARED: (HeaderName, HeaderValue) = (
    header::X_CONTENT_TYPE_OPTIONS,
    HeaderValue::from_static("nosniff"),
);

/// Until when a request may take.
pub type Deadline = tokio::time::Instant;

/// A request has come.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// When.
    pub at: Instant,
    /// From whom.
    pub sender: Sender,
    /// What it is called.
    pub id: RequestId,
}

impl Arrival {
    /// Until when it may take.
    pub fn deadline(&self) -> Deadline {
        Deadline::from_std(self.at + REQUEST_TIMEOUT)
    }
}

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
    request: Box<Request>,
    sender: Sender,
    next: impl FnOnce(Box<Request>, Arrival) -> F,
) -> Response {
    let arrival = Arrival {
        at: Instant::now(),
        sender,
        id: RequestId::of(request.headers(), Clock::System.now()),
    };
    let logged = logging::Request {
        id: arrival.id.shared(),
        method: request.method().clone(),
        route,
    };
    logged
        .during(answer(envelope, arrival, route, request, next))
        .await
}

/// The answer to a request, with what all answers have.
async fn answer<F: Future<Output = Response>>(
    envelope: &Envelope,
    arrival: Arrival,
    route: &'static str,
    request: Box<Request>,
    next: impl FnOnce(Box<Request>, Arrival) -> F,
) -> Response {
    let (at, id) = (arrival.at, arrival.id.clone());
    let method = request.method().clone();
    let uri = request.uri().clone();
    let span = if envelope.traced {
        span::for_collector(id.as_str(), request.headers(), &method, route)
    } else {
        Span::none()
    };
    let in_flight = InFlight::begin();
    let answered = async {
        match well_formed(&request) {
            Ok(()) => caught(next(request, arrival)).await,
            Err(problem) => problem.into_response(),
        }
    };
    let mut response = answered.instrument(span.clone()).await;
    let _entered = span.enter();

    if let Some(problem) = problem_of(&mut response) {
        response = problem.render(response, &envelope.public_url, uri.path(), id.as_str());
    }
    let headers = response.headers_mut();
    headers.reserve(answer::HEADERS.saturating_sub(headers.len()));
    for (name, value) in [API_VERSION, AS_DECLARED] {
        headers.insert(name, value);
    }
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        headers.insert(request_id::HEADER, value);
    }

    drop(in_flight);
    let status = response.status().as_u16();
    let seconds = at.elapsed().as_secs_f64();
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
    let mut work = pin!(work);
    // Most need not wait for anything, and so need no timer.
    let at_once = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
    let done = match at_once {
        Poll::Ready(done) => Ok(done),
        Poll::Pending => tokio::time::timeout_at(deadline, work).await,
    };
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

/// How many requests are being served.
pub fn in_flight() -> u32 {
    IN_FLIGHT.load(Ordering::Relaxed)
}

static IN_FLIGHT: AtomicU32 = AtomicU32::new(0);

/// A request that is being served; counted until it is answered, or its caller has hung up.
struct InFlight;

impl InFlight {
    fn begin() -> Self {
        IN_FLIGHT.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        IN_FLIGHT.fetch_sub(1, Ordering::Relaxed);
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
