//! Limits on trying: how often somebody may sign in, and how many tokens that are no good somebody may send.
//!
//! **Sign-ins and sign-ups** count against a secret client, against whoever is behind the request, and, once a
//! provider has proven it, against the identity. The identity is counted after the proof: counted by what a request
//! merely claims, anybody could use up another's.
//!
//! **Refused tokens** (a provider's, an access token, a refresh token) count against whoever is behind the request.
//! Whoever has sent too many is not listened to until some of them are forgiven, but for tokens that we know already.
//! What we have signed and has run out is no guess; of a session that has ended it counts against that session.
//!
//! Nothing counts against a publishable client: its id is everybody's, and one of its users would lock out all.
//!
//! Like all rates these are kept per process and in memory: nothing is written for somebody who is guessing.

use std::{
    hash::Hash,
    net::IpAddr,
    time::{Duration, Instant},
};

use perennial_domain::{ClientId, ClientKind, Id, SessionId, TenantId};
use sha2::{Digest, Sha256};

use super::Client;
use crate::{
    config::Limits,
    http::{
        peer::{Peer, Sender},
        problem::Problem,
        rate::{Quota, RateLimit},
    },
};

/// Who is behind a request, as far as can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// Whoever calls, with an id that anybody can have.
    Peer(IpAddr),
    /// Whom a server names.
    User(ClientId, IpAddr),
    /// A server that names nobody.
    Server(ClientId),
}

impl Source {
    /// Who is behind a request that this client has sent.
    pub(super) fn of(client: &Client, sender: Sender) -> Self {
        match (client.kind, sender.named) {
            (ClientKind::Secret, Some(user)) => Self::User(client.id, Peer(user).network()),
            (ClientKind::Secret, None) => Self::Server(client.id),
            (ClientKind::Publishable, _) => Self::Peer(sender.peer.network()),
        }
    }
}

/// A limit on whoever is behind a request: on each person, and on each server that does not say who it is.
struct Sources {
    people: RateLimit<Source>,
    servers: RateLimit<Source>,
}

impl Sources {
    fn of(&self, source: Source) -> &RateLimit<Source> {
        match source {
            Source::Peer(_) | Source::User(..) => &self.people,
            Source::Server(_) => &self.servers,
        }
    }
}

/// Counts what is tried.
pub struct Attempts {
    sign_ins_of_clients: RateLimit<ClientId>,
    sign_ins_of_people: RateLimit<Source>,
    sign_ins_of_identities: RateLimit<[u8; 32]>,
    refused: Sources,
    refused_of_sessions: RateLimit<SessionId>,
}

impl Attempts {
    /// With these limits.
    pub fn new(limits: &Limits) -> Self {
        let now = Instant::now();
        let quota = |who, what, most| Quota {
            who,
            what,
            most,
            window: Duration::from_mins(1),
        };
        let sign_ins = |who, most| quota(who, "sign-ins", most);
        let refused = |who, most| quota(who, "refused tokens", most);
        let refused_of = |who, most| RateLimit::new(refused(who, most), now);
        Self {
            sign_ins_of_clients: RateLimit::new(
                sign_ins("client", limits.sign_ins_per_client),
                now,
            ),
            sign_ins_of_people: RateLimit::new(sign_ins("peer", limits.sign_ins_per_peer), now),
            sign_ins_of_identities: RateLimit::new(
                sign_ins("identity", limits.sign_ins_per_identity),
                now,
            ),
            refused: Sources {
                people: refused_of("peer", limits.refused_tokens_per_peer),
                servers: refused_of("client", limits.refused_tokens_per_client),
            },
            refused_of_sessions: RateLimit::new(
                refused("session", limits.refused_tokens_per_session),
                now,
            ),
        }
    }

    /// Somebody is about to sign in or sign up.
    pub fn sign_in(&self, client: ClientId, source: Source) -> Result<(), Problem> {
        self.may_send(source)?;
        match source {
            Source::Peer(_) => take(&self.sign_ins_of_people, &source),
            // What a person may not try does not count against the client, which it shares with others.
            Source::User(..) => take(&self.sign_ins_of_people, &source)
                .and_then(|()| take(&self.sign_ins_of_clients, &client)),
            Source::Server(_) => take(&self.sign_ins_of_clients, &client),
        }
    }

    /// A provider has proven who it is.
    pub fn proven(&self, tenant: TenantId, issuer: &str, subject: &str) -> Result<(), Problem> {
        let mut identity = Sha256::new_with_prefix(tenant.uuid());
        identity.update(issuer);
        identity.update([0]);
        identity.update(subject);
        take(&self.sign_ins_of_identities, &identity.finalize().into())
    }

    /// Somebody sends a token: whether it is looked at.
    pub fn may_send(&self, source: Source) -> Result<(), Problem> {
        listened_to(self.refused.of(source), &source, Instant::now())
    }

    /// The token was one of ours, of this session: whether it is looked up.
    pub fn may_use(&self, session: SessionId, now: Instant) -> Result<(), Problem> {
        listened_to(&self.refused_of_sessions, &session, now)
    }

    /// The token was nobody's.
    pub fn guessed(&self, source: Source) {
        let now = Instant::now();
        self.refused.of(source).take(&source, now);
    }

    /// The token was one of ours, and its session has ended.
    pub fn used_after_its_end(&self, session: SessionId) {
        let now = Instant::now();
        self.refused_of_sessions.take(&session, now);
    }
}

fn take<K: Hash + Eq + Clone>(limit: &RateLimit<K>, key: &K) -> Result<(), Problem> {
    match limit.take(key, Instant::now()) {
        Some(standing) if !standing.allowed => Err(standing.refusal()),
        _ => Ok(()),
    }
}

fn listened_to<K: Hash + Eq + Clone>(
    limit: &RateLimit<K>,
    key: &K,
    now: Instant,
) -> Result<(), Problem> {
    match limit.exhausted(key, now) {
        Some(standing) => Err(standing.refusal()),
        None => Ok(()),
    }
}
