//! Guards against server-side request forgery: which addresses a request to a client's URL may connect to.
//!
//! The check is on the address that is connected to, not on the host name, so that a DNS record that changes
//! between two lookups (DNS rebinding) has no effect. Names are resolved by [`GuardedResolver`], whose result
//! is what the connection uses. Literal addresses do not reach a resolver and are checked in the URL, where the
//! parser has normalized forms such as `0x7f.1`.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// IPv4 networks that are not public, and the metadata service of a cloud that has a public address.
const RESERVED_V4: [(Ipv4Addr, u8); 17] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];
/// Global unicast. Everything outside is loopback, link-local, unique local, multicast, NAT64 or unassigned.
const GLOBAL_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// Networks in the global unicast range that are not public, or that contain an IPv4 address.
const RESERVED_V6: [(Ipv6Addr, u8); 4] = [
    // Protocol assignments, among them Teredo.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    // 6to4.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Returns whether an address is reachable from the internet for everyone, and so no internal system.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => !RESERVED_V4
            .iter()
            .any(|(network, prefix)| Ipv4Net::new_assert(*network, *prefix).contains(&address)),
        IpAddr::V6(address) => {
            let contains = |(network, prefix): (Ipv6Addr, u8)| {
                Ipv6Net::new_assert(network, prefix).contains(&address)
            };
            contains(GLOBAL_V6) && !RESERVED_V6.into_iter().any(contains)
        }
    }
}

/// The rule for the URLs and addresses of outgoing requests.
#[derive(Debug, Clone)]
pub struct AddressGuard {
    /// Networks that are allowed in addition to public addresses.
    allowed: Arc<[IpNet]>,
    requires_https: bool,
}

/// A URL or an address that requests must not reach.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefusedTarget {
    #[error("must start with https:// in live mode")]
    NotHttps,
    #[error("must be an http or https URL with a host")]
    NotHttp,
    #[error(
        "{0} is not a public address; the operator can allow it with PERENNIAL_WEBHOOK_NETWORKS"
    )]
    Address(String),
}

impl AddressGuard {
    pub fn new(allowed: &[IpNet], requires_https: bool) -> Self {
        Self {
            allowed: allowed.into(),
            requires_https,
        }
    }

    /// Returns whether requests may connect to an address.
    pub fn allows(&self, address: IpAddr) -> bool {
        let canonical = address.to_canonical();
        is_public(canonical)
            || self
                .allowed
                .iter()
                .any(|network| network.contains(&canonical) || network.contains(&address))
    }

    /// Parses a URL and checks its scheme and a literal address. A host name is checked when it is resolved.
    pub fn check_url(&self, url: &str) -> Result<Url, RefusedTarget> {
        let url = Url::parse(url).map_err(|_| RefusedTarget::NotHttp)?;
        match url.scheme() {
            "http" if self.requires_https => return Err(RefusedTarget::NotHttps),
            "http" | "https" => {}
            _ => return Err(RefusedTarget::NotHttp),
        }
        let literal: IpAddr = match url.host() {
            None => return Err(RefusedTarget::NotHttp),
            Some(Host::Domain(_)) => return Ok(url),
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
        };
        if self.allows(literal) {
            Ok(url)
        } else {
            Err(RefusedTarget::Address(literal.to_string()))
        }
    }

    /// Checks a URL like [`Self::check_url`], and resolves its host name. A name that cannot be resolved is
    /// accepted: it may exist later, and each request checks again.
    pub async fn check_and_resolve(&self, url: &str) -> Result<(), RefusedTarget> {
        let url = self.check_url(url)?;
        let Some(Host::Domain(name)) = url.host() else {
            return Ok(());
        };
        let lookup = tokio::time::timeout(super::LOOKUP_TIMEOUT, self.resolve(name)).await;
        match lookup {
            Ok(Ok(addresses)) if addresses.is_empty() => {
                Err(RefusedTarget::Address(name.to_owned()))
            }
            Ok(Ok(_) | Err(_)) | Err(_) => Ok(()),
        }
    }

    /// Returns the allowed addresses of a host name. Empty if all of them are refused.
    async fn resolve(&self, name: &str) -> std::io::Result<Vec<SocketAddr>> {
        // The port is replaced by the one of the URL.
        let addresses = tokio::net::lookup_host((name, 0)).await?;
        Ok(addresses
            .filter(|address| self.allows(address.ip()))
            .collect())
    }
}

/// Resolves the host names of outgoing requests to allowed addresses only.
pub(super) struct GuardedResolver(pub(super) AddressGuard);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.0.clone();
        Box::pin(async move {
            let addresses = guard.resolve(name.as_str()).await?;
            if addresses.is_empty() {
                return Err(RefusedTarget::Address(name.as_str().to_owned()).into());
            }
            let addresses: Addrs = Box::new(addresses.into_iter());
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(networks: &[&str], requires_https: bool) -> AddressGuard {
        let networks: Vec<IpNet> = networks.iter().map(|text| text.parse().unwrap()).collect();
        AddressGuard::new(&networks, requires_https)
    }

    #[test]
    fn only_public_addresses_are_allowed() {
        for reserved in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b:1::7f00:1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(reserved.parse().unwrap()), "{reserved}");
        }
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "168.63.129.17",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.1.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "2001:4860:4860::8888",
            "2606:4700:4700::1111",
            "2a00:1450::1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn literal_addresses_are_normalized_before_the_check() {
        let guard = guard(&[], false);
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://0x7f.1/",
            "http://0x7f000001/",
            "http://2130706433/",
            "http://017700000001/",
            "http://127.0.0.1./",
            "http://①②⑦.⓪.⓪.①/",
            "http://%31%32%37.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:7f00:1]/",
            "http://[0:0:0:0:0:ffff:127.0.0.1]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://[fd00:ec2::254]/",
            "http://0/",
        ] {
            let refused = guard.check_url(url).unwrap_err();
            assert!(matches!(refused, RefusedTarget::Address(_)), "{url}");
        }
        for url in [
            "http://1.1.1.1/",
            "https://example.com/",
            "http://[2606::1]/",
        ] {
            assert!(guard.check_url(url).is_ok(), "{url}");
        }
        for url in [
            "ftp://example.com/",
            "file:///etc/passwd",
            "example.com",
            "",
        ] {
            assert_eq!(guard.check_url(url), Err(RefusedTarget::NotHttp), "{url}");
        }
    }

    #[test]
    fn live_mode_requires_https() {
        let guard = guard(&["10.1.0.0/16"], true);
        let refused = guard.check_url("http://example.com/");
        assert_eq!(refused, Err(RefusedTarget::NotHttps));
        assert!(guard.check_url("https://10.1.2.3/").is_ok());
        assert!(guard.check_url("https://10.2.2.3/").is_err());
    }

    #[test]
    fn configured_networks_are_allowed_in_all_forms() {
        let guard = guard(&["127.0.0.0/8", "fd12::/16"], false);
        for url in [
            "http://127.0.0.1/",
            "http://0x7f.1/",
            "http://[::ffff:127.0.0.1]/",
            "http://[fd12::7]/",
        ] {
            assert!(guard.check_url(url).is_ok(), "{url}");
        }
        assert!(guard.check_url("http://[fd13::7]/").is_err());
    }

    #[tokio::test]
    async fn host_name_of_a_refused_address_is_refused() {
        let refused = guard(&[], false)
            .check_and_resolve("http://localhost/")
            .await;
        assert!(matches!(refused, Err(RefusedTarget::Address(_))));
        let allowed = guard(&["127.0.0.0/8", "::1/128"], false);
        assert_eq!(allowed.check_and_resolve("http://localhost/").await, Ok(()));
        let guard = guard(&[], false);
        let unknown = guard.check_and_resolve("http://no-such-host.invalid/");
        assert_eq!(unknown.await, Ok(()));
    }
}
