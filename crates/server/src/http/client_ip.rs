//! The client's IP address: the socket's, or the one reported by trusted proxies.
//!
//! Each proxy appends the address of its client to `x-forwarded-for`. Entries written by a trusted
//! proxy are reliable; entries to the left of those can be forged. The header is therefore read from
//! the right. The first address that is not a trusted proxy is the **client IP**, which rate limits
//! and address lists apply to. The entry to its left is the address that this client claims to forward
//! for ([`RemoteAddr::forwarded_for`]), such as the address of a backend's user.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The client's IP address, canonical: IPv4-mapped IPv6 addresses are converted to IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientIp(pub IpAddr);

impl ClientIp {
    /// Returns the address that limits apply to: IPv6 addresses share one limit per /64, because one
    /// customer usually has a whole /64. [`WIDER_NETWORKS`] have larger limits.
    pub fn network(self) -> IpAddr {
        ipv6_network(self.0, 64).unwrap_or(self.0)
    }
}

/// An IPv6 network that has a limit of its own, for all of its /64 networks together.
pub struct WiderNetwork {
    pub prefix_len: u8,
    /// Multiple of the limit of a /64.
    pub factor: u32,
    /// The name in rate limit headers and metrics.
    pub subject: &'static str,
}

/// The factors are small because most of these networks belong to one customer, and above 1 because
/// some are shared: mobile networks assign a /64 to each device.
pub const WIDER_NETWORKS: [WiderNetwork; 2] = [
    WiderNetwork {
        prefix_len: 56,
        factor: 4,
        subject: "peer/56",
    },
    WiderNetwork {
        prefix_len: 48,
        factor: 16,
        subject: "peer/48",
    },
];

/// Returns the network with this prefix length that contains an IPv6 address. Returns `None` for IPv4.
pub fn ipv6_network(address: IpAddr, prefix_len: u8) -> Option<IpAddr> {
    match address {
        IpAddr::V6(_) => Some(IpNet::new(address, prefix_len).ok()?.network()),
        IpAddr::V4(_) => None,
    }
}

/// The remote addresses of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteAddr {
    /// The address that connected to this service or to its trusted proxies.
    pub client_ip: ClientIp,
    /// The address that this client claims to forward for; not verified.
    pub forwarded_for: Option<IpAddr>,
}

#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Arc<[IpNet]>);

impl TrustedProxies {
    pub fn new(networks: &[IpNet]) -> Self {
        Self(networks.into())
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Returns the remote addresses of a request with this socket address and these headers.
    pub fn remote_addr(&self, socket: IpAddr, headers: &HeaderMap) -> RemoteAddr {
        let remote_addr = |client_ip, forwarded_for| RemoteAddr {
            client_ip: ClientIp(client_ip),
            forwarded_for,
        };
        let mut client_ip = socket.to_canonical();
        let lines = headers.get_all(X_FORWARDED_FOR).iter().rev();
        let hops = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
        for hop in hops {
            // Trusted proxies write only valid addresses, so this entry and those to its left can be forged.
            let Some(address) = std::str::from_utf8(hop).ok().and_then(parse_hop) else {
                break;
            };
            if !self.contains(client_ip) {
                return remote_addr(client_ip, Some(address));
            }
            client_ip = address;
        }
        remote_addr(client_ip, None)
    }
}

/// Parses an entry: an address, optionally in brackets or with a port.
fn parse_hop(hop: &str) -> Option<IpAddr> {
    let hop = hop.trim();
    let bare = hop
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(hop);
    let without_port = bare.parse().ok();
    let address = without_port.or_else(|| Some(hop.parse::<SocketAddr>().ok()?.ip()))?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_addresses_share_a_limit_per_64_prefix() {
        let network = |text: &str| ClientIp(text.parse().unwrap()).network().to_string();
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network("198.51.100.7"), "198.51.100.7");
    }

    /// Malformed input: 55.
    #[test]
    fn client_ip_is_the_first_untrusted_hop_from_the_right() {
        let trusted =
            TrustedProxies::new(&["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()]);
        let thousand = vec!["203.0.113.9"; 1_000].join(", ");
        // The socket, the header lines, the client IP, and the address it forwards for.
        let cases: &[(&str, &[&str], &str, &str)] = &[
            ("192.0.2.1", &[], "192.0.2.1", "-"),
            // The header of an untrusted client is only a claim.
            ("192.0.2.1", &["198.51.100.7"], "192.0.2.1", "198.51.100.7"),
            ("192.0.2.1", &["10.0.0.2"], "192.0.2.1", "10.0.0.2"),
            // A proxy that appends nothing is the client.
            ("10.0.0.1", &[], "10.0.0.1", "-"),
            ("10.0.0.1", &[""], "10.0.0.1", "-"),
            ("10.0.0.1", &["198.51.100.7"], "198.51.100.7", "-"),
            (
                "10.0.0.1",
                &["203.0.113.9, 198.51.100.7"],
                "198.51.100.7",
                "203.0.113.9",
            ),
            ("10.0.0.1", &["198.51.100.7, 10.0.0.2"], "198.51.100.7", "-"),
            (
                "10.0.0.1",
                &["198.51.100.7,10.0.0.2,10.0.0.3"],
                "198.51.100.7",
                "-",
            ),
            // Several headers are one list.
            (
                "10.0.0.1",
                &["203.0.113.9", "198.51.100.7"],
                "198.51.100.7",
                "203.0.113.9",
            ),
            (
                "10.0.0.1",
                &["198.51.100.7", "10.0.0.2"],
                "198.51.100.7",
                "-",
            ),
            // All are trusted: the leftmost is the client.
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3", "-"),
            // An invalid entry ends the list: the trusted proxy to its right is the client.
            ("10.0.0.1", &["unknown"], "10.0.0.1", "-"),
            (
                "10.0.0.1",
                &["198.51.100.7, unknown, 10.0.0.2"],
                "10.0.0.2",
                "-",
            ),
            ("10.0.0.1", &["198.51.100.7, "], "10.0.0.1", "-"),
            ("10.0.0.1", &["300.1.1.1"], "10.0.0.1", "-"),
            ("10.0.0.1", &["_hidden, 198.51.100.7"], "198.51.100.7", "-"),
            // Ports and brackets.
            ("10.0.0.1", &["198.51.100.7:4711"], "198.51.100.7", "-"),
            ("10.0.0.1", &["[2001:db8::7]:4711"], "2001:db8::7", "-"),
            ("10.0.0.1", &["[2001:db8::7]"], "2001:db8::7", "-"),
            ("10.0.0.1", &["2001:db8::7, fd00::1"], "2001:db8::7", "-"),
            // A thousand hops, all forged but the last.
            (
                "10.0.0.1",
                &[thousand.as_str(), "198.51.100.7"],
                "198.51.100.7",
                "203.0.113.9",
            ),
            // IPv4-mapped addresses.
            (
                "::ffff:10.0.0.1",
                &["::ffff:198.51.100.7"],
                "198.51.100.7",
                "-",
            ),
        ];
        for (socket, lines, expected, forwarded_for) in cases {
            let mut headers = HeaderMap::new();
            for line in *lines {
                headers.append(X_FORWARDED_FOR, line.parse().unwrap());
            }
            let actual = trusted.remote_addr(socket.parse().unwrap(), &headers);
            let expected = RemoteAddr {
                client_ip: ClientIp(expected.parse().unwrap()),
                forwarded_for: forwarded_for.parse().ok(),
            };
            assert_eq!(actual, expected, "{socket} {lines:?}");
        }
    }
}
