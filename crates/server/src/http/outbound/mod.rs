//! Requests to URLs that clients choose, such as webhook endpoints, and to APIs whose URL the operator sets ([`api_client`]).
//!
//! Redirects are not followed and proxies of the environment are not used, because both would reach addresses
//! that [`AddressGuard`] has not checked.

use std::{error::Error, io, sync::Arc, time::Duration};

use anyhow::Context;
use bytes::Bytes;
use ipnet::IpNet;
use reqwest::{Client, ClientBuilder, header::RETRY_AFTER, redirect::Policy};
use rustls::{
    CertificateError, ClientConfig, RootCertStore,
    client::{ClientSessionMemoryCache, Resumption},
    crypto::aws_lc_rs,
};

mod address_guard;
mod api_client;
mod api_error_codes;

pub use address_guard::{AddressGuard, RefusedTarget, is_public};
pub use api_client::{ApiBody, ApiHttpClient, ApiHttpError};
pub use api_error_codes::ApiErrorCodes;

const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A new TLS handshake costs more than twenty requests on an open connection.
const IDLE_CONNECTION_TTL: Duration = Duration::from_secs(90);
/// Many endpoints can be on one host.
const MAX_IDLE_CONNECTIONS_PER_HOST: usize = 64;
/// The number of servers whose TLS sessions can be resumed.
const MAX_TLS_SESSIONS: usize = 4_096;
/// The rest of a longer response body is not read.
const MAX_BODY_BYTES: usize = 16 * 1024;

/// A client for requests to URLs that clients of the API choose.
#[derive(Clone)]
pub struct OutboundClient {
    client: Client,
    pub guard: AddressGuard,
}

/// A response whose body has been read, up to a limit, and dropped.
#[derive(Debug, Clone, Copy)]
pub struct OutboundResponse {
    pub status: u16,
    /// The header Retry-After in seconds.
    pub retry_after: Option<RetryAfter>,
}

/// The value of the header Retry-After.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    Seconds(u32),
    At(jiff::Timestamp),
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    #[error("the URL {0}")]
    Refused(#[from] RefusedTarget),
    #[error("no complete response within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("the certificate of the server is not signed by a trusted authority")]
    UntrustedCertificate,
    #[error("TLS failed: {0}")]
    Tls(String),
    #[error("{0}")]
    Connection(String),
}

/// Returns a builder of clients that connect only to addresses that the guard allows. Their users check each URL too, because a
/// literal address is not resolved.
pub fn guarded_builder(guard: &AddressGuard) -> ClientBuilder {
    Client::builder()
        .dns_resolver(address_guard::GuardedResolver(guard.clone()))
        .redirect(Policy::none())
        .no_proxy()
}

impl OutboundClient {
    /// Creates a client that may reach public addresses and these networks.
    pub fn new(networks: &[IpNet], requires_https: bool) -> anyhow::Result<Self> {
        let guard = AddressGuard::new(networks, requires_https);
        let client = guarded_builder(&guard)
            .tls_backend_preconfigured(tls_config()?)
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_CONNECTION_TTL)
            .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS_PER_HOST)
            .user_agent(concat!("perennial/", env!("CARGO_PKG_VERSION")))
            .build()
            .context("cannot create the HTTP client for webhooks")?;
        Ok(Self { client, guard })
    }

    /// Posts JSON. `timeout` covers the whole request, from the lookup of the host to the end of the response
    /// body.
    pub async fn post_json(
        &self,
        url: &str,
        headers: [(&'static str, String); 3],
        body: Bytes,
        timeout: Duration,
    ) -> Result<OutboundResponse, OutboundError> {
        let url = self.guard.check_url(url)?;
        let mut request = self
            .client
            .post(url)
            .header("content-type", "application/json")
            .body(body);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let exchange = async {
            let mut response = request.send().await?;
            let mut read = 0;
            // A body that is read to its end leaves the connection open for the next request.
            while let Some(chunk) = response.chunk().await? {
                read += chunk.len();
                if read > MAX_BODY_BYTES {
                    break;
                }
            }
            let retry_after = response.headers().get(RETRY_AFTER);
            Ok(OutboundResponse {
                status: response.status().as_u16(),
                retry_after: retry_after
                    .and_then(|value| value.to_str().ok())
                    .and_then(parse_retry_after),
            })
        };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(outcome) => outcome.map_err(|error| describe(error, timeout)),
            Err(_) => Err(OutboundError::Timeout(timeout)),
        }
    }
}

/// Parses seconds or an HTTP date.
fn parse_retry_after(text: &str) -> Option<RetryAfter> {
    let text = text.trim();
    match text.parse() {
        Ok(seconds) => Some(RetryAfter::Seconds(seconds)),
        Err(_) => jiff::fmt::rfc2822::parse(text)
            .ok()
            .map(|date| RetryAfter::At(date.timestamp())),
    }
}

/// Converts an error. The text does not contain the URL, which may contain a credential.
fn describe(error: reqwest::Error, timeout: Duration) -> OutboundError {
    if error.is_timeout() {
        return OutboundError::Timeout(timeout);
    }
    let error = anyhow::Error::from(error.without_url());
    if let Some(refused) = error.chain().find_map(|cause| cause.downcast_ref()) {
        return OutboundError::Refused(RefusedTarget::clone(refused));
    }
    match error.chain().find_map(find_tls_error) {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            OutboundError::UntrustedCertificate
        }
        Some(tls_error) => OutboundError::Tls(tls_error.to_string()),
        None => OutboundError::Connection(format!("{error:#}")),
    }
}

/// Returns the TLS error that a cause is or contains. The source of an I/O error is not the error in it, but that
/// error's source.
fn find_tls_error<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let inner = cause
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    match inner {
        Some(inner) => find_tls_error(inner),
        None => cause.downcast_ref(),
    }
}

fn tls_config() -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let sessions = Arc::new(ClientSessionMemoryCache::new(MAX_TLS_SESSIONS));
    config.resumption = Resumption::store(sessions);
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let parsed = [
            "30",
            " 0 ",
            "Fri, 31 Dec 1999 23:59:59 GMT",
            "soon",
            "-1",
            "",
        ]
        .map(parse_retry_after);
        let date = RetryAfter::At("1999-12-31T23:59:59Z".parse().unwrap());
        let seconds = |seconds| Some(RetryAfter::Seconds(seconds));
        assert_eq!(
            parsed,
            [seconds(30), seconds(0), Some(date), None, None, None]
        );
    }
}
