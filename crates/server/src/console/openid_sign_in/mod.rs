//! Sign-in with an OpenID provider: authorization code flow with PKCE.
//!
//! The secrets of a sign-in are in a cookie, encrypted with the master key, until the provider redirects back. That cookie is
//! `SameSite=Lax`, because the redirect comes from the provider's site.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::staff::cookie,
    config::ConsoleSignInConfig,
    crypto::SealedSecret,
    http::problem::Problem,
    identity_providers::{CodeFlowClient, CodeFlowSecrets},
};

mod callback;
mod options;
mod start;

/// The id of the provider in paths. There is one.
const PROVIDER_ID: &str = "openid";
const COOKIE: &str = "__Host-perennial-sign-in";
/// What the cookie is encrypted for.
const COOKIE_OWNER: &str = "console sign-in";
/// How long a sign-in at the provider may take.
const SIGN_IN_TTL: SignedDuration = SignedDuration::from_mins(10);

pub(super) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(options::options))
        .routes(routes!(start::start))
        .routes(routes!(callback::callback))
}

/// A redirect that also sets cookies.
type Redirect = (StatusCode, HeaderMap);

fn redirect(location: &str, cookies: &[HeaderValue]) -> Result<Redirect, Problem> {
    let location = HeaderValue::from_str(location).map_err(|error| Problem::internal(&error))?;
    let mut headers = HeaderMap::new();
    headers.insert(header::LOCATION, location);
    for cookie in cookies {
        headers.append(header::SET_COOKIE, cookie.clone());
    }
    // The fragment with an error, or the query with a code, is for this service only.
    let policy = HeaderValue::from_static("no-referrer");
    headers.insert(HeaderName::from_static("referrer-policy"), policy);
    Ok((StatusCode::SEE_OTHER, headers))
}

/// The content of the cookie.
#[derive(Serialize, Deserialize)]
struct PendingSignIn {
    secrets: CodeFlowSecrets,
    /// Seconds since 1970.
    expires_at: i64,
}

impl PendingSignIn {
    fn to_cookie(&self, app: &App) -> Result<HeaderValue, Problem> {
        let json = serde_json::to_string(self).map_err(|error| Problem::internal(&error))?;
        let SealedSecret(sealed) = app.keys.seal(&json, COOKIE_OWNER);
        set_cookie(&BASE64_URL_SAFE_NO_PAD.encode(sealed), SIGN_IN_TTL)
    }

    /// Returns the content of the request's cookie, unless it is missing, modified or expired.
    fn from_cookie(app: &App, headers: &HeaderMap, now: Timestamp) -> Option<Self> {
        let sealed = cookie::find_named(headers, COOKIE)?;
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let json = app.keys.open(&SealedSecret(sealed), COOKIE_OWNER).ok()?;
        let pending: Self = serde_json::from_str(json.expose_secret()).ok()?;
        (now.as_second() < pending.expires_at).then_some(pending)
    }
}

fn set_cookie(value: &str, max_age: SignedDuration) -> Result<HeaderValue, Problem> {
    cookie::set(COOKIE, value, max_age, "Lax")
        .ok_or_else(|| Problem::internal(&"a cookie is not a valid header"))
}

/// Returns the console as an application at the provider.
fn code_flow_client<'a>(
    config: &'a ConsoleSignInConfig,
    redirect_uri: &'a str,
) -> CodeFlowClient<'a> {
    CodeFlowClient {
        issuer: &config.issuer,
        client_id: &config.client_id,
        client_secret: config.client_secret.as_ref(),
        redirect_uri,
    }
}

fn redirect_uri(app: &App) -> String {
    format!("{}/console/callback", app.console.url)
}

/// Returns the path of the sign-in page with an error, in the fragment.
fn error_page(code: &str) -> String {
    format!("/console/#error={code}")
}
