//! Error responses of the OpenAPI document that many operations share.

use utoipa::IntoResponses;

use super::ProblemBody;

/// Errors of an endpoint that requires the header `client-id`.
#[derive(IntoResponses)]
pub enum CommonResponses {
    /// Invalid request: the body (`malformed_json`), a query parameter (`invalid_parameter`,
    /// `invalid_cursor`) or a header (`invalid_idempotency_key`, `invalid_request`).
    #[response(status = 400, content_type = "application/problem+json")]
    BadRequest(ProblemBody<'static>),
    /// Invalid client (`invalid_client`), access token (`invalid_token`), refresh token (`invalid_grant`) or cookie of a staff
    /// member (`invalid_staff_session`).
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthorized(ProblemBody<'static>),
    /// Not allowed for this client (`insufficient_scope`, `secret_client_in_browser`, `origin_not_allowed`,
    /// `address_not_allowed`), for this user (`not_for_users`, `not_your_account`, `reauthentication_required`,
    /// `email_mismatch`, `email_unverified`) or for a page of another site (`cross_site_request`).
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(ProblemBody<'static>),
    /// The header Host names a host that this service does not serve (`misdirected_request`).
    #[response(status = 421, content_type = "application/problem+json")]
    MisdirectedRequest(ProblemBody<'static>),
    /// Too many requests from this client or IP address (`rate_limited`). See the headers RateLimit and
    /// Retry-After.
    #[response(status = 429, content_type = "application/problem+json")]
    TooManyRequests(ProblemBody<'static>),
    /// Internal error (`internal`).
    #[response(status = 500, content_type = "application/problem+json")]
    Internal(ProblemBody<'static>),
    /// Service unavailable (`unavailable`) or overloaded (`overloaded`). See the header Retry-After.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(ProblemBody<'static>),
}

/// Errors of an endpoint that does not require the header `client-id`.
#[derive(IntoResponses)]
pub enum PublicResponses {
    /// Invalid request (`invalid_request`).
    #[response(status = 400, content_type = "application/problem+json")]
    BadRequest(ProblemBody<'static>),
    /// The header Host names a host that this service does not serve (`misdirected_request`).
    #[response(status = 421, content_type = "application/problem+json")]
    MisdirectedRequest(ProblemBody<'static>),
    /// Too many requests from this client or IP address (`rate_limited`). See the headers RateLimit and
    /// Retry-After.
    #[response(status = 429, content_type = "application/problem+json")]
    TooManyRequests(ProblemBody<'static>),
    /// Internal error (`internal`).
    #[response(status = 500, content_type = "application/problem+json")]
    Internal(ProblemBody<'static>),
    /// Service unavailable (`unavailable`) or overloaded (`overloaded`). See the header Retry-After.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(ProblemBody<'static>),
}

/// Additional errors of an endpoint that takes `If-Match`.
#[derive(IntoResponses)]
pub enum ConditionalResponses {
    /// The record no longer has the ETag sent in If-Match (`precondition_failed`).
    #[response(status = 412, content_type = "application/problem+json")]
    PreconditionFailed(ProblemBody<'static>),
}

/// Additional errors of an endpoint that takes no body, for requests that have one.
#[derive(IntoResponses)]
pub enum EmptyBodyResponses {
    /// The body did not arrive in time (`request_timeout`).
    #[response(status = 408, content_type = "application/problem+json")]
    RequestTimeout(ProblemBody<'static>),
    /// The body is larger than 64 KiB (`payload_too_large`).
    #[response(status = 413, content_type = "application/problem+json")]
    PayloadTooLarge(ProblemBody<'static>),
    /// The body has fields, but this endpoint takes none (`unknown_field`).
    #[response(status = 422, content_type = "application/problem+json")]
    UnprocessableContent(ProblemBody<'static>),
}

/// Additional errors of an endpoint that takes a body.
#[derive(IntoResponses)]
pub enum BodyResponses {
    /// The body did not arrive in time (`request_timeout`).
    #[response(status = 408, content_type = "application/problem+json")]
    RequestTimeout(ProblemBody<'static>),
    /// The body is larger than 64 KiB (`payload_too_large`).
    #[response(status = 413, content_type = "application/problem+json")]
    PayloadTooLarge(ProblemBody<'static>),
    /// The Content-Type is not `application/json` (`unsupported_media_type`).
    #[response(status = 415, content_type = "application/problem+json")]
    UnsupportedMediaType(ProblemBody<'static>),
    /// Some fields are invalid (`validation_failed`, or the code of the error if there is only one; `errors` lists
    /// all of them), or the Idempotency-Key was used with another body (`idempotency_key_reused`).
    #[response(status = 422, content_type = "application/problem+json")]
    UnprocessableContent(ProblemBody<'static>),
}
