//! JSON requests to APIs whose URL the operator sets, such as those of payment providers.
//!
//! Private addresses are allowed, because clients of the service cannot choose the URL. Redirects are not followed, so that
//! an API key is sent to the configured host only.

use std::time::Duration;

use anyhow::Context;
use reqwest::{
    Client, Method, RequestBuilder,
    header::{CONTENT_TYPE, RETRY_AFTER},
    redirect::Policy,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::Url;

use super::{RetryAfter, api_error_codes::ApiErrorCodes, parse_retry_after};

/// Covers the whole request, from connecting to the end of the response body.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const IDLE_CONNECTION_TTL: Duration = Duration::from_mins(1);
/// A page of 100 records has less than half of it.
const MAX_RESPONSE_BYTES: usize = 4 * 1024 * 1024;

/// A client for APIs whose URL the operator sets.
#[derive(Clone)]
pub struct ApiHttpClient(Client);

/// The body of a request.
#[derive(Debug)]
pub enum ApiBody {
    None,
    /// `application/x-www-form-urlencoded`
    Form(Vec<(String, String)>),
    /// JSON of this media type.
    Json(&'static str, Value),
}

/// Why a request has no usable response. The text never contains the API key, and of the response only its codes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiHttpError {
    /// Status 429.
    #[error("the API limits the rate of requests (status 429)")]
    RateLimited(Option<RetryAfter>),
    /// A status from 500, or 408, 409 or 425, which say that a repetition may succeed.
    #[error("the API is unavailable (status {0})")]
    Unavailable(u16),
    #[error("no complete response within {} s", REQUEST_TIMEOUT.as_secs())]
    Timeout,
    #[error("connection failed: {0}")]
    Connection(String),
    /// Not JSON, or too large.
    #[error("the response is not a JSON document")]
    Garbage,
    #[error("the API has no such object (status {0})")]
    NotFound(u16),
    #[error("the API refuses the API key (status {0}{1})")]
    Unauthorized(u16, ApiErrorCodes),
    /// Any other status.
    #[error("the API rejects the request (status {0}{1})")]
    Rejected(u16, ApiErrorCodes),
}

impl ApiHttpClient {
    pub fn new() -> anyhow::Result<Self> {
        let client = Client::builder()
            .redirect(Policy::none())
            .timeout(REQUEST_TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_CONNECTION_TTL)
            .user_agent(concat!("perennial/", env!("CARGO_PKG_VERSION")))
            .build()
            .context("cannot create the HTTP client for payment providers")?;
        Ok(Self(client))
    }

    /// Sends a GET request with a bearer token and returns the JSON of a 200 response.
    pub async fn get_json(
        &self,
        url: Url,
        api_key: &SecretString,
        headers: &[(&'static str, &'static str)],
    ) -> Result<Value, ApiHttpError> {
        let mut request = self.0.get(url).bearer_auth(api_key.expose_secret());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        send(request).await
    }

    /// Sends a request with a bearer token and returns the JSON of a successful response, or null if it has no body.
    pub async fn send_json(
        &self,
        method: Method,
        url: Url,
        api_key: &SecretString,
        headers: &[(&'static str, &str)],
        body: ApiBody,
    ) -> Result<Value, ApiHttpError> {
        let request = self.0.request(method, url);
        let mut request = request.bearer_auth(api_key.expose_secret());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = match body {
            ApiBody::None => request,
            ApiBody::Form(pairs) => {
                let form = url::form_urlencoded::Serializer::new(String::new())
                    .extend_pairs(pairs)
                    .finish();
                let media_type = "application/x-www-form-urlencoded";
                request.header(CONTENT_TYPE, media_type).body(form)
            }
            ApiBody::Json(media_type, document) => request
                .header(CONTENT_TYPE, media_type)
                .body(document.to_string()),
        };
        send(request).await
    }
}

async fn send(request: RequestBuilder) -> Result<Value, ApiHttpError> {
    let mut response = request.send().await.map_err(describe)?;
    let status = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after
        .and_then(|value| value.to_str().ok())
        .and_then(parse_retry_after);
    let mut body = Vec::new();
    // The body of an error is read too, which leaves the connection open for the next request.
    while let Some(chunk) = response.chunk().await.map_err(describe)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_RESPONSE_BYTES {
            return Err(ApiHttpError::Garbage);
        }
    }
    match status {
        204 => Ok(Value::Null),
        200 | 201 => serde_json::from_slice(&body).map_err(|_| ApiHttpError::Garbage),
        429 => Err(ApiHttpError::RateLimited(retry_after)),
        401 | 403 => Err(ApiHttpError::Unauthorized(
            status,
            ApiErrorCodes::parse(&body),
        )),
        404 | 410 => Err(ApiHttpError::NotFound(status)),
        // A proxy may redirect for a while. Redirects are not followed, because the request has the API key.
        300..=399 | 408 | 409 | 425 | 500.. => Err(ApiHttpError::Unavailable(status)),
        _ => Err(ApiHttpError::Rejected(status, ApiErrorCodes::parse(&body))),
    }
}

fn describe(error: reqwest::Error) -> ApiHttpError {
    if error.is_timeout() {
        return ApiHttpError::Timeout;
    }
    let error = anyhow::Error::from(error.without_url());
    ApiHttpError::Connection(format!("{error:#}"))
}
