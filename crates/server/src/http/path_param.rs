//! Extractors for a path with one parameter.

use std::str::FromStr;

use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};
use perennial_domain::ValidationError;

use super::{
    problem::{Code, Problem},
    query,
};

/// The parameter of a path without query parameters. An invalid value is not rejected here: the
/// handler responds that the record does not exist.
pub struct PathParam<T>(pub Result<T, ValidationError>);

/// The parameter of a path with query parameters.
pub struct PathParamWithQuery<T>(pub Result<T, ValidationError>);

/// Parses the only parameter of the path. The outer error means that the path has no valid parameter.
async fn parse<T, S>(parts: &mut Parts, state: &S) -> Result<Result<T, ValidationError>, Problem>
where
    T: FromStr<Err = ValidationError>,
    S: Send + Sync,
{
    let not_found = || Problem::new(Code::NotFound, "no endpoint has this path");
    let params = RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|_| not_found())?;
    let (_, value) = params.iter().next().ok_or_else(not_found)?;
    Ok(value.parse())
}

impl<T, S> FromRequestParts<S> for PathParamWithQuery<T>
where
    T: FromStr<Err = ValidationError>,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        parse(parts, state).await.map(Self)
    }
}

impl<T, S> FromRequestParts<S> for PathParam<T>
where
    T: FromStr<Err = ValidationError>,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        query::reject_all(&parts.uri)?;
        parse(parts, state).await.map(Self)
    }
}
