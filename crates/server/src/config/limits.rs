//! Rate limits and connection limits.

use super::env::{EnvReader, EnvVar};

static RATE_PER_CLIENT: EnvVar = EnvVar {
    name: "PERENNIAL_RATE_PER_CLIENT",
    doc: "Maximum number of requests per second and secret client to this process, from 1 to 1000000. The burst \
          size is the same number. Requests above the limit get 429 with `Retry-After`. `0` disables the \
          limit. Requests of publishable clients, whose ids are public, count per IP address instead. Also the maximum \
          number of signed payment notifications per second and payment account.",
    default: Some("1000"),
    secret: false,
};

static RATE_PER_PEER: EnvVar = EnvVar {
    name: "PERENNIAL_RATE_PER_PEER",
    doc: "Maximum number of requests per second and IP address to this process, with a burst of the same \
          size. Requests of secret clients and signed payment notifications do not count. An IPv6 address counts as its /64 network; its /56 \
          may send 4 times as many and its /48 16 times, which applies to all limits per IP address. `0` \
          disables the limit. If the service is behind a proxy, set `PERENNIAL_TRUSTED_PROXIES`; otherwise all clients share the limit of the proxy's \
          address.",
    default: Some("100"),
    secret: false,
};

static SIGN_INS_PER_CLIENT: EnvVar = EnvVar {
    name: "PERENNIAL_SIGN_INS_PER_CLIENT",
    doc: "Maximum number of sign-ins and sign-ups per minute and secret client to this process. `0` \
          disables the limit.",
    default: Some("6000"),
    secret: false,
};

static SIGN_INS_PER_PEER: EnvVar = EnvVar {
    name: "PERENNIAL_SIGN_INS_PER_PEER",
    doc: "Maximum number of sign-ins and sign-ups per minute and IP address to this process. For a secret \
          client, this is the address that it passes in `x-forwarded-for`. `0` disables the limit.",
    default: Some("60"),
    secret: false,
};

static SIGN_INS_PER_IDENTITY: EnvVar = EnvVar {
    name: "PERENNIAL_SIGN_INS_PER_IDENTITY",
    doc: "Maximum number of sign-ins and sign-ups per minute and user of an identity provider to this \
          process. `0` disables the limit.",
    default: Some("20"),
    secret: false,
};

static REFUSED_TOKENS_PER_CLIENT: EnvVar = EnvVar {
    name: "PERENNIAL_REFUSED_TOKENS_PER_CLIENT",
    doc: "Maximum number of invalid tokens (of identity providers, access tokens, refresh tokens) per \
          minute that a secret client may send without `x-forwarded-for`. Above the limit, its tokens get \
          429, except those that were verified recently. `0` disables the limit.",
    default: Some("6000"),
    secret: false,
};

static REFUSED_TOKENS_PER_PEER: EnvVar = EnvVar {
    name: "PERENNIAL_REFUSED_TOKENS_PER_PEER",
    doc: "Maximum number of invalid tokens per minute and IP address. For a secret client, this is the \
          address that it passes in `x-forwarded-for`. Above the limit, tokens get 429, except those that \
          were verified recently. `0` disables the limit.",
    default: Some("300"),
    secret: false,
};

static REFUSED_TOKENS_PER_SESSION: EnvVar = EnvVar {
    name: "PERENNIAL_REFUSED_TOKENS_PER_SESSION",
    doc: "Maximum number of requests per minute with tokens of the same ended session. Further ones get \
          429. `0` disables the limit.",
    default: Some("60"),
    secret: false,
};

static CONNECTIONS: EnvVar = EnvVar {
    name: "PERENNIAL_CONNECTIONS",
    doc: "Maximum number of open connections to the API. At the limit, the service closes connections that \
          wait for their peer, first those of the IP address with the most connections. The process raises \
          its limit of open files to the hard limit; if that (`ulimit -Hn`) is lower than this setting, \
          it is the effective maximum.",
    default: Some("10000"),
    secret: false,
};

static CONNECTIONS_PER_PEER: EnvVar = EnvVar {
    name: "PERENNIAL_CONNECTIONS_PER_PEER",
    doc: "Maximum number of open connections to the API per IP address. Further connections are closed \
          immediately. Trusted proxies are exempt.",
    default: Some("250"),
    secret: false,
};

static EVENT_READERS: EnvVar = EnvVar {
    name: "PERENNIAL_EVENT_READERS",
    doc: "Maximum number of requests to `GET /events` that wait for events in this process, from 1 to 100000: streams \
          (`text/event-stream`) and requests with `wait`. Further ones get 503 with `Retry-After`. Each occupies one of \
          `PERENNIAL_CONNECTIONS` and reads the database at least once a second.",
    default: Some("1000"),
    secret: false,
};

static EVENT_READERS_PER_TENANT: EnvVar = EnvVar {
    name: "PERENNIAL_EVENT_READERS_PER_TENANT",
    doc: "Maximum number of requests to `GET /events` per tenant that wait for events in this process, from 1 to \
          100000. Further ones get 429 with `Retry-After`.",
    default: Some("100"),
    secret: false,
};

static SESSION_CACHE_ENTRIES: EnvVar = EnvVar {
    name: "PERENNIAL_SESSION_CACHE_ENTRIES",
    doc: "Maximum number of sessions that this process keeps in memory per database, from 100 to 10000000, each \
          with a verified access token. Set it to at least the number of sessions that are in use at the same time: \
          beyond it, the least used sessions are evicted and read from the database at their next use. A session and \
          its token occupy about 1.6 KiB.",
    default: Some("200000"),
    secret: false,
};

pub static VARIABLES: &[&EnvVar] = &[
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
    &EVENT_READERS,
    &EVENT_READERS_PER_TENANT,
    &SESSION_CACHE_ENTRIES,
];

/// Limits of this process. A rate of 0 means no limit.
#[derive(Debug, Clone, Copy)]
pub struct LimitsConfig {
    /// Requests per second and secret client.
    pub rate_per_client: u32,
    /// Requests per second and IP address, except those of secret clients.
    pub rate_per_peer: u32,
    /// Sign-ins and sign-ups per minute and secret client.
    pub sign_ins_per_client: u32,
    /// Sign-ins and sign-ups per minute and IP address.
    pub sign_ins_per_peer: u32,
    /// Sign-ins and sign-ups per minute and user of an identity provider.
    pub sign_ins_per_identity: u32,
    /// Invalid tokens per minute and secret client that passes no `x-forwarded-for`.
    pub refused_tokens_per_client: u32,
    /// Invalid tokens per minute and IP address.
    pub refused_tokens_per_peer: u32,
    /// Requests per minute with tokens of the same ended session.
    pub refused_tokens_per_session: u32,
    /// Open connections.
    pub connections: usize,
    /// Open connections per IP address.
    pub connections_per_peer: usize,
    /// Requests that wait for events.
    pub event_readers: usize,
    /// Requests that wait for events, per tenant.
    pub event_readers_per_tenant: usize,
    /// Cached sessions and access tokens per cell.
    pub session_cache_entries: usize,
}

impl LimitsConfig {
    pub(super) fn read(reader: &mut EnvReader) -> Option<Self> {
        let mut rate = |var| {
            let expected = "must be an integer from 1 to 1000000, or 0 for no limit";
            reader.parse_if(var, expected, |rate| *rate <= 1_000_000_u32)
        };
        // All variables are read before the first `?`, so that all errors are collected.
        let rate_per_client = rate(&RATE_PER_CLIENT);
        let rate_per_peer = rate(&RATE_PER_PEER);
        let sign_ins_per_client = rate(&SIGN_INS_PER_CLIENT);
        let sign_ins_per_peer = rate(&SIGN_INS_PER_PEER);
        let sign_ins_per_identity = rate(&SIGN_INS_PER_IDENTITY);
        let refused_tokens_per_client = rate(&REFUSED_TOKENS_PER_CLIENT);
        let refused_tokens_per_peer = rate(&REFUSED_TOKENS_PER_PEER);
        let refused_tokens_per_session = rate(&REFUSED_TOKENS_PER_SESSION);
        let connections = reader.integer(&CONNECTIONS, 1..=1_000_000);
        let connections_per_peer = reader.integer(&CONNECTIONS_PER_PEER, 1..=1_000_000);
        let event_readers = reader.integer(&EVENT_READERS, 1..=100_000);
        let event_readers_per_tenant = reader.integer(&EVENT_READERS_PER_TENANT, 1..=100_000);
        let session_cache_entries = reader.integer(&SESSION_CACHE_ENTRIES, 100..=10_000_000);
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
            event_readers: event_readers?,
            event_readers_per_tenant: event_readers_per_tenant?,
            session_cache_entries: session_cache_entries?,
        })
    }
}
