//! Where we listen, and what we are called from outside.

use std::{net::SocketAddr, time::Duration};

use ipnet::IpNet;

use super::{
    Mode,
    key::{Key, Reader},
};

static LISTEN: Key = Key {
    name: "PERENNIAL_LISTEN",
    doc: "The address and port of the interface.",
    default: Some("127.0.0.1:8080"),
    secret: false,
};

static ADMIN_LISTEN: Key = Key {
    name: "PERENNIAL_ADMIN_LISTEN",
    doc: "The address and port of `/livez`, `/readyz` and `/metrics`. Keep it away from the outside.",
    default: Some("127.0.0.1:9090"),
    secret: false,
};

static PUBLIC_URL: Key = Key {
    name: "PERENNIAL_PUBLIC_URL",
    doc: "The address under which callers reach the interface, such as `https://billing.example.com`: \
          the only source of links to ourselves. Required in live mode; in sandbox mode it is the \
          listening address unless set.",
    default: None,
    secret: false,
};

static TRUSTED_PROXIES: Key = Key {
    name: "PERENNIAL_TRUSTED_PROXIES",
    doc: "Your own proxies and load balancers, as addresses or networks separated by commas: \
          `10.0.0.0/8,fd00::/8`. What they add to `x-forwarded-for` is believed, and so the address \
          that limits and `--allow-address` see is the caller's, not theirs. Name nobody else: \
          whoever is named here can pretend to be any address.",
    default: Some(""),
    secret: false,
};

static DRAIN_SECONDS: Key = Key {
    name: "PERENNIAL_DRAIN_SECONDS",
    doc: "How long the service goes on accepting requests after it was told to stop, with `/readyz` \
          already off: at least as long as your load balancer takes to notice. Default: 5 in live \
          mode, 0 in sandbox mode.",
    default: None,
    secret: false,
};

/// A network, or an address as the network of itself.
pub fn network(text: &str) -> Result<IpNet, String> {
    text.parse::<IpNet>()
        .or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from))
        .map_err(|_| "expected an address or a network such as 10.0.0.0/8".to_owned())
}

/// The same, as an item of a list.
struct Network(IpNet);

impl std::str::FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        network(text).map(Self)
    }
}

/// The keys of this section.
pub static KEYS: &[&Key] = &[
    &LISTEN,
    &ADMIN_LISTEN,
    &PUBLIC_URL,
    &TRUSTED_PROXIES,
    &DRAIN_SECONDS,
];

/// Where we listen, and what we are called from outside.
#[derive(Debug, Clone)]
pub struct Http {
    /// The interface.
    pub listen: SocketAddr,
    /// Health and metrics.
    pub admin_listen: SocketAddr,
    /// Our own address, without a slash at its end.
    pub public_url: String,
    /// Our own proxies.
    pub trusted_proxies: Vec<IpNet>,
    /// How long to go on accepting after a stop was asked for.
    pub drain: Duration,
}

impl Http {
    pub(super) fn read(reader: &mut Reader, mode: Option<Mode>) -> Option<Self> {
        let port = "expected an address and a port, such as 127.0.0.1:8080";
        let listen = reader.checked::<SocketAddr>(&LISTEN, port, |_| true);
        let admin_listen = reader.checked::<SocketAddr>(&ADMIN_LISTEN, port, |_| true);
        let public_url = reader.text(&PUBLIC_URL);
        let public_url = match (public_url, mode) {
            (Some(text), _) => {
                let parsed = url::Url::parse(&text)
                    .ok()
                    .filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host())
                    .filter(|url| url.query().is_none() && url.fragment().is_none())
                    .filter(|url| {
                        url.path() == "/" && url.username().is_empty() && url.password().is_none()
                    });
                if parsed.is_none() {
                    reader.wrong(
                        &PUBLIC_URL,
                        &format!("{text}: expected scheme and host alone, such as https://billing.example.com"),
                    );
                }
                parsed.map(|url| url.as_str().trim_end_matches('/').to_owned())
            }
            (None, Some(Mode::Sandbox)) => listen.map(|address| format!("http://{address}")),
            (None, Some(Mode::Live)) => {
                reader.wrong(&PUBLIC_URL, "is required in live mode: the address under which callers reach this service, such as https://billing.example.com");
                None
            }
            (None, None) => None,
        };
        let trusted_proxies = reader.list::<Network>(&TRUSTED_PROXIES);
        let trusted_proxies =
            trusted_proxies.map(|all| all.into_iter().map(|Network(one)| one).collect());
        let seconds = |number: &f32| (0.0..=3_600.0).contains(number);
        let drain = reader.checked(&DRAIN_SECONDS, "expected seconds from 0 to 3600", seconds);
        let usual = if mode == Some(Mode::Live) { 5.0 } else { 0.0 };
        let drain = Duration::from_secs_f32(drain.unwrap_or(usual));
        Some(Self {
            trusted_proxies: trusted_proxies?,
            drain,
            listen: listen?,
            admin_listen: admin_listen?,
            public_url: public_url?,
        })
    }
}
