//! Successful responses, and the JSON serializers of ids, timestamps and money.

use std::{collections::BTreeMap, fmt::Display};

use axum::{
    body::{Body, Bytes, to_bytes},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use perennial_domain::{Money, Rfc3339Timestamp, SignedMoney};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{etag, problem::Problem};

pub(super) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// The number of headers to reserve room for: those of the endpoint, of [`super::middleware`] and of
/// hyper. Hot path: a header map that grows inserts all headers again (measured with the
/// pre-rendered rate limit headers: -2,500 instructions).
pub(super) const HEADER_CAPACITY: usize = 12;

/// The largest object that [`add_field`] changes.
const MAX_OBJECT_BYTES: usize = 64 * 1024;

/// A 200 response with a record and its entity tag.
pub struct OkJson<T>(pub T);

/// A 204 response.
pub struct NoContent;

/// A response that must not be cached: `Cache-Control: no-store`, no entity tag.
pub struct NoStore<T>(pub StatusCode, pub T);

/// A 200 response that anyone may cache for this number of seconds.
pub struct Cacheable<T>(pub u32, pub T);

/// A response that the client's browser may cache for a minute if it has public data only.
pub struct BrowserCacheable<T> {
    pub is_public: bool,
    pub response: T,
}

impl<T: IntoResponse> IntoResponse for BrowserCacheable<T> {
    fn into_response(self) -> Response {
        let mut response = self.response.into_response();
        if self.is_public && response.status() == StatusCode::OK {
            let fixed = HeaderValue::from_static;
            let headers = response.headers_mut();
            // Private, because not all shared caches respect Vary.
            headers.insert(header::CACHE_CONTROL, fixed("private, max-age=60"));
            headers.append(header::VARY, fixed("client-id, authorization"));
        }
        response
    }
}

impl<T: Serialize> IntoResponse for OkJson<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(bytes) => json_with_etag(StatusCode::OK, bytes),
            Err(error) => Problem::internal(&error).into_response(),
        }
    }
}

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl<T: Serialize> IntoResponse for NoStore<T> {
    fn into_response(self) -> Response {
        let Self(status, value) = self;
        json_with_cache_control(status, &value, NO_STORE)
    }
}

impl<T: Serialize> IntoResponse for Cacheable<T> {
    fn into_response(self) -> Response {
        let Self(seconds, value) = self;
        match HeaderValue::try_from(format!("public, max-age={seconds}")) {
            Ok(control) => json_with_cache_control(StatusCode::OK, &value, control),
            Err(error) => Problem::internal(&error).into_response(),
        }
    }
}

/// Returns a 200 response with JSON that is already serialized and must not be cached.
pub fn no_store_json(bytes: Bytes) -> Response {
    with_cache_control(json(StatusCode::OK, bytes), NO_STORE)
}

fn json_with_cache_control(
    status: StatusCode,
    value: &impl Serialize,
    control: HeaderValue,
) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => with_cache_control(json(status, bytes), control),
        Err(error) => Problem::internal(&error).into_response(),
    }
}

fn with_cache_control(mut response: Response, control: HeaderValue) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, control);
    response
}

/// Returns 201 with the created record and its path. Only [`super::idempotency`] calls this, so that
/// every endpoint that creates records supports idempotency keys.
pub(super) fn created(location: &str, body: Vec<u8>) -> Response {
    let mut response = json_with_etag(StatusCode::CREATED, body);
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

pub(super) fn json_with_etag(status: StatusCode, bytes: Vec<u8>) -> Response {
    let tag = HeaderValue::from_str(&etag::from_bytes(&bytes));
    let mut response = json(status, bytes);
    if let Ok(tag) = tag {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// Adds a field to the JSON object of a response whose body is complete. The entity tag stays. For values that must not
/// be stored with the response.
pub async fn add_field(
    response: Response,
    name: &str,
    value: &impl Serialize,
) -> Result<Response, Problem> {
    let internal = |cause: &dyn Display| Problem::internal(cause);
    let (mut parts, body) = response.into_parts();
    let body = to_bytes(body, MAX_OBJECT_BYTES).await;
    let body = body.map_err(|error| internal(&error))?;
    let mut fields: BTreeMap<&str, Box<RawValue>> =
        serde_json::from_slice(&body).map_err(|error| internal(&error))?;
    let value = serde_json::value::to_raw_value(value).map_err(|error| internal(&error))?;
    fields.insert(name, value);
    let body = serde_json::to_vec(&fields).map_err(|error| internal(&error))?;
    parts.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(parts, Body::from(body)))
}

pub(super) fn json(status: StatusCode, bytes: impl Into<Body>) -> Response {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static("application/json");
    let headers = response.headers_mut();
    headers.reserve(HEADER_CAPACITY);
    headers.insert(header::CONTENT_TYPE, media_type);
    response
}

/// Serializes an instant in UTC, with six fraction digits.
pub fn timestamp<S: Serializer>(instant: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Rfc3339Timestamp::from(*instant))
}

/// Serializes an optional instant, or null.
pub fn timestamp_or_null<S: Serializer>(
    instant: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    display_or_null(&instant.map(Rfc3339Timestamp::from), serializer)
}

/// Serializes an id as the string that it displays as.
pub fn display<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Serializes an optional id as a string or null.
pub fn display_or_null<T: Display, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

/// An amount of money, which displays as a decimal number.
pub trait Amount: Display {}
impl Amount for Money {}
impl Amount for SignedMoney {}

/// Serializes money as an exact JSON number with its currency's decimal places: `19.90`.
pub fn money_number<M: Amount, S: Serializer>(money: &M, serializer: S) -> Result<S::Ok, S::Error> {
    let digits = RawValue::from_string(money.to_string()).map_err(serde::ser::Error::custom)?;
    digits.serialize(serializer)
}

/// Serializes optional money as an exact JSON number or null.
pub fn money_number_or_null<M: Amount, S: Serializer>(
    money: &Option<M>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match money {
        Some(money) => money_number(money, serializer),
        None => serializer.serialize_none(),
    }
}
