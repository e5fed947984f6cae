//! Rate limits per IP address that also hold for the networks around an IPv6 address.
//!
//! One customer of a provider usually has a /64, often a /56 and sometimes a /48. With a limit per
//! /64 only, such a customer could multiply it by 256 or 65,536.

use std::{hash::Hash, net::IpAddr, time::Instant};

use super::{
    client_ip::{self, WIDER_NETWORKS},
    rate_limit::{Quota, RateLimit, RateLimitDecision},
};

/// A key that contains the network of an IP address.
pub trait NetworkKey: Hash + Eq + Clone {
    /// Returns the key of the surrounding IPv6 network with this prefix length. Returns `None` if the
    /// key has no IPv6 address.
    fn widen(&self, prefix_len: u8) -> Option<Self>;
}

impl NetworkKey for IpAddr {
    fn widen(&self, prefix_len: u8) -> Option<Self> {
        client_ip::ipv6_network(*self, prefix_len)
    }
}

/// A quota for each IP address, and larger ones for the IPv6 networks in [`WIDER_NETWORKS`].
pub struct NetworkRateLimit<K> {
    by_address: RateLimit<K>,
    by_network: [(u8, RateLimit<K>); WIDER_NETWORKS.len()],
}

impl<K: NetworkKey> NetworkRateLimit<K> {
    /// Creates the limits. `quota` is that of one address.
    pub fn new(quota: Quota, now: Instant) -> Self {
        Self {
            by_address: RateLimit::new(quota, now),
            by_network: WIDER_NETWORKS.map(|network| {
                let quota = Quota {
                    subject: network.subject,
                    limit: quota.limit.saturating_mul(network.factor),
                    ..quota
                };
                (network.prefix_len, RateLimit::new(quota, now))
            }),
        }
    }

    /// Counts a request. Returns the decision that rejects it, or that of its address. Returns `None`
    /// if there is no limit. A request over the limit of its address does not count against its
    /// networks.
    pub fn check(&self, key: &K, now: Instant) -> Option<RateLimitDecision<'_>> {
        let by_address = self.by_address.check(key, now)?;
        if !by_address.allowed {
            return Some(by_address);
        }
        let mut by_network = self
            .networks(key)
            .filter_map(|(limit, network)| limit.check(&network, now));
        by_network
            .find(|decision| !decision.allowed)
            .or(Some(by_address))
    }

    /// Returns a decision if the key's next request would be rejected. Counts nothing.
    pub fn exhausted(&self, key: &K, now: Instant) -> Option<RateLimitDecision<'_>> {
        self.by_address.exhausted(key, now).or_else(|| {
            self.networks(key)
                .find_map(|(limit, network)| limit.exhausted(&network, now))
        })
    }

    fn networks(&self, key: &K) -> impl Iterator<Item = (&RateLimit<K>, K)> {
        self.by_network
            .iter()
            .filter_map(|(prefix_len, limit)| Some((limit, key.widen(*prefix_len)?)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ipv6_networks_have_limits_of_their_own() {
        let start = Instant::now();
        let quota = Quota {
            subject: "peer",
            unit: "requests",
            limit: 10,
            window: Duration::from_secs(1),
        };
        let limit = NetworkRateLimit::new(quota, start);
        // Sends 20 requests from each /64 and returns how many were allowed.
        let allowed = |networks: &mut dyn Iterator<Item = String>| {
            let keys = networks.map(|network| network.parse::<IpAddr>().unwrap());
            keys.map(|key| {
                let requests = (0..20).filter(|_| limit.check(&key, start).unwrap().allowed);
                requests.count()
            })
            .sum::<usize>()
        };
        let numbers = 0_u16..256;
        // A /56, then the rest of its /48, then the next /48.
        let one_56 = allowed(&mut numbers.clone().map(|n| format!("2001:db8:1:{n:x}::")));
        assert_eq!(one_56, 4 * 10);
        let one_48 = allowed(&mut numbers.clone().map(|n| format!("2001:db8:1:{n:x}00::")));
        assert_eq!(one_56 + one_48, 16 * 10);
        assert_eq!(allowed(&mut ["2001:db8:2::".to_owned()].into_iter()), 10);
        // IPv4 addresses have no surrounding network.
        let ipv4 = allowed(&mut numbers.map(|n| format!("198.51.100.{n}")));
        assert_eq!(ipv4, 256 * 10);

        let new: IpAddr = "2001:db8:1:ffff::".parse().unwrap();
        let exhausted = limit.exhausted(&new, start).unwrap();
        assert_eq!(exhausted, limit.check(&new, start).unwrap());
    }
}
