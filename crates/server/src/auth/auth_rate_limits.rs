//! Rate limits on sign-ins and on invalid tokens.
//!
//! **Sign-ins and sign-ups** are counted per secret client, per request source and, once an
//! identity provider has verified it, per identity. The identity is counted after verification:
//! otherwise a request that merely claims an identity could use up its limit.
//!
//! **Invalid tokens** (of an identity provider, access tokens, refresh tokens) are counted per
//! request source. A source over its limit gets 429 for every token that is not in the cache. A
//! validly signed token that has expired does not count. If its session has ended, it counts
//! against that session.
//!
//! Nothing counts against a publishable client: its key is public, so one of its users could lock
//! out all others.
//!
//! Counters are kept in memory, per process.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use perennial_domain::{ClientId, ClientKind, Id, SessionId, TenantId};
use sha2::{Digest, Sha256};

use super::Principal;
use crate::{
    config::LimitsConfig,
    http::{
        client_ip::{ClientIp, RemoteAddr},
        network_rate_limit::{NetworkKey, NetworkRateLimit},
        problem::Problem,
        rate_limit::{Quota, RateLimit, RateLimitDecision},
    },
};

/// The origin of a request, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestSource {
    /// The network of a publishable client's user, or of a staff member.
    Peer(IpAddr),
    /// The network of an end user, as forwarded by a secret client.
    User(ClientId, IpAddr),
    /// A secret client that forwards no address.
    Server(ClientId),
}

impl RequestSource {
    pub(super) fn new(principal: &Principal, remote_addr: RemoteAddr) -> Self {
        let server = { principal.client() }.filter(|client| client.kind == ClientKind::Secret);
        match (server, remote_addr.forwarded_for) {
            (Some(client), Some(user)) => Self::User(client.id, ClientIp(user).network()),
            (Some(client), None) => Self::Server(client.id),
            (None, _) => Self::Peer(remote_addr.client_ip.network()),
        }
    }
}

impl NetworkKey for RequestSource {
    fn widen(&self, prefix_len: u8) -> Option<Self> {
        match self {
            Self::Peer(network) => network.widen(prefix_len).map(Self::Peer),
            Self::User(client, network) => {
                let network = network.widen(prefix_len)?;
                Some(Self::User(*client, network))
            }
            Self::Server(_) => None,
        }
    }
}

pub struct AuthRateLimits {
    sign_ins_by_client: RateLimit<ClientId>,
    sign_ins_by_address: NetworkRateLimit<RequestSource>,
    sign_ins_by_identity: RateLimit<[u8; 32]>,
    invalid_tokens_by_address: NetworkRateLimit<RequestSource>,
    invalid_tokens_by_server: NetworkRateLimit<RequestSource>,
    invalid_tokens_by_session: RateLimit<SessionId>,
}

impl AuthRateLimits {
    pub fn new(limits: &LimitsConfig) -> Self {
        let sign_ins = |subject, limit| per_minute(subject, "sign-ins", limit);
        let invalid_tokens = |subject, limit| per_minute(subject, "refused tokens", limit);
        let now = Instant::now();
        Self {
            sign_ins_by_client: RateLimit::new(sign_ins("client", limits.sign_ins_per_client), now),
            sign_ins_by_address: NetworkRateLimit::new(
                sign_ins("peer", limits.sign_ins_per_peer),
                now,
            ),
            sign_ins_by_identity: RateLimit::new(
                sign_ins("identity", limits.sign_ins_per_identity),
                now,
            ),
            invalid_tokens_by_address: NetworkRateLimit::new(
                invalid_tokens("peer", limits.refused_tokens_per_peer),
                now,
            ),
            invalid_tokens_by_server: NetworkRateLimit::new(
                invalid_tokens("client", limits.refused_tokens_per_client),
                now,
            ),
            invalid_tokens_by_session: RateLimit::new(
                invalid_tokens("session", limits.refused_tokens_per_session),
                now,
            ),
        }
    }

    /// Counts a sign-in or sign-up before the provider's token is verified.
    pub fn count_sign_in(&self, client: ClientId, source: RequestSource) -> Result<(), Problem> {
        self.check_invalid_tokens(source)?;
        let now = Instant::now();
        let count_address = || reject(self.sign_ins_by_address.check(&source, now));
        let count_client = || reject(self.sign_ins_by_client.check(&client, now));
        match source {
            RequestSource::Peer(_) => count_address(),
            // A user over the limit must not use up the client's, which other users share.
            RequestSource::User(..) => count_address().and_then(|()| count_client()),
            RequestSource::Server(_) => count_client(),
        }
    }

    /// Counts a sign-in or sign-up of a verified identity.
    pub fn count_identity(
        &self,
        tenant: TenantId,
        issuer: &str,
        subject: &str,
    ) -> Result<(), Problem> {
        let mut identity = Sha256::new_with_prefix(tenant.uuid());
        identity.update(issuer);
        identity.update([0]);
        identity.update(subject);
        let identity: [u8; 32] = identity.finalize().into();
        reject(self.sign_ins_by_identity.check(&identity, Instant::now()))
    }

    /// Fails if the source has sent too many invalid tokens.
    pub fn check_invalid_tokens(&self, source: RequestSource) -> Result<(), Problem> {
        let limit = self.invalid_token_limit(source);
        reject(limit.exhausted(&source, Instant::now()))
    }

    /// Fails if too many tokens of this session were sent after it ended.
    pub fn check_session(&self, session: SessionId, now: Instant) -> Result<(), Problem> {
        reject(self.invalid_tokens_by_session.exhausted(&session, now))
    }

    /// Counts a token that neither the service nor an identity provider issued.
    pub fn record_invalid_token(&self, source: RequestSource) {
        self.invalid_token_limit(source)
            .check(&source, Instant::now());
    }

    /// Counts a token that the service issued and whose session has ended.
    pub fn record_ended_session(&self, session: SessionId) {
        self.invalid_tokens_by_session
            .check(&session, Instant::now());
    }

    fn invalid_token_limit(&self, source: RequestSource) -> &NetworkRateLimit<RequestSource> {
        match source {
            RequestSource::Peer(_) | RequestSource::User(..) => &self.invalid_tokens_by_address,
            RequestSource::Server(_) => &self.invalid_tokens_by_server,
        }
    }
}

fn per_minute(subject: &'static str, unit: &'static str, limit: u32) -> Quota {
    Quota {
        subject,
        unit,
        limit,
        window: Duration::from_mins(1),
    }
}

/// Fails if the limit is exceeded.
fn reject(decision: Option<RateLimitDecision<'_>>) -> Result<(), Problem> {
    match decision {
        Some(decision) if !decision.allowed => Err(decision.to_problem()),
        _ => Ok(()),
    }
}
