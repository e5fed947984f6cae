//! JSON out.

use std::fmt::Display;

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use perennial_domain::Money;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{etag, problem::Problem};

/// For nobody on the way to keep.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Room for the headers of an answer: its own, those that all answers have (see [`super::envelope`]), and what hyper
/// adds. Made at once, because growing means to sort all of them in anew.
pub(super) const HEADERS: usize = 12;

/// A record, with status 200.
pub struct Found<T>(pub T);

/// Done, and there is nothing to show: status 204.
pub struct Gone;

impl IntoResponse for Gone {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

/// What is told to whoever asks just now, and is kept by nobody on the way: no entity tag, no caching.
pub struct Private<T>(pub StatusCode, pub T);

impl<T: Serialize> IntoResponse for Private<T> {
    fn into_response(self) -> Response {
        let Self(status, value) = self;
        cached(status, &value, NO_STORE)
    }
}

/// What everybody may know, and may keep for so many seconds.
pub struct Public<T>(pub u32, pub T);

impl<T: Serialize> IntoResponse for Public<T> {
    fn into_response(self) -> Response {
        let Self(seconds, value) = self;
        match HeaderValue::try_from(format!("public, max-age={seconds}")) {
            Ok(control) => cached(StatusCode::OK, &value, control),
            Err(error) => Problem::internal(&error).into_response(),
        }
    }
}

/// The same as [`Private`], of JSON that was written before.
pub fn private(json: Bytes) -> Response {
    kept(untagged(StatusCode::OK, json), NO_STORE)
}

/// JSON, with who may keep it for how long.
fn cached(status: StatusCode, value: &impl Serialize, control: HeaderValue) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => kept(untagged(status, bytes), control),
        Err(error) => Problem::internal(&error).into_response(),
    }
}

fn kept(mut response: Response, control: HeaderValue) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, control);
    response
}

impl<T: Serialize> IntoResponse for Found<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(bytes) => json(StatusCode::OK, bytes),
            Err(error) => Problem::internal(&error).into_response(),
        }
    }
}

/// A record that was just made, with status 201 and where it is from now on. Only `idempotency` makes
/// these, so that no creating endpoint can leave it out.
pub(super) fn created(location: &str, body: Vec<u8>) -> Response {
    let mut response = json(StatusCode::CREATED, body);
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// A record with its entity tag.
fn json(status: StatusCode, bytes: Vec<u8>) -> Response {
    let tag = HeaderValue::from_str(&etag::of_bytes(&bytes));
    let mut response = untagged(status, bytes);
    if let Ok(tag) = tag {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// JSON that is no record, and so has nothing for If-Match to be held against.
pub(super) fn untagged(status: StatusCode, bytes: impl Into<Body>) -> Response {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static("application/json");
    let headers = response.headers_mut();
    headers.reserve(HEADERS);
    headers.insert(header::CONTENT_TYPE, media_type);
    response
}

/// Writes an id or an instant as the text that it is shown as.
pub fn shown<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// The same, or null.
pub fn shown_or_null<T: Display, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

/// Writes money as a JSON number at its currency's scale: `19.90`, digit for digit.
pub fn exact_number<S: Serializer>(money: &Money, serializer: S) -> Result<S::Ok, S::Error> {
    let digits = RawValue::from_string(money.to_string()).map_err(serde::ser::Error::custom)?;
    digits.serialize(serializer)
}

/// The same, or null.
pub fn optional_number<S: Serializer>(
    money: &Option<Money>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match money {
        Some(money) => exact_number(money, serializer),
        None => serializer.serialize_none(),
    }
}
