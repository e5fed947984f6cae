//! Listening addresses, public URL, allowed hosts, trusted proxies and the served documentation.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use ipnet::IpNet;
use secrecy::SecretString;
use url::{Host, Url};

use super::{
    Mode,
    env::{EnvReader, EnvVar},
};

static LISTEN: EnvVar = EnvVar {
    name: "PERENNIAL_LISTEN",
    doc: "Address and port of the API. If systemd passes a socket (`perennial.socket`), it must have the same \
          address.",
    default: Some("127.0.0.1:8080"),
    secret: false,
};

static ADMIN_LISTEN: EnvVar = EnvVar {
    name: "PERENNIAL_ADMIN_LISTEN",
    doc: "Address and port of `/livez`, `/readyz` and `/metrics`. Do not expose it to the internet.",
    default: Some("127.0.0.1:9090"),
    secret: false,
};

static PUBLIC_URL: EnvVar = EnvVar {
    name: "PERENNIAL_PUBLIC_URL",
    doc: "Base URL under which clients reach the API, such as `https://billing.example.com`. All links to \
          the service are built from it. Required in live mode. Default in sandbox mode: the listening \
          address.",
    default: None,
    secret: false,
};

static ALLOWED_HOSTS: EnvVar = EnvVar {
    name: "PERENNIAL_ALLOWED_HOSTS",
    doc: "Further host names or IP addresses that requests to the API may name in the header `Host`, separated \
          by commas and without ports: `perennial,billing.internal`. The hosts of `PERENNIAL_PUBLIC_URL` and \
          `PERENNIAL_LISTEN`, `localhost` and loopback addresses are always allowed; if the service listens \
          on all addresses (`0.0.0.0`), so is every IP address. Other hosts get 421 `misdirected_request`, \
          which protects against DNS rebinding. Not checked on `PERENNIAL_ADMIN_LISTEN`.",
    default: Some(""),
    secret: false,
};

static DOCS: EnvVar = EnvVar {
    name: "PERENNIAL_DOCS",
    doc: "`public` to serve the start page, the documentation, the API explorer and `/openapi.json` to \
          everyone, `off` to respond to `/`, `/docs` and `/openapi.json` with 404.",
    default: Some("public"),
    secret: false,
};

static EXPLORER_CLIENT_ID: EnvVar = EnvVar {
    name: "PERENNIAL_EXPLORER_CLIENT_ID",
    doc: "The client id that the API explorer fills in. Everyone who can open the explorer can read it, so it \
          is for sandboxes that only you can reach, and an error in live mode. `perennial dev` sets it to the \
          sandbox's own client, if the sandbox listens on a loopback address.",
    default: None,
    secret: true,
};

static TRUSTED_PROXIES: EnvVar = EnvVar {
    name: "PERENNIAL_TRUSTED_PROXIES",
    doc: "Addresses or networks of your own proxies and load balancers, separated by commas: \
          `10.0.0.0/8,fd00::/8`. The service trusts the entries that they add to `x-forwarded-for`, so \
          that rate limits and `--allow-address` apply to the address of the client instead of the proxy. \
          List only machines that you control: a trusted proxy can forge any client address.",
    default: Some(""),
    secret: false,
};

static DRAIN_SECONDS: EnvVar = EnvVar {
    name: "PERENNIAL_DRAIN_SECONDS",
    doc: "How many seconds the service keeps accepting requests during a graceful shutdown, while \
          `/readyz` already fails, from 0 to 3600. Set it to at least the time that your load balancer \
          needs to notice. Default: 5 in live mode, 0 in sandbox mode.",
    default: None,
    secret: false,
};

pub static VARIABLES: &[&EnvVar] = &[
    &LISTEN,
    &ADMIN_LISTEN,
    &PUBLIC_URL,
    &ALLOWED_HOSTS,
    &DOCS,
    &EXPLORER_CLIENT_ID,
    &TRUSTED_PROXIES,
    &DRAIN_SECONDS,
];

perennial_domain::string_enum! {
    /// Who can read the documentation that the service serves.
    pub enum DocsAccess: "a setting" {
        Public = "public",
        Off = "off",
    }
}

/// Parses a host name or IP address without a port.
fn parse_host(text: &str) -> Result<String, String> {
    let bare_ipv6 = text.parse::<IpAddr>().ok().filter(IpAddr::is_ipv6);
    let text = bare_ipv6.map_or_else(|| text.to_owned(), |address| format!("[{address}]"));
    let host = Host::parse(&text).map_err(
        |_| "must be a host name or IP address without scheme and port, such as billing.internal",
    )?;
    Ok(host.to_string())
}

/// Parses a network in CIDR notation, or a single address.
pub fn parse_network(text: &str) -> Result<IpNet, String> {
    text.parse::<IpNet>()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| "must be an IP address, or a network such as 10.0.0.0/8".to_owned())
}

pub(super) const EXPECTED_ADDRESS: &str = "must be an address and port, such as 127.0.0.1:8080";

#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Address of the API.
    pub listen: SocketAddr,
    /// Address of health checks and metrics.
    pub admin_listen: SocketAddr,
    /// Base URL of the API, without a trailing slash.
    pub public_url: String,
    /// Host names and IP addresses, in addition to those of `public_url` and `listen`.
    pub allowed_hosts: Vec<String>,
    pub docs: DocsAccess,
    /// The client id that the API explorer shows. `None` in live mode.
    pub explorer_client_id: Option<SecretString>,
    pub trusted_proxies: Vec<IpNet>,
    /// How long to keep accepting requests during a graceful shutdown.
    pub drain: Duration,
}

impl HttpConfig {
    pub(super) fn read(reader: &mut EnvReader, mode: Option<Mode>) -> Option<Self> {
        let listen = reader.parse_if(&LISTEN, EXPECTED_ADDRESS, |_| true);
        let admin_listen = reader.parse_if(&ADMIN_LISTEN, EXPECTED_ADDRESS, |_| true);
        let required = "is required in live mode: the base URL under which clients reach the API, such as \
                        https://billing.example.com";
        let public_url = read_base_url(reader, &PUBLIC_URL, mode, listen, required);
        let allowed_hosts = reader.parse_list(&ALLOWED_HOSTS, parse_host);
        let docs = reader.parse(&DOCS);
        let explorer_client_id = read_explorer_client_id(reader, mode);
        let trusted_proxies = reader.parse_list(&TRUSTED_PROXIES, parse_network);
        let in_range = |seconds: &f32| (0.0..=3_600.0).contains(seconds);
        let expected = "must be a number of seconds from 0 to 3600";
        let drain = reader.parse_if(&DRAIN_SECONDS, expected, in_range);
        let default = if mode == Some(Mode::Live) { 5.0 } else { 0.0 };
        reader.set_default(&DRAIN_SECONDS, default);
        Some(Self {
            listen: listen?,
            admin_listen: admin_listen?,
            public_url: public_url?,
            allowed_hosts: allowed_hosts?,
            docs: docs?,
            explorer_client_id,
            trusted_proxies: trusted_proxies?,
            drain: Duration::from_secs_f32(drain.unwrap_or(default)),
        })
    }
}

fn read_explorer_client_id(reader: &mut EnvReader, mode: Option<Mode>) -> Option<SecretString> {
    let client_id = reader.get(&EXPLORER_CLIENT_ID)?;
    if mode == Some(Mode::Live) {
        let message = "cannot be set in live mode, because everyone who opens the API explorer could read it; \
                       remove it";
        reader.push_error(&EXPLORER_CLIENT_ID, message);
        return None;
    }
    Some(client_id.into())
}

/// Reads the URL of a listener, without a trailing slash. It is required in live mode.
pub(super) fn read_base_url(
    reader: &mut EnvReader,
    variable: &'static EnvVar,
    mode: Option<Mode>,
    listen: Option<SocketAddr>,
    required: &str,
) -> Option<String> {
    let is_base_url = |url: &Url| {
        ["http", "https"].contains(&url.scheme())
            && url.has_host()
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    };
    match (reader.get(variable), mode) {
        (Some(text), _) => {
            let url = Url::parse(&text).ok().filter(is_base_url);
            if url.is_none() {
                let message = format!(
                    "must be a scheme and host only, such as https://billing.example.com; got \"{text}\""
                );
                reader.push_error(variable, &message);
            }
            url.map(|url| url.as_str().trim_end_matches('/').to_owned())
        }
        (None, Some(Mode::Sandbox)) => {
            let url = listen.map(|address| format!("http://{address}"));
            if let Some(url) = &url {
                reader.set_default(variable, url);
            }
            url
        }
        (None, Some(Mode::Live)) => {
            reader.push_error(variable, required);
            None
        }
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_hosts_have_no_scheme_port_or_path() {
        for (text, expected) in [
            ("Perennial", "perennial"),
            ("10.0.0.5", "10.0.0.5"),
            ("2001:db8::7", "[2001:db8::7]"),
            ("[2001:db8::7]", "[2001:db8::7]"),
        ] {
            assert_eq!(parse_host(text).as_deref(), Ok(expected));
        }
        for text in ["http://a", "a:80", "a/b", "a b"] {
            assert!(parse_host(text).is_err(), "{text}");
        }
    }
}
