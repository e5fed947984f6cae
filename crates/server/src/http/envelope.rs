//! What every request passes on its way in and every answer on its way out: a request id, a span
//! for the log, problem documents, the headers that all answers carry, and the measurements.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderValue, Method, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tracing::Instrument;

use super::{
    problem::{Code, Problem},
    request_id::{self, RequestId},
};
use crate::clock::Clock;

/// The version of the interface: a date, since paths carry none and changes only add.
const API_VERSION: HeaderValue = HeaderValue::from_static("2026-11-15");

/// How long a request may take, from its header to its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Wraps a request. The state is our own public address.
pub async fn wrap(
    State(public_url): State<Arc<str>>,
    mut request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let id = RequestId::of(request.headers(), Clock::System.now());
    request.extensions_mut().insert(id.clone());
    let method = request.method().clone();
    let uri = request.uri().clone();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or("(none)", MatchedPath::as_str);

    let span = tracing::info_span!("request", id = id.as_str(), %method, route);
    let answered = next.run(request).instrument(span.clone());
    let in_time = tokio::time::timeout(REQUEST_TIMEOUT, answered).await;
    let _entered = span.enter();
    // Dropped where it stood, a handler leaves nothing behind: its transaction is rolled back.
    let mut response = in_time.unwrap_or_else(|_| {
        tracing::warn!("a request took too long");
        Problem::unavailable("this took too long and was given up; try again in a moment")
            .into_response()
    });

    if let Some(problem) = problem_of(&mut response) {
        response = problem.render(&public_url, uri.path(), id.as_str());
    }
    let headers = response.headers_mut();
    headers.insert("api-version", API_VERSION);
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        headers.insert(request_id::HEADER, value);
    }

    let status = response.status().as_u16();
    let seconds = begun.elapsed().as_secs_f64();
    tracing::debug!(status, seconds, "answered");
    let labels = [
        ("method", label(&method).to_owned()),
        ("route", route.to_owned()),
        ("status", status.to_string()),
    ];
    metrics::histogram!("perennial_http_request_seconds", &labels).record(seconds);
    response
}

/// A method's name for the metrics; a caller who invents methods must not make new series.
fn label(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::POST
        | Method::PUT
        | Method::DELETE
        | Method::HEAD
        | Method::OPTIONS => method.as_str(),
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
