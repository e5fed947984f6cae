//! Errors as RFC 9457 problem documents.
//!
//! A handler returns `Err(Problem)`. The problem travels in the response's extensions to
//! [`super::middleware`], which adds the request's path and id and renders it. Internal causes are
//! logged, never sent to the client.

use axum::{
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use perennial_domain::{FieldError, SignedMoney};

use crate::db;

mod code;
mod document;
mod responses;
mod sample;

pub use code::Code;
pub use document::{ProblemBody, ProblemFieldError};
pub use responses::{
    BodyResponses, CommonResponses, ConditionalResponses, EmptyBodyResponses, PublicResponses,
};

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
    valid_until: Option<Timestamp>,
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
    pub fn unknown_reference(field: &'static str, id: impl std::fmt::Display) -> Self {
        Self::unknown_references(vec![(field, format!("no record has the id {id}"))])
    }

    /// Reports all fields that refer to records that do not exist, with a message each.
    pub fn unknown_references(fields: Vec<(&'static str, String)>) -> Self {
        let error = |(field, message)| {
            ProblemFieldError::new(format!("/{field}"), Code::UnknownReference, message)
        };
        Self::fields(fields.into_iter().map(error).collect())
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

    /// Adds the amount to pay before the request can succeed, and until when it suffices.
    #[must_use]
    pub fn with_amount_due(mut self, amount: SignedMoney, valid_until: Option<Timestamp>) -> Self {
        self.extras.amount_due = Some(amount);
        self.extras.valid_until = valid_until;
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
