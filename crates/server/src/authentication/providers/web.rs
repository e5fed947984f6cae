//! Asking another server: no redirects, little time, little to read.
//!
//! The addresses are the operator's own words (an issuer) or what that issuer published, so they may
//! well be inside a private network.

use std::time::Duration;

use anyhow::Context;

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
        let mut request = self.0.get(url).header("accept", "application/json");
        if let Some(token) = bearer {
            request = request.bearer_auth(token);
        }
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
}
