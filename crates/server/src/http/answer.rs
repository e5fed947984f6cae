//! JSON out.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use perennial_domain::Money;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{etag, problem::Problem};

/// A record, with status 200.
pub struct Found<T>(pub T);

/// Done, and there is nothing to show: status 204.
pub struct Gone;

impl IntoResponse for Gone {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
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
pub(super) fn untagged(status: StatusCode, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, media_type);
    response
}

/// Writes money as a JSON number at its currency's scale: `19.90`, digit for digit.
pub fn exact_number<S: Serializer>(money: &Money, serializer: S) -> Result<S::Ok, S::Error> {
    let digits = RawValue::from_string(money.to_string()).map_err(serde::ser::Error::custom)?;
    digits.serialize(serializer)
}
