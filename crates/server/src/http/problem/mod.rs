//! Errors as RFC 9457 problem documents.
//!
//! A handler returns `Err(Problem)`. The problem travels in the response's extensions to
//! [`super::middleware`], which adds the request's path and id and renders it. Internal causes are
//! logged, never sent to the client.

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use perennial_domain::{FieldError, SignedMoney};
use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::{Ref, schema::Object},
};

use super::{
    response::money_number_or_null,
    schema::{amount_output, named},
};
use crate::db;

mod code;
mod responses;
mod sample;

pub use code::Code;
pub use responses::{
    BodyResponses, CommonResponses, ConditionalResponses, EmptyBodyResponses, PublicResponses,
};

/// An entry of a problem's `errors`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = FieldError)]
pub struct ProblemFieldError {
    /// A JSON pointer into the body, or `?` and the name of a query parameter.
    #[schema(example = "/billing_cycle")]
    pub pointer: String,
    #[schema(schema_with = field_code)]
    pub code: &'static str,
    /// What is wrong and what is allowed.
    #[schema(example = "\"montly\" is not a billing cycle; did you mean \"monthly\"?")]
    pub message: String,
    /// The allowed values, where there are few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>, required = false, example = json!(["monthly", "yearly"]))]
    pub allowed: Vec<&'static str>,
    // The typed form of `code`.
    #[serde(skip)]
    pub(crate) kind: Code,
}

impl ProblemFieldError {
    pub fn new(pointer: String, kind: Code, message: impl Into<String>) -> Self {
        Self {
            pointer,
            code: kind.as_str(),
            message: message.into(),
            allowed: Vec::new(),
            kind,
        }
    }

    #[must_use]
    pub fn with_allowed(mut self, allowed: Vec<&'static str>) -> Self {
        self.allowed = allowed;
        self
    }
}

/// An error response that has not been rendered yet.
#[derive(Debug, Clone)]
pub struct Problem {
    code: Code,
    detail: String,
    errors: Vec<ProblemFieldError>,
    /// The value of the header Retry-After.
    retry_after_seconds: Option<u32>,
    // Boxed to keep `Result<_, Problem>` small: few problems have any.
    extras: Box<ProblemExtras>,
}

/// Extension members that only some codes have.
#[derive(Debug, Clone, Default)]
struct ProblemExtras {
    allowed: Vec<&'static str>,
    existing_id: Option<String>,
    live_subscriptions: Option<i64>,
    amount_due: Option<SignedMoney>,
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            errors: Vec::new(),
            retry_after_seconds: None,
            extras: Box::default(),
        }
    }

    pub fn code(&self) -> Code {
        self.code
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the invalid fields; empty for problems that are not about fields.
    pub fn errors(&self) -> &[ProblemFieldError] {
        &self.errors
    }

    /// Returns the id of the record that has the duplicate value.
    pub fn existing_id(&self) -> Option<&str> {
        self.extras.existing_id.as_deref()
    }

    /// Reports invalid body fields, or query parameters for [`Self::parameters`]. The problem has the
    /// code of the errors if all have the same one, else `validation_failed`.
    pub fn fields(errors: Vec<ProblemFieldError>) -> Self {
        let first = errors.first().map(|error| error.kind);
        let code = first
            .filter(|first| errors.iter().all(|error| error.kind == *first))
            .unwrap_or(Code::ValidationFailed);
        let detail = match errors.as_slice() {
            [only] => format!("{}: {}", only.pointer, only.message),
            several => {
                let in_query = several.iter().all(|error| error.pointer.starts_with('?'));
                let noun = if in_query { "parameters" } else { "fields" };
                format!("{} {noun} are invalid; see errors", several.len())
            }
        };
        Self {
            errors,
            ..Self::new(code, detail)
        }
    }

    /// Reports invalid query parameters.
    pub fn parameters(errors: Vec<ProblemFieldError>) -> Self {
        Self {
            code: Code::InvalidParameter,
            ..Self::fields(errors)
        }
    }

    /// Reports fields that violate rules of the domain.
    pub fn from_field_errors(fields: Vec<FieldError>) -> Self {
        let error = |(field, invalid): FieldError| {
            ProblemFieldError::new(format!("/{field}"), invalid.rule.into(), invalid.message)
                .with_allowed(invalid.allowed)
        };
        Self::fields(fields.into_iter().map(error).collect())
    }

    /// Reports a field with the id of a record that does not exist.
    pub fn unknown_reference(field: &str, id: impl std::fmt::Display) -> Self {
        Self::fields(vec![ProblemFieldError::new(
            format!("/{field}"),
            Code::UnknownReference,
            format!("no record has the id {id}"),
        )])
    }

    /// Adds the statuses that the record can change to.
    #[must_use]
    pub fn with_allowed(mut self, allowed: Vec<&'static str>) -> Self {
        self.extras.allowed = allowed;
        self
    }

    /// Adds the id of the record that has the duplicate value.
    #[must_use]
    pub fn with_existing_id(mut self, id: Option<impl std::fmt::Display>) -> Self {
        self.extras.existing_id = id.map(|id| id.to_string());
        self
    }

    /// Adds the number of the plan's live subscriptions: those that have not expired.
    #[must_use]
    pub fn with_live_subscriptions(mut self, subscriptions: i64) -> Self {
        self.extras.live_subscriptions = Some(subscriptions);
        self
    }

    /// Adds the amount to pay before the request can succeed.
    #[must_use]
    pub fn with_amount_due(mut self, amount: SignedMoney) -> Self {
        self.extras.amount_due = Some(amount);
        self
    }

    /// Creates a temporary problem: the client may retry after one second.
    pub fn retryable(code: Code, detail: impl Into<String>) -> Self {
        Self::new(code, detail).retry_after(1)
    }

    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    pub fn unavailable(detail: &str) -> Self {
        Self::retryable(Code::Unavailable, detail)
    }

    /// Logs the cause and returns a problem that does not reveal it.
    pub fn internal(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "internal error");
        Self::new(
            Code::Internal,
            "the service failed unexpectedly; the operator can find the cause by the request id",
        )
    }

    /// Renders the problem into `response`, the placeholder that `into_response` created, and keeps its
    /// headers.
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
            allowed: &self.extras.allowed,
            existing_id: self.extras.existing_id.as_deref(),
            live_subscriptions: self.extras.live_subscriptions,
            amount_due: self.extras.amount_due,
            currency: self.extras.amount_due.map(|amount| amount.currency.code()),
        };
        let json = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = response.map(|_| Body::from(json));
        *response.status_mut() = self.code.status();
        let headers = response.headers_mut();
        // axum has set Content-Length for the placeholder's empty body.
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
                Self::unavailable("the database is unavailable; retry later")
            }
            db::Error::Busy(queue) => {
                metrics::counter!("perennial_shed_total", "by" => queue).increment(1);
                let detail = "the service is overloaded; retry later";
                Self::retryable(Code::Overloaded, detail)
            }
            // Endpoints handle the constraint violations that they expect, so any other is a bug.
            error @ (db::Error::ConstraintViolation(_) | db::Error::Internal(_)) => {
                Self::internal(&error)
            }
        }
    }
}

fn field_code() -> Ref {
    named::PROBLEM_CODE.reference("The code of the violated rule.")
}

fn problem_code() -> Ref {
    named::PROBLEM_CODE.reference("A stable code for programs.")
}

fn amount_due() -> Object {
    amount_output("With `payment_required`: the amount to pay before the request can succeed.")
}

/// A problem document (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody<'a> {
    // "This instance" is this installation of the service, not the field `instance`.
    /// The page of this instance that documents the code.
    #[schema(
        format = "uri",
        example = "https://billing.example.com/docs/errors/unknown_value"
    )]
    r#type: String,
    /// A short summary, the same for every problem with this code.
    #[schema(example = "Unknown value")]
    title: &'a str,
    /// The HTTP status.
    #[schema(example = 422)]
    status: u16,
    /// The cause of this particular problem.
    #[schema(
        example = "/billing_cycle: \"montly\" is not a billing cycle; did you mean \"monthly\"?"
    )]
    detail: &'a str,
    /// The path of the request.
    #[schema(example = "/subscription-plans")]
    instance: &'a str,
    #[schema(schema_with = problem_code)]
    code: &'a str,
    /// The request's id, also in the header X-Request-Id and in the operator's log.
    #[schema(example = "req_0192f0c1a2b37c4d8e5f60718293a4b5")]
    request_id: &'a str,
    /// Every invalid field or parameter.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<ProblemFieldError>, required = false)]
    errors: &'a [ProblemFieldError],
    /// With `invalid_transition`: the statuses that the record can change to.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<String>, required = false, example = json!(["active", "cancelled"]))]
    allowed: &'a [&'static str],
    /// With `duplicate_external_id`: the id of the other record.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5")]
    existing_id: Option<&'a str>,
    /// With `plan_in_use`: the number of live subscriptions to the plan; 100 means 100 or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 3)]
    live_subscriptions: Option<i64>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "money_number_or_null"
    )]
    #[schema(required = false, schema_with = amount_due)]
    amount_due: Option<SignedMoney>,
    /// With `payment_required`: the currency of `amount_due`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "USD")]
    currency: Option<&'static str>,
}
