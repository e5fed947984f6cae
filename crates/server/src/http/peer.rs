//! Who is at the other end: the socket's address or, behind proxies that the operator trusts, the
//! address that they saw.
//!
//! `x-forwarded-for` is a list to which each proxy adds, on the right, whom it was called by. What a
//! trusted proxy added is true; what stands left of that was sent by somebody whom nobody vouches
//! for. So we walk from the right, over trusted proxies, and stop at the first address that is none: the
//! **peer**, which limits and lists of addresses are about. What stands left of it is the peer's own word
//! ([`Sender::named`]); a server may say there for which user it calls, and that is worth as much as the server.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address that a request comes from, IPv4 also when it came over an IPv6 socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

impl Peer {
    /// What counts as one peer: the address, or the /64 of an IPv6 one, since who has one such address has
    /// all of them.
    pub fn network(self) -> IpAddr {
        match self.0 {
            IpAddr::V6(address) => {
                let prefix = address.to_bits() & (u128::MAX << 64);
                IpAddr::V6(Ipv6Addr::from_bits(prefix))
            }
            v4 @ IpAddr::V4(_) => v4,
        }
    }
}

/// Who sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender {
    /// Whoever connected to us, or to our proxies.
    pub peer: Peer,
    /// For whom the peer says that it calls: the entry just left of its own.
    pub named: Option<IpAddr>,
}

/// The networks of the operator's own proxies.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Arc<[IpNet]>);

impl TrustedProxies {
    /// These networks.
    pub fn new(networks: &[IpNet]) -> Self {
        Self(networks.into())
    }

    /// Whether an address is one of our proxies'.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Who sent a request that came over this socket, and for whom it says to call.
    pub fn sender(&self, socket: IpAddr, headers: &HeaderMap) -> Sender {
        let sent_by = |peer, named| Sender {
            peer: Peer(peer),
            named,
        };
        let mut nearest = socket.to_canonical();
        let lines = headers.get_all(X_FORWARDED_FOR).iter().rev();
        let hops = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
        for hop in hops {
            // What is no address was not written by a proxy of ours; whoever is left of it is unknown.
            let Some(address) = std::str::from_utf8(hop).ok().and_then(address) else {
                break;
            };
            if !self.contains(nearest) {
                return sent_by(nearest, Some(address));
            }
            nearest = address;
        }
        sent_by(nearest, None)
    }
}

/// An address as proxies write it: alone, with a port, in brackets.
fn address(hop: &str) -> Option<IpAddr> {
    let hop = hop.trim();
    let bare = hop
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(hop);
    let alone = bare.parse().ok();
    let address = alone.or_else(|| Some(hop.parse::<SocketAddr>().ok()?.ip()))?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_house_is_one_peer() {
        let network = |text: &str| Peer(text.parse().unwrap()).network().to_string();
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network("198.51.100.7"), "198.51.100.7");
    }

    /// Catalogue: 55.
    #[test]
    fn the_walk_from_the_right() {
        let trusted =
            TrustedProxies::new(&["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()]);
        let thousand = vec!["203.0.113.9"; 1_000].join(", ");
        // The socket, the header's lines, the peer, and whom it names.
        let cases: &[(&str, &[&str], &str, &str)] = &[
            ("192.0.2.1", &[], "192.0.2.1", "-"),
            // Nobody vouches for what a stranger sends.
            ("192.0.2.1", &["198.51.100.7"], "192.0.2.1", "198.51.100.7"),
            ("192.0.2.1", &["10.0.0.2"], "192.0.2.1", "10.0.0.2"),
            // A proxy that adds nothing is itself the peer.
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
            // Several lines are one list.
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
            // All are ours: the leftmost began it.
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3", "-"),
            // Garbage ends the walk where somebody still vouches.
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
            // A thousand hops, all made up but the last.
            (
                "10.0.0.1",
                &[thousand.as_str(), "198.51.100.7"],
                "198.51.100.7",
                "203.0.113.9",
            ),
            // One address in two spellings is one address.
            (
                "::ffff:10.0.0.1",
                &["::ffff:198.51.100.7"],
                "198.51.100.7",
                "-",
            ),
        ];
        for (socket, lines, expected, named) in cases {
            let mut headers = HeaderMap::new();
            for line in *lines {
                headers.append(X_FORWARDED_FOR, line.parse().unwrap());
            }
            let found = trusted.sender(socket.parse().unwrap(), &headers);
            let expected = Sender {
                peer: Peer(expected.parse().unwrap()),
                named: named.parse().ok(),
            };
            assert_eq!(found, expected, "{socket} {lines:?}");
        }
    }
}
