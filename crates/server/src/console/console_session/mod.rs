//! The session of a staff member, as a cookie.

use std::sync::Arc;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::staff::cookie,
    http::{problem::Problem, response::NoStore},
};
use view::ConsoleSessionView;

mod create;
mod delete;
mod read;
mod switch_tenant;
mod view;

pub(super) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(
        create::create,
        read::read,
        switch_tenant::switch_tenant,
        delete::delete
    ))
}

/// A response that stores or removes the cookie.
type WithCookie<T> = ([(HeaderName, HeaderValue); 1], T);

/// Returns a response that stores the cookie of a session until it expires.
fn with_cookie(
    secret: &SecretString,
    now: Timestamp,
    status: StatusCode,
    view: ConsoleSessionView,
) -> Result<WithCookie<NoStore<ConsoleSessionView>>, Problem> {
    let max_age = view.expires_at.duration_since(now);
    let cookie = set_cookie(secret.expose_secret(), max_age)?;
    Ok(([(header::SET_COOKIE, cookie)], NoStore(status, view)))
}

fn set_cookie(value: &str, max_age: SignedDuration) -> Result<HeaderValue, Problem> {
    cookie::set(cookie::NAME, value, max_age, "Strict")
        .ok_or_else(|| Problem::internal(&"a cookie is not a valid header"))
}
