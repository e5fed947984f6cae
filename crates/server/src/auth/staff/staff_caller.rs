//! The callers of the console's own endpoints: a signed-in staff member, and a visitor who is about to sign in.

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::{Method, request::Parts},
};

use super::{StaffChange, StaffSession, invalid_session};
use crate::{
    auth::{Principal, ResolvedPrincipal, Tenant, client_middleware::ClientLookup},
    clock::IdGenerator,
    events::Actor,
    http::{
        middleware::RequestContext,
        problem::{Code, Problem},
        same_origin::check_same_origin,
    },
};

/// A request of someone who is not signed in.
pub struct Visitor {
    request: RequestContext,
}

impl Visitor {
    /// Returns the context of a sign-in.
    pub fn change(&self, ids: IdGenerator, now: jiff::Timestamp) -> StaffChange {
        let actor = Actor {
            request_id: Some(self.request.id.as_str().to_owned()),
            ..Actor::default()
        };
        StaffChange { ids, now, actor }
    }
}

impl<S: Sync> FromRequestParts<S> for Visitor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let request = take_lookup(parts)?.request;
        // The identity provider redirects to a page of the console from its own site.
        if parts.method != Method::GET {
            check_same_origin(&parts.method, &parts.headers)?;
        }
        Ok(Self { request })
    }
}

/// A signed-in staff member.
pub struct StaffCaller {
    resolved: Arc<ResolvedPrincipal>,
    session: StaffSession,
    request: RequestContext,
}

impl StaffCaller {
    /// Returns the tenant of the session.
    pub fn tenant(&self) -> &Tenant {
        &self.resolved.tenant
    }

    pub fn session(&self) -> &StaffSession {
        &self.session
    }

    /// Returns the context of a change that the member makes.
    pub fn change(&self, ids: IdGenerator, now: jiff::Timestamp) -> StaffChange {
        let actor = Actor {
            staff: Some(self.session.member.id),
            request_id: Some(self.request.id.as_str().to_owned()),
            ..Actor::default()
        };
        StaffChange { ids, now, actor }
    }
}

impl<S: Sync> FromRequestParts<S> for StaffCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let lookup = take_lookup(parts)?;
        check_same_origin(&parts.method, &parts.headers)?;
        let resolved = lookup.principal?.ok_or_else(invalid_session)?;
        let Principal::Staff(session) = &resolved.principal else {
            return Err(invalid_session());
        };
        Ok(Self {
            session: session.clone(),
            resolved,
            request: lookup.request,
        })
    }
}

/// Takes the request extension, unless the console is turned off or has a separate listener.
fn take_lookup(parts: &mut Parts) -> Result<ClientLookup, Problem> {
    let lookup = parts.extensions.remove::<ClientLookup>();
    let lookup = lookup.ok_or_else(|| Problem::internal(&"ClientMiddleware did not run"))?;
    if !lookup.request.serves_console {
        let detail = "this listener does not serve the console; see PERENNIAL_CONSOLE and PERENNIAL_CONSOLE_LISTEN";
        return Err(Problem::new(Code::NotFound, detail));
    }
    Ok(lookup)
}
