//! Errors as RFC 9457 problem documents.
//!
//! A handler answers `Err(Problem)`; it need not know the request's id, its path or our address.
//! The problem travels in the response's extensions to the envelope, which renders it there, once,
//! for every error of the service. Nothing internal is ever shown.

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use perennial_domain::Wrong;
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

use crate::db;

mod code;

pub use code::Code;

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    /// Where it is: a JSON pointer into the body, or `?` and the name of a parameter.
    #[schema(example = "/billing_cycle")]
    pub pointer: String,
    /// The rule that it breaks; each has a page under `/docs/errors/`.
    #[schema(example = "unknown_value")]
    pub code: &'static str,
    /// A sentence that says what is wrong and what is allowed.
    #[schema(example = "\"montly\" is not a billing cycle; did you mean \"monthly\"?")]
    pub message: String,
    /// The allowed values, where there are few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<String>>, example = json!(["monthly", "yearly"]))]
    pub allowed: Vec<&'static str>,
    #[serde(skip)]
    pub(crate) kind: Code,
}

/// An error on its way to the caller.
#[derive(Debug, Clone)]
pub struct Problem {
    code: Code,
    detail: String,
    errors: Vec<FieldError>,
    /// When to try again, for the header Retry-After.
    retry_after_seconds: Option<u32>,
    /// What else helps the caller to go on; few have it.
    hints: Box<Hints>,
}

/// What else helps a caller to go on.
#[derive(Debug, Clone, Default)]
struct Hints {
    allowed: Vec<&'static str>,
    existing_id: Option<String>,
    live_subscriptions: Option<i64>,
}

impl Problem {
    /// An error with this code; the detail is a sentence about this very request.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            errors: Vec::new(),
            retry_after_seconds: None,
            hints: Box::default(),
        }
    }

    /// Fields that are not right, all at once. If they all break one rule, that is the code.
    pub fn fields(errors: Vec<FieldError>) -> Self {
        let first = errors.first().map(|error| error.kind);
        let code = first
            .filter(|first| errors.iter().all(|error| error.kind == *first))
            .unwrap_or(Code::ValidationFailed);
        let detail = match errors.as_slice() {
            [only] => format!("{}: {}", only.pointer, only.message),
            several => {
                let in_the_url = several.iter().all(|error| error.pointer.starts_with('?'));
                let what = if in_the_url { "parameters" } else { "fields" };
                format!("{} {what} are not right; see errors", several.len())
            }
        };
        Self {
            errors,
            ..Self::new(code, detail)
        }
    }

    /// Parameters in the URL that are not right, all at once.
    pub fn parameters(errors: Vec<FieldError>) -> Self {
        Self {
            code: Code::InvalidParameter,
            ..Self::fields(errors)
        }
    }

    /// The same, as the domain says it.
    pub fn wrong(fields: Vec<Wrong>) -> Self {
        let error = |(field, invalid): Wrong| FieldError {
            pointer: format!("/{field}"),
            code: Code::from(invalid.rule).as_str(),
            message: invalid.message,
            allowed: invalid.allowed,
            kind: invalid.rule.into(),
        };
        Self::fields(fields.into_iter().map(error).collect())
    }

    /// A field that names something that is not there.
    pub fn unknown_reference(field: &str, id: impl std::fmt::Display) -> Self {
        Self::fields(vec![FieldError {
            pointer: format!("/{field}"),
            code: Code::UnknownReference.as_str(),
            message: format!("there is nothing with the id {id}"),
            allowed: Vec::new(),
            kind: Code::UnknownReference,
        }])
    }

    /// Where the record can go from where it stands.
    #[must_use]
    pub fn allowing(mut self, allowed: Vec<&'static str>) -> Self {
        self.hints.allowed = allowed;
        self
    }

    /// Which record is there already.
    #[must_use]
    pub fn existing(mut self, id: Option<impl std::fmt::Display>) -> Self {
        self.hints.existing_id = id.map(|id| id.to_string());
        self
    }

    /// How many subscriptions are in the way.
    #[must_use]
    pub fn in_use_by(mut self, subscriptions: i64) -> Self {
        self.hints.live_subscriptions = Some(subscriptions);
        self
    }

    /// An error that a moment's wait may mend.
    pub fn try_again(code: Code, detail: impl Into<String>) -> Self {
        Self {
            retry_after_seconds: Some(1),
            ..Self::new(code, detail)
        }
    }

    /// The same, after a longer wait.
    #[must_use]
    pub fn in_seconds(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// The service cannot do it right now.
    pub fn unavailable(detail: &str) -> Self {
        Self::try_again(Code::Unavailable, detail)
    }

    /// A mistake of ours. The cause goes to the log, never to the caller.
    pub fn internal(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "internal error");
        Self::new(
            Code::Internal,
            "something went wrong in the service; the operator can find it by the request id",
        )
    }

    /// The finished answer, with the headers of `response`, which stood for the problem until now.
    pub(super) fn render(
        &self,
        response: Response,
        public_url: &str,
        path: &str,
        request_id: &str,
    ) -> Response {
        let body = ProblemBody {
            r#type: format!("{public_url}/docs/errors/{}", self.code.as_str()),
            title: self.code.title(),
            status: self.code.status().as_u16(),
            detail: &self.detail,
            instance: path,
            code: self.code.as_str(),
            request_id,
            errors: &self.errors,
            allowed: &self.hints.allowed,
            existing_id: self.hints.existing_id.as_deref(),
            live_subscriptions: self.hints.live_subscriptions,
        };
        let json = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = response.map(|_| Body::from(json));
        *response.status_mut() = self.code.status();
        let headers = response.headers_mut();
        // The framework has counted what stood for the problem.
        headers.remove(header::CONTENT_LENGTH);
        let media_type = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, media_type);
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.code.status().into_response();
        if self.code == Code::InvalidToken {
            let challenge = HeaderValue::from_static("Bearer error=\"invalid_token\"");
            let headers = response.headers_mut();
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<db::Error> for Problem {
    fn from(error: db::Error) -> Self {
        match error {
            db::Error::Unavailable(cause) => {
                tracing::warn!(%cause, "database unavailable");
                Self::unavailable(
                    "the service cannot reach its database right now; try again in a moment",
                )
            }
            db::Error::Busy(queue) => {
                metrics::counter!("perennial_shed_total", "by" => queue).increment(1);
                let detail =
                    "the service has more to do than it can do in time; try again in a moment";
                Self::try_again(Code::Overloaded, detail)
            }
            // A constraint that the feature did not translate is one that it did not expect.
            error @ (db::Error::Refused(_) | db::Error::Failed(_)) => Self::internal(&error),
        }
    }
}

/// An error, as RFC 9457 lays it down.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody<'a> {
    /// A page of this instance that explains the code.
    #[schema(
        format = "uri",
        example = "https://billing.example.com/docs/errors/unknown_value"
    )]
    r#type: String,
    /// A few words that are the same for every error of this code.
    #[schema(example = "Not one of the allowed values")]
    title: &'a str,
    /// The HTTP status.
    #[schema(example = 422)]
    status: u16,
    /// What is wrong with this very request.
    #[schema(
        example = "/billing_cycle: \"montly\" is not a billing cycle; did you mean \"monthly\"?"
    )]
    detail: &'a str,
    /// The path that was asked for.
    #[schema(example = "/subscription-plans")]
    instance: &'a str,
    /// A stable word for programs to match on.
    #[schema(example = "unknown_value")]
    code: &'a str,
    /// The request's id, also in the header X-Request-Id; it leads an operator to the log.
    #[schema(example = "req_0192f0c1a2b37c4d8e5f60718293a4b5")]
    request_id: &'a str,
    /// Every field that is not right.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Option<Vec<FieldError>>)]
    errors: &'a [FieldError],
    /// Of `invalid_transition`: the statuses that the record can go to from where it stands.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Option<Vec<String>>, example = json!(["active", "cancelled"]))]
    allowed: &'a [&'static str],
    /// Of `duplicate_external_id`: the record that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5")]
    existing_id: Option<&'a str>,
    /// Of `plan_in_use`: how many live subscriptions point at the plan; 100 stands for that many or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 3)]
    live_subscriptions: Option<i64>,
}

/// What every endpoint of the interface may answer.
#[derive(IntoResponses)]
pub enum AnyEndpoint {
    /// The request cannot be understood: its body (`malformed_json`), a parameter in the URL
    /// (`invalid_parameter`, `invalid_cursor`), a header (`invalid_idempotency_key`, `invalid_request`).
    #[response(status = 400, content_type = "application/problem+json")]
    BadRequest(ProblemBody<'static>),
    /// The client is missing, unknown or switched off (`invalid_client`), or the bearer's token is not accepted
    /// (`invalid_token`), or a refresh token is not (`invalid_grant`).
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthorized(ProblemBody<'static>),
    /// The client may not do this (`insufficient_scope`, `secret_client_in_browser`,
    /// `origin_not_allowed`, `address_not_allowed`), or a user may not (`not_for_users`, `not_your_account`,
    /// `reauthentication_required`, `email_mismatch`, `email_unverified`).
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(ProblemBody<'static>),
    /// Too many requests of this client, or from this address (`rate_limited`); the headers RateLimit and
    /// Retry-After say how many and when.
    #[response(status = 429, content_type = "application/problem+json")]
    TooManyRequests(ProblemBody<'static>),
    /// We made a mistake (`internal`).
    #[response(status = 500, content_type = "application/problem+json")]
    Internal(ProblemBody<'static>),
    /// Not right now (`unavailable`, `overloaded`); the header Retry-After says when to try again.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(ProblemBody<'static>),
}

/// What an endpoint that is open to everybody may answer.
#[derive(IntoResponses)]
pub enum OpenEndpoint {
    /// The request cannot be understood (`invalid_request`).
    #[response(status = 400, content_type = "application/problem+json")]
    BadRequest(ProblemBody<'static>),
    /// Too many requests from this address (`rate_limited`); the headers RateLimit and Retry-After say how many and
    /// when.
    #[response(status = 429, content_type = "application/problem+json")]
    TooManyRequests(ProblemBody<'static>),
    /// We made a mistake (`internal`).
    #[response(status = 500, content_type = "application/problem+json")]
    Internal(ProblemBody<'static>),
    /// Not right now (`unavailable`, `overloaded`); the header Retry-After says when to try again.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(ProblemBody<'static>),
}

/// What an endpoint that takes `If-Match` may answer besides.
#[derive(IntoResponses)]
pub enum Conditional {
    /// The record is not the one that If-Match names any more (`precondition_failed`).
    #[response(status = 412, content_type = "application/problem+json")]
    PreconditionFailed(ProblemBody<'static>),
}

/// What an endpoint that takes no body may answer besides, to one that comes with one.
#[derive(IntoResponses)]
pub enum WithEmptyBody {
    /// The body did not arrive in time (`request_timeout`).
    #[response(status = 408, content_type = "application/problem+json")]
    RequestTimeout(ProblemBody<'static>),
    /// The body has more than 64 KiB (`payload_too_large`).
    #[response(status = 413, content_type = "application/problem+json")]
    PayloadTooLarge(ProblemBody<'static>),
    /// The body has fields; there are none (`unknown_field`).
    #[response(status = 422, content_type = "application/problem+json")]
    UnprocessableContent(ProblemBody<'static>),
}

/// What every endpoint with a body may answer besides.
#[derive(IntoResponses)]
pub enum WithBody {
    /// The body did not arrive in time (`request_timeout`).
    #[response(status = 408, content_type = "application/problem+json")]
    RequestTimeout(ProblemBody<'static>),
    /// The body has more than 64 KiB (`payload_too_large`).
    #[response(status = 413, content_type = "application/problem+json")]
    PayloadTooLarge(ProblemBody<'static>),
    /// The body is not declared as `application/json` (`unsupported_media_type`).
    #[response(status = 415, content_type = "application/problem+json")]
    UnsupportedMediaType(ProblemBody<'static>),
    /// Some fields are not right; `errors` lists all of them. Or, where one is taken, the Idempotency-Key
    /// stands for another body (`idempotency_key_reused`).
    #[response(status = 422, content_type = "application/problem+json")]
    UnprocessableContent(ProblemBody<'static>),
}
