//! [`Principal`]: what the credential of a request belongs to.

use std::sync::Arc;

use jiff::Timestamp;
use perennial_domain::{ClientId, ClientKind, Id, Scope, StaffId};
use uuid::Uuid;

use super::{Client, Tenant, staff::StaffSession};
use crate::http::{problem::Problem, rate_limit::RateCounter};

/// A client, by its API key, or a staff member, by the cookie of the console.
#[derive(Debug, Clone)]
pub enum Principal {
    Client(Client),
    Staff(StaffSession),
}

impl Principal {
    pub fn client(&self) -> Option<&Client> {
        match self {
            Self::Client(client) => Some(client),
            Self::Staff(_) => None,
        }
    }

    pub fn client_id(&self) -> Option<ClientId> {
        self.client().map(|client| client.id)
    }

    pub fn staff_id(&self) -> Option<StaffId> {
        match self {
            Self::Client(_) => None,
            Self::Staff(session) => Some(session.member.id),
        }
    }

    /// Returns the id of the client or staff member.
    pub fn uuid(&self) -> Uuid {
        match self {
            Self::Client(client) => client.id.uuid(),
            Self::Staff(session) => session.member.id.uuid(),
        }
    }

    pub fn scopes(&self) -> &[Scope] {
        match self {
            Self::Client(client) => &client.scopes,
            Self::Staff(session) => session.member.role.scopes(),
        }
    }

    /// Returns the kind of client that the principal is treated like. A staff member is treated like a server.
    pub fn kind(&self) -> ClientKind {
        match self {
            Self::Client(client) => client.kind,
            Self::Staff(_) => ClientKind::Secret,
        }
    }
}

/// A principal with its tenant.
#[derive(Debug, Clone)]
pub struct ResolvedPrincipal {
    pub tenant: Tenant,
    pub principal: Principal,
    /// When the credential expires: an API key after a rotation, and every session.
    pub(super) expires_at: Option<Timestamp>,
    /// Hot path: the principal's request counter, kept here to save a lookup per request (measured
    /// together with four other changes: the benchmark "session check" went from 40,500 to 33,100
    /// instructions; see docs/explanation/benchmarks.md).
    pub(super) requests: RateCounter,
}

/// The principal of a request, or `None` if its credential is missing or unknown.
pub(super) type PrincipalLookup = Result<Option<Arc<ResolvedPrincipal>>, Problem>;
