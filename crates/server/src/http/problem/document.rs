//! The JSON of a problem: its schema, and its rendering into a response.

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::Response,
};
use jiff::Timestamp;
use perennial_domain::SignedMoney;
use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::{Ref, schema::Object},
};

use super::{Code, Problem};
use crate::http::{
    response::{money_number_or_null, timestamp_or_null},
    schema::{amount_output, named},
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
    /// With `payment_required`: until when a payment of `amount_due` suffices.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "timestamp_or_null"
    )]
    #[schema(value_type = String, required = false, format = DateTime, example = "2026-11-15T10:30:00.000000Z")]
    valid_until: Option<Timestamp>,
}

impl Problem {
    /// Renders the problem into `response`, the placeholder that `into_response` created, and keeps its
    /// headers.
    pub(in crate::http) fn render(
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
            valid_until: self.extras.valid_until,
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
