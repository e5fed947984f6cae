//! JSON out.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use perennial_domain::Money;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::problem::Problem;

/// A record, with status 200.
pub struct Found<T>(pub T);

/// A record that was just made, with status 201 and where it is from now on.
pub struct Created<T> {
    /// The path of the new record.
    pub location: String,
    /// The record.
    pub record: T,
}

impl<T: Serialize> IntoResponse for Found<T> {
    fn into_response(self) -> Response {
        json(StatusCode::OK, &self.0)
    }
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        let mut response = json(StatusCode::CREATED, &self.record);
        if let Ok(location) = HeaderValue::from_str(&self.location) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        response
    }
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => {
            let mut response = Response::new(Body::from(bytes));
            *response.status_mut() = status;
            let media_type = HeaderValue::from_static("application/json");
            response
                .headers_mut()
                .insert(header::CONTENT_TYPE, media_type);
            response
        }
        Err(error) => Problem::internal(&error).into_response(),
    }
}

/// Writes money as a JSON number at its currency's scale: `19.90`, digit for digit.
pub fn exact_number<S: Serializer>(money: &Money, serializer: S) -> Result<S::Ok, S::Error> {
    let digits = RawValue::from_string(money.to_string()).map_err(serde::ser::Error::custom)?;
    digits.serialize(serializer)
}
