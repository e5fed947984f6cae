//! The values of the header Host that the service accepts.
//!
//! A web page can make its own host name resolve to the address of this service (DNS rebinding), and
//! browsers then treat both as the same origin. Requests that name an unknown host are therefore
//! rejected. An IP address cannot be rebound, so a listener on all addresses accepts any.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    extract::Request,
    http::{HeaderValue, Version, header},
};
use url::Url;

use super::problem::{Code, Problem};

#[derive(Debug, Clone)]
pub struct AllowedHosts {
    /// In lower case.
    names: Arc<[String]>,
    listener: IpAddr,
}

impl AllowedHosts {
    /// Allows the host of the public URL, the listener's address, loopback, and further host names or
    /// addresses.
    pub fn new(public_url: &str, listener: SocketAddr, further: &[String]) -> Self {
        let public = Url::parse(public_url).ok();
        let public = public.as_ref().and_then(Url::host_str);
        let names = ["localhost"].into_iter().chain(public);
        Self {
            names: names
                .chain(further.iter().map(String::as_str))
                .map(|name| name.trim_end_matches('.').to_ascii_lowercase())
                .collect(),
            listener: listener.ip().to_canonical(),
        }
    }

    /// Fails unless the request names an allowed host. An HTTP/1.0 request may have no Host header.
    pub(super) fn check(&self, request: &Request) -> Result<(), Problem> {
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let host = hosts.next();
        let required = request.version() >= Version::HTTP_11;
        if hosts.next().is_some() || (required && host.is_none()) {
            let detail = "an HTTP/1.1 request must have exactly one Host header";
            return Err(Problem::new(Code::InvalidRequest, detail));
        }
        // The host of an absolute request target takes precedence over the header (RFC 9112); both
        // must be allowed, in case a proxy sees only one of them.
        let target = request
            .uri()
            .authority()
            .map(|host| host.as_str().as_bytes());
        let named = host.map(HeaderValue::as_bytes);
        if named
            .into_iter()
            .chain(target)
            .all(|host| self.contains(host))
        {
            return Ok(());
        }
        let detail = "the Host header does not name this service; use its public URL, or have the operator add \
                      the host to PERENNIAL_ALLOWED_HOSTS";
        Err(Problem::new(Code::MisdirectedRequest, detail))
    }

    /// Returns whether a host is allowed, with any port.
    fn contains(&self, host: &[u8]) -> bool {
        let Some(host) = std::str::from_utf8(host).ok().and_then(without_port) else {
            return false;
        };
        let host = host.strip_suffix('.').unwrap_or(host);
        if self
            .names
            .iter()
            .any(|name| name.eq_ignore_ascii_case(host))
        {
            return true;
        }
        let address = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let address = address.unwrap_or(host).parse::<IpAddr>();
        address.is_ok_and(|address| {
            let address = address.to_canonical();
            address.is_loopback() || address == self.listener || self.listener.is_unspecified()
        })
    }
}

/// Removes the port. Returns `None` if what follows the host is not a port.
fn without_port(host: &str) -> Option<&str> {
    let end = host.rfind(']').map_or(0, |bracket| bracket + 1);
    let (_, rest) = host.split_at_checked(end)?;
    match rest.split_once(':') {
        None => Some(host),
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            host.get(..end + name.len())
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_the_service_are_allowed_with_any_port() {
        let further = ["perennial".to_owned(), "[2001:db8::7]".to_owned()];
        let listener = "10.0.0.5:8080".parse().unwrap();
        let hosts = AllowedHosts::new("https://billing.example.com", listener, &further);
        for host in [
            "billing.example.com",
            "BILLING.example.com:443",
            "billing.example.com.",
            "10.0.0.5",
            "10.0.0.5:8080",
            "localhost:9999",
            "127.0.0.1:1",
            "127.8.9.1",
            "[::1]",
            "[::1]:8080",
            "perennial:8080",
            "[2001:db8::7]:8080",
        ] {
            assert!(hosts.contains(host.as_bytes()), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "billing.example.com.evil.example",
            "evil.example:billing.example.com",
            "billing.example.com@evil.example",
            "billing.example.com:80x",
            "billing.example.com:80:80",
            "billing.example.com ",
            "10.0.0.6",
            "0.0.0.0",
            "[::2]",
            "::1]",
            "localhost.evil.example",
        ] {
            assert!(!hosts.contains(host.as_bytes()), "{host}");
        }
        assert!(!hosts.contains(b"\xff"));
    }

    #[test]
    fn listener_on_all_addresses_allows_ip_addresses() {
        for listener in ["0.0.0.0:8080", "[::]:8080"] {
            let listener = listener.parse().unwrap();
            let hosts = AllowedHosts::new("https://billing.example.com", listener, &[]);
            for host in ["10.0.0.6:8080", "[2001:db8::1]", "0.0.0.0"] {
                assert!(hosts.contains(host.as_bytes()), "{host}");
            }
            assert!(!hosts.contains(b"evil.example"));
        }
    }
}
