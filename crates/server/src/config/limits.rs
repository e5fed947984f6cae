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

static SIGN_INS_PER_CLIENT: Key = Key {
    name: "PERENNIAL_SIGN_INS_PER_CLIENT",
    doc: "How many sign-ins and sign-ups per minute one secret client may send to this process. `0` is no limit, \
          here and in the next five.",
    default: Some("6000"),
    secret: false,
};

static SIGN_INS_PER_PEER: Key = Key {
    name: "PERENNIAL_SIGN_INS_PER_PEER",
    doc: "The same for one address: the caller's, or, of a secret client, the one that it names in \
          `x-forwarded-for`.",
    default: Some("60"),
    secret: false,
};

static SIGN_INS_PER_IDENTITY: Key = Key {
    name: "PERENNIAL_SIGN_INS_PER_IDENTITY",
    doc: "The same for one user of an identity provider.",
    default: Some("20"),
    secret: false,
};

static REFUSED_TOKENS_PER_CLIENT: Key = Key {
    name: "PERENNIAL_REFUSED_TOKENS_PER_CLIENT",
    doc: "How many tokens that nobody has made (a provider's, access tokens, refresh tokens) one secret client may \
          send per minute without naming an address; beyond, all of its tokens that are not known yet are \
          refused with 429 until some time has passed.",
    default: Some("6000"),
    secret: false,
};

static REFUSED_TOKENS_PER_PEER: Key = Key {
    name: "PERENNIAL_REFUSED_TOKENS_PER_PEER",
    doc: "The same for one address, as for sign-ins.",
    default: Some("300"),
    secret: false,
};

static REFUSED_TOKENS_PER_SESSION: Key = Key {
    name: "PERENNIAL_REFUSED_TOKENS_PER_SESSION",
    doc: "The same for the tokens of one session that has ended.",
    default: Some("60"),
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
    &SIGN_INS_PER_CLIENT,
    &SIGN_INS_PER_PEER,
    &SIGN_INS_PER_IDENTITY,
    &REFUSED_TOKENS_PER_CLIENT,
    &REFUSED_TOKENS_PER_PEER,
    &REFUSED_TOKENS_PER_SESSION,
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
    /// Sign-ins and sign-ups per minute of one secret client; 0 is no limit.
    pub sign_ins_per_client: u32,
    /// The same from one address.
    pub sign_ins_per_peer: u32,
    /// The same of one user of an identity provider.
    pub sign_ins_per_identity: u32,
    /// Refused tokens per minute of one secret client that names no address; 0 is no limit.
    pub refused_tokens_per_client: u32,
    /// The same from one address.
    pub refused_tokens_per_peer: u32,
    /// The same of one ended session.
    pub refused_tokens_per_session: u32,
    /// Open connections.
    pub connections: usize,
    /// Open connections from one address.
    pub connections_per_peer: usize,
}

impl Limits {
    pub(super) fn read(reader: &mut Reader) -> Option<Self> {
        let mut rate = |key| {
            let expected = "expected a whole number from 1 to 1000000, or 0 for no limit";
            reader.checked(key, expected, |rate| *rate <= 1_000_000_u32)
        };
        let rate_per_client = rate(&RATE_PER_CLIENT);
        let rate_per_peer = rate(&RATE_PER_PEER);
        let sign_ins_per_client = rate(&SIGN_INS_PER_CLIENT);
        let sign_ins_per_peer = rate(&SIGN_INS_PER_PEER);
        let sign_ins_per_identity = rate(&SIGN_INS_PER_IDENTITY);
        let refused_tokens_per_client = rate(&REFUSED_TOKENS_PER_CLIENT);
        let refused_tokens_per_peer = rate(&REFUSED_TOKENS_PER_PEER);
        let refused_tokens_per_session = rate(&REFUSED_TOKENS_PER_SESSION);
        let connections = reader.whole(&CONNECTIONS, 1..=1_000_000);
        let connections_per_peer = reader.whole(&CONNECTIONS_PER_PEER, 1..=1_000_000);
        Some(Self {
            rate_per_client: rate_per_client?,
            rate_per_peer: rate_per_peer?,
            sign_ins_per_client: sign_ins_per_client?,
            sign_ins_per_peer: sign_ins_per_peer?,
            sign_ins_per_identity: sign_ins_per_identity?,
            refused_tokens_per_client: refused_tokens_per_client?,
            refused_tokens_per_peer: refused_tokens_per_peer?,
            refused_tokens_per_session: refused_tokens_per_session?,
            connections: connections?,
            connections_per_peer: connections_per_peer?,
        })
    }
}
