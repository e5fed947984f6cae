//! What stands in the path, parsed.

use std::str::FromStr;

use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};
use perennial_domain::Invalid;

use super::{
    params,
    problem::{Code, Problem},
};

/// The one parameter of a path that names a record, or why it is not one. Such a path takes no query. What cannot be a name of anything is not
/// found, so the feature decides how it says that.
pub struct PathParam<T>(pub Result<T, Invalid>);

/// The same, of a path that takes a query.
pub struct PathParamWithQuery<T>(pub Result<T, Invalid>);

async fn only<T, S>(parts: &mut Parts, state: &S) -> Result<Result<T, Invalid>, Problem>
where
    T: FromStr<Err = Invalid>,
    S: Send + Sync,
{
    let nothing = || Problem::new(Code::NotFound, "nothing has this path");
    let params = RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|_| nothing())?;
    let (_, value) = params.iter().next().ok_or_else(nothing)?;
    Ok(value.parse())
}

impl<T, S> FromRequestParts<S> for PathParamWithQuery<T>
where
    T: FromStr<Err = Invalid>,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        only(parts, state).await.map(Self)
    }
}

impl<T, S> FromRequestParts<S> for PathParam<T>
where
    T: FromStr<Err = Invalid>,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        params::none(&parts.uri)?;
        only(parts, state).await.map(Self)
    }
}
