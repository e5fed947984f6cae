//! Asking another server: no redirects, little time, little to read.
//!
//! The addresses are the operator's own words (an issuer) or what that issuer published, so they may
//! well be inside a private network.

use std::time::Duration;

use anyhow::Context;
use serde::de::DeserializeOwned;
use url::form_urlencoded;

/// How long an answer may take, all of it.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The largest answer.
const MAX_BYTES: usize = 256 * 1024;

/// A status and a body.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// A client for other servers.
#[derive(Clone)]
pub(super) struct Web(reqwest::Client);

impl Web {
    pub(super) fn new() -> anyhow::Result<Self> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("perennial/", env!("CARGO_PKG_VERSION")))
            .build()
            .context("the client for identity providers")?;
        Ok(Self(client))
    }

    /// GET, with a bearer token if there is one. An error says what went wrong, and never the token.
    pub(super) async fn get(&self, url: &str, bearer: Option<&str>) -> Result<Answer, String> {
        let mut request = self.0.get(url);
        if let Some(token) = bearer {
            request = request.bearer_auth(token);
        }
        send(url, request).await
    }

    /// POST of a form, as this client if there is one. The token is in the form, and so in no log of addresses.
    pub(super) async fn post(
        &self,
        url: &str,
        form: &[(&str, &str)],
        client: Option<(&str, &str)>,
    ) -> Result<Answer, String> {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let media_type = "application/x-www-form-urlencoded";
        let mut request = self
            .0
            .post(url)
            .header("content-type", media_type)
            .body(body);
        if let Some((id, secret)) = client {
            // Encoded before they are put together, as RFC 6749 has it.
            let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect();
            let (id, secret): (String, String) = (encoded(id), encoded(secret));
            request = request.basic_auth(id, Some(secret));
        }
        send(url, request).await
    }
}

async fn send(url: &str, request: reqwest::RequestBuilder) -> Result<Answer, String> {
    let failed = |error: reqwest::Error| {
        let error = error.without_url();
        let mut what = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(deeper) = cause {
            what = format!("{what}: {deeper}");
            cause = deeper.source();
        }
        format!("{url}: {what}")
    };
    let request = request.header("accept", "application/json");
    let mut response = request.send().await.map_err(failed)?;
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(failed)? {
        body.extend_from_slice(&part);
        if body.len() > MAX_BYTES {
            return Err(format!("{url}: the answer has more than {MAX_BYTES} bytes"));
        }
    }
    Ok(Answer {
        status: response.status().as_u16(),
        body,
    })
}

impl Answer {
    /// What a server that we asked at `url` says, if it says 200. What it says wrongly is not quoted: it may be
    /// somebody's address, and this goes to the log.
    pub(super) fn read<T: DeserializeOwned>(&self, url: &str) -> Result<T, String> {
        if self.status != 200 {
            return Err(format!("{url}: it answered {}", self.status));
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("{url}: it answered nonsense, at line {line}, column {column}")
        })
    }
}
