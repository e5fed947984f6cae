//! Calls a running service, for commands of developers. The shell variables are those that `perennial dev` sets.

use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends requests as one client (API key).
pub struct ServiceClient {
    http: reqwest::Client,
    url: String,
    client_id: SecretString,
}

impl ServiceClient {
    /// Creates a client for the service at `url`, or else at `$URL`, with the API key in `$CLIENT_ID`. `read_timeout` is
    /// the longest pause in a response.
    pub fn from_env(url: Option<String>, read_timeout: Duration) -> anyhow::Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let start = "start a sandbox with: eval \"$(perennial dev --background)\"";
        let url = url.or_else(|| variable("URL"));
        let url =
            url.with_context(|| format!("the service's URL is not known; set URL, or {start}"))?;
        let client_id = variable("CLIENT_ID");
        let client_id = client_id
            .with_context(|| format!("CLIENT_ID is not set; set it to an API key, or {start}"))?;
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(read_timeout)
            .user_agent(concat!("perennial/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self {
            http,
            url: url.trim_end_matches('/').to_owned(),
            client_id: client_id.into(),
        })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Starts a request.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url));
        request.header("client-id", self.client_id.expose_secret())
    }

    /// Sends a request with a JSON body, which must succeed, and returns the response.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let what = format!("{method} {path}");
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.json(body);
        }
        let text = self.send_request(&what, request).await?;
        if text.is_empty() {
            return Ok(Value::Null);
        }
        Ok(serde_json::from_str(&text)?)
    }

    /// Sends a request that must succeed, and returns the text of the response, in which amounts keep their decimals.
    pub async fn send_request(
        &self,
        what: &str,
        request: RequestBuilder,
    ) -> anyhow::Result<String> {
        let response = request.send().await.map_err(reqwest::Error::without_url);
        let response = response.with_context(|| format!("{what} at {}", self.url))?;
        if !response.status().is_success() {
            bail!("{what}: {}", describe_problem(response).await);
        }
        Ok(response.text().await?)
    }
}

/// Returns the status, the code and the detail of a problem.
pub async fn describe_problem(response: Response) -> String {
    let status: StatusCode = response.status();
    let problem: Value = response.json().await.unwrap_or_default();
    let text = |member: &str| problem.get(member).and_then(Value::as_str);
    match (text("code"), text("detail")) {
        (Some(code), Some(detail)) => format!("{} {code}: {detail}", status.as_u16()),
        _ => status.to_string(),
    }
}
