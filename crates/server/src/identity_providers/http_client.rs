//! HTTP client for identity providers, without redirects and with limits on time and size.
//!
//! URLs come from the operator, from API clients, or from an issuer's discovery document. Private addresses are allowed only
//! for providers whose URLs come from the operator.

use std::time::Duration;

use anyhow::Context;
use serde::de::DeserializeOwned;
use url::form_urlencoded;

use crate::http::outbound::{AddressGuard, guarded_builder};

/// Covers the whole request, from connecting to the end of the response body.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_RESPONSE_BYTES: usize = 256 * 1024;

pub(super) struct ProviderResponse {
    pub(super) status: u16,
    body: Vec<u8>,
}

#[derive(Clone)]
pub(super) struct ProviderHttpClient {
    client: reqwest::Client,
    /// The rule for URLs and addresses. `None` allows all of them.
    guard: Option<AddressGuard>,
}

impl ProviderHttpClient {
    /// Creates a client that may reach the addresses that the guard allows, or any.
    pub(super) fn new(guard: Option<AddressGuard>) -> anyhow::Result<Self> {
        let builder = match &guard {
            Some(guard) => guarded_builder(guard),
            None => reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()),
        };
        let client = builder
            .timeout(REQUEST_TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("perennial/", env!("CARGO_PKG_VERSION")))
            .build()
            .context("cannot create the HTTP client for identity providers")?;
        Ok(Self { client, guard })
    }

    fn check_url(&self, url: &str) -> Result<(), String> {
        let refused = self
            .guard
            .as_ref()
            .and_then(|guard| guard.check_url(url).err());
        refused.map_or(Ok(()), |refused| Err(format!("{url}: {refused}")))
    }

    /// Sends a GET request, with a bearer token if given. Errors never contain the token.
    pub(super) async fn get(
        &self,
        url: &str,
        bearer: Option<&str>,
    ) -> Result<ProviderResponse, String> {
        self.check_url(url)?;
        let mut request = self.client.get(url);
        if let Some(token) = bearer {
            request = request.bearer_auth(token);
        }
        send(url, request).await
    }

    /// Sends a form, with client credentials if given. Tokens go into the form, so that they do not
    /// appear in logs of URLs.
    pub(super) async fn post(
        &self,
        url: &str,
        form: &[(&str, &str)],
        credentials: Option<(&str, &str)>,
    ) -> Result<ProviderResponse, String> {
        self.check_url(url)?;
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let media_type = "application/x-www-form-urlencoded";
        let mut request = self
            .client
            .post(url)
            .header("content-type", media_type)
            .body(body);
        if let Some((id, secret)) = credentials {
            // RFC 6749, section 2.3.1: both are form-encoded before they are joined.
            let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect();
            let (id, secret): (String, String) = (encode(id), encode(secret));
            request = request.basic_auth(id, Some(secret));
        }
        send(url, request).await
    }
}

async fn send(url: &str, request: reqwest::RequestBuilder) -> Result<ProviderResponse, String> {
    let describe = |error: reqwest::Error| {
        let error = anyhow::Error::from(error.without_url());
        format!("{url}: {error:#}")
    };
    let request = request.header("accept", "application/json");
    let mut response = request.send().await.map_err(describe)?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(describe)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_RESPONSE_BYTES {
            return Err(format!(
                "{url}: the response exceeds {MAX_RESPONSE_BYTES} bytes"
            ));
        }
    }
    Ok(ProviderResponse {
        status: response.status().as_u16(),
        body,
    })
}

impl ProviderResponse {
    /// Parses the body of a 200 response. Errors do not quote it: they are logged, and it may
    /// contain an email address.
    pub(super) fn parse<T: DeserializeOwned>(&self, url: &str) -> Result<T, String> {
        if self.status != 200 {
            return Err(format!("{url}: status {}", self.status));
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("{url}: unexpected response body at line {line}, column {column}")
        })
    }
}
