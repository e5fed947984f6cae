//! How much of everything one caller may have.

use super::key::{Key, Reader};

static RATE_PER_CLIENT: Key = Key {
    name: "PERENNIAL_RATE_PER_CLIENT",
    doc: "How many requests per second one client may send to this process; a second's worth may come \
          at once. Beyond, it is told 429 with `Retry-After`. `0` is no limit.",
    default: Some("1000"),
    secret: false,
};

static RATE_PER_PEER: Key = Key {
    name: "PERENNIAL_RATE_PER_PEER",
    doc: "The same for one address, counting what does not come from a secret client: browsers, apps, \
          and whoever has no client. Behind a proxy, set `PERENNIAL_TRUSTED_PROXIES`, or all the world \
          is one address.",
    default: Some("100"),
    secret: false,
};

static CONNECTIONS: Key = Key {
    name: "PERENNIAL_CONNECTIONS",
    doc: "How many connections to the interface may be open at once; further ones wait. The process \
          raises its limit of open files as far as it may; with `ulimit -Hn` below this, fewer fit.",
    default: Some("10000"),
    secret: false,
};

static CONNECTIONS_PER_PEER: Key = Key {
    name: "PERENNIAL_CONNECTIONS_PER_PEER",
    doc: "How many of them one address may have; a further one is closed at once. Trusted proxies are \
          not counted.",
    default: Some("1000"),
    secret: false,
};

/// The keys of this section.
pub static KEYS: &[&Key] = &[
    &RATE_PER_CLIENT,
    &RATE_PER_PEER,
    &CONNECTIONS,
    &CONNECTIONS_PER_PEER,
];

/// How much of everything one caller may have.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests per second of one client; 0 is no limit.
    pub rate_per_client: u32,
    /// Requests per second from one address, unless a secret client's; 0 is no limit.
    pub rate_per_peer: u32,
    /// Open connections.
    pub connections: usize,
    /// Open connections from one address.
    pub connections_per_peer: usize,
}

impl Limits {
    pub(super) fn read(reader: &mut Reader) -> Option<Self> {
        let mut rate = |key: &'static Key| {
            let rate = reader.value::<u32>(key);
            if rate.is_some_and(|rate| rate > 1_000_000) {
                reader.wrong(key, "must be from 1 to 1000000, or 0 for no limit");
            }
            rate
        };
        let rate_per_client = rate(&RATE_PER_CLIENT);
        let rate_per_peer = rate(&RATE_PER_PEER);
        let connections = reader.count(&CONNECTIONS, 1_000_000);
        let connections_per_peer = reader.count(&CONNECTIONS_PER_PEER, 1_000_000);
        Some(Self {
            rate_per_client: rate_per_client?,
            rate_per_peer: rate_per_peer?,
            connections: connections?,
            connections_per_peer: connections_per_peer?,
        })
    }
}
