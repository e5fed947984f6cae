//! [`Caller`]: the extractor that authenticates and authorizes every request.

use std::{marker::PhantomData, sync::Arc};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, Method, header, request::Parts},
};
use jiff::Timestamp;
use perennial_domain::{ClientKind, EventKind, Id, Scope, StaffId, UserId};

use super::{
    AccessPolicy, Authenticator, Client, ClientMiddleware, HasAuthenticator, Principal,
    RequestSource, ResolvedPrincipal, Tenant, UserAuth,
    client_middleware::{ClientLookup, has_staff_cookie},
    sessions::UserSession,
    staff::invalid_session,
};
use crate::{
    clock::IdGenerator,
    events::{Actor, Event},
    http::{
        client_ip::RemoteAddr,
        idempotency::IdempotencyScope,
        middleware::RequestContext,
        problem::{Code, Problem},
        same_origin::{check_same_origin, is_from_browser},
    },
};

/// The client or staff member that sent a request, and the user it acts for, checked against the policy `P`.
pub struct Caller<P> {
    resolved: Arc<ResolvedPrincipal>,
    user_session: Option<Arc<UserSession>>,
    request: RequestContext,
    /// Whether a page of this service sent the request, in sandbox mode.
    is_own_page: bool,
    policy: PhantomData<P>,
}

impl<P> Caller<P> {
    pub fn tenant(&self) -> &Tenant {
        &self.resolved.tenant
    }

    /// Returns the client. For endpoints of the scope `auth`, which staff members do not have.
    pub fn require_client(&self) -> Result<&Client, Problem> {
        { self.resolved.principal.client() }
            .ok_or_else(|| Problem::internal(&"the endpoint's policy does not require a client"))
    }

    pub fn has_scope(&self, scope: Scope) -> bool {
        self.scopes().contains(&scope)
    }

    /// Returns what the caller may do.
    pub fn scopes(&self) -> &[Scope] {
        self.resolved.principal.scopes()
    }

    pub fn remote_addr(&self) -> RemoteAddr {
        self.request.remote_addr
    }

    /// Returns the key for rate limits on sign-ins and invalid tokens.
    pub fn source(&self) -> RequestSource {
        RequestSource::new(&self.resolved.principal, self.request.remote_addr)
    }

    /// Returns the staff member who calls, if it is not a client.
    pub fn staff_id(&self) -> Option<StaffId> {
        self.resolved.principal.staff_id()
    }

    /// Returns the session of the user on whose behalf the client calls, if any.
    pub fn user_session(&self) -> Option<&UserSession> {
        self.user_session.as_deref()
    }

    /// Returns the user on whose behalf the client calls, if any.
    pub fn user(&self) -> Option<UserId> {
        self.user_session().map(|session| session.user.id)
    }

    /// Returns the signed-in user. For endpoints whose policy requires one.
    pub fn require_user_session(&self) -> Result<&UserSession, Problem> {
        self.user_session()
            .ok_or_else(|| Problem::internal(&"the endpoint's policy does not require a user"))
    }

    /// Returns whether a server or a staff member calls without a user, and so sees all data of the tenant.
    pub fn is_unrestricted(&self) -> bool {
        self.resolved.principal.kind() == ClientKind::Secret && self.user_session.is_none()
    }

    /// Returns whether a web page or app calls without a user, and so sees only public data.
    pub fn is_public(&self) -> bool {
        self.resolved.principal.kind() == ClientKind::Publishable && self.user_session.is_none()
    }

    pub fn idempotency_scope(&self) -> IdempotencyScope {
        IdempotencyScope {
            tenant: self.resolved.tenant.id.uuid(),
            principal: self.resolved.principal.uuid(),
            user: self.user().map(Id::uuid),
        }
    }

    /// Returns the author of changes, as recorded in events.
    pub fn actor(&self) -> Actor {
        Actor {
            client: self.resolved.principal.client_id(),
            staff: self.resolved.principal.staff_id(),
            user: self.user(),
            request_id: Some(self.request.id.as_str().to_owned()),
            operator: None,
            payment_account: None,
        }
    }

    /// Creates an event for a change that this caller made.
    pub fn event<'a, T>(
        &self,
        ids: IdGenerator,
        now: Timestamp,
        kind: EventKind,
        subject: impl Id,
        data: &'a T,
    ) -> Event<'a, T> {
        Event {
            id: ids.generate(now),
            at: now,
            tenant: self.resolved.tenant.id,
            kind,
            subject: subject.uuid(),
            actor: self.actor(),
            data,
        }
    }
}

impl<P, S> FromRequestParts<S> for Caller<P>
where
    P: AccessPolicy,
    S: HasAuthenticator + Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Some(ClientLookup {
            request,
            principal,
            is_own_page,
            ..
        }) = parts.extensions.remove()
        else {
            return Err(Problem::internal(&"ClientMiddleware did not run"));
        };
        let headers = &parts.headers;
        let resolved = principal?.ok_or_else(|| invalid_credential(headers))?;
        match &resolved.principal {
            Principal::Client(client) => {
                check_origin(client, request.remote_addr, headers, is_own_page)?;
            }
            Principal::Staff(_) => check_same_origin(&parts.method, headers)?,
        }
        check_scope::<P>(&resolved.principal)?;
        let source = RequestSource::new(&resolved.principal, request.remote_addr);
        let user_session =
            authenticate_user::<P>(state.authenticator(), &resolved, source, headers).await?;
        Ok(Self {
            resolved,
            user_session,
            request,
            is_own_page,
            policy: PhantomData,
        })
    }
}

impl<P: AccessPolicy> Caller<P> {
    /// Checks again that the principal may call the endpoint, with the headers of its GET request. For responses that take
    /// long: the client may have been disabled, rotated or changed, and the staff member removed.
    pub async fn recheck(
        &self,
        middleware: &ClientMiddleware,
        headers: &HeaderMap,
    ) -> Result<(), Problem> {
        let resolved = middleware.find_again(headers).await?;
        let resolved = resolved.ok_or_else(|| invalid_credential(headers))?;
        match &resolved.principal {
            Principal::Client(client) => {
                check_origin(client, self.request.remote_addr, headers, self.is_own_page)?;
            }
            Principal::Staff(_) => check_same_origin(&Method::GET, headers)?,
        }
        check_scope::<P>(&resolved.principal)
    }
}

/// Returns the same problem for a missing, unknown, expired or disabled credential.
fn invalid_credential(headers: &HeaderMap) -> Problem {
    if has_staff_cookie(headers) {
        return invalid_session();
    }
    let detail = "the client-id header must be sent once, with the key of an enabled client";
    Problem::new(Code::InvalidClient, detail)
}

async fn authenticate_user<P: AccessPolicy>(
    authenticator: &Authenticator,
    resolved: &ResolvedPrincipal,
    source: RequestSource,
    headers: &HeaderMap,
) -> Result<Option<Arc<UserSession>>, Problem> {
    let has_token = headers.contains_key(header::AUTHORIZATION);
    let kind = resolved.principal.kind();
    if let Principal::Staff(_) = &resolved.principal
        && (has_token || P::USER == UserAuth::Required)
    {
        let detail = "a staff member cannot act on behalf of a user; send the request without the Authorization header";
        return Err(Problem::new(Code::NotForUsers, detail));
    }
    match P::USER {
        UserAuth::Optional if !has_token => Ok(None),
        UserAuth::RequiredUnlessSecret | UserAuth::SelfService if !has_token => match kind {
            ClientKind::Secret => Ok(None),
            ClientKind::Publishable => {
                let detail = format!(
                    "requires a secret client with the scope {}, or a user's access token in the Authorization header",
                    P::SCOPE
                );
                Err(Problem::new(Code::InsufficientScope, detail))
            }
        },
        UserAuth::SelfService if kind == ClientKind::Secret => {
            let detail = "a secret client cannot update a subscription for a user; send the request without the \
                          Authorization header, or with a publishable client";
            Err(Problem::new(Code::NotForUsers, detail))
        }
        UserAuth::Optional
        | UserAuth::Required
        | UserAuth::RequiredUnlessSecret
        | UserAuth::SelfService => {
            let session = authenticator.authenticate(&resolved.tenant, headers, source);
            Ok(Some(session.await?))
        }
        UserAuth::Forbidden if has_token => {
            let detail = "users cannot call this endpoint; send the request without the Authorization header";
            Err(Problem::new(Code::NotForUsers, detail))
        }
        UserAuth::Ignored | UserAuth::Forbidden => Ok(None),
    }
}

/// Rejects a client that is used from a network or a web page where it is not allowed.
fn check_origin(
    client: &Client,
    remote_addr: RemoteAddr,
    headers: &HeaderMap,
    is_own_page: bool,
) -> Result<(), Problem> {
    let networks = &client.allow_addresses;
    if !networks.is_empty()
        && !networks
            .iter()
            .any(|network| network.contains(&remote_addr.client_ip.0))
    {
        let detail = "this client cannot be used from this IP address";
        return Err(Problem::new(Code::AddressNotAllowed, detail));
    }

    let origin = headers.get(header::ORIGIN);
    match client.kind {
        ClientKind::Secret if is_from_browser(headers) && !is_own_page => {
            let detail = "a secret client must not be used in a browser; rotate its key and use a publishable client";
            Err(Problem::new(Code::SecretClientInBrowser, detail))
        }
        ClientKind::Publishable if origin.is_some_and(|origin| !client.allows_origin(origin)) => {
            let detail = "the page's origin is not one of this client's allowed origins";
            Err(Problem::new(Code::OriginNotAllowed, detail))
        }
        ClientKind::Secret | ClientKind::Publishable => Ok(()),
    }
}

fn check_scope<P: AccessPolicy>(principal: &Principal) -> Result<(), Problem> {
    let kind = principal.kind();
    if !P::KINDS.contains(&kind) {
        let scope = P::SCOPE;
        let detail =
            format!("requires a secret client with the scope {scope}; this client is publishable");
        return Err(Problem::new(Code::InsufficientScope, detail));
    }
    let scope = match kind {
        ClientKind::Secret => P::SCOPE,
        ClientKind::Publishable => P::PUBLISHABLE_SCOPE,
    };
    let required = std::iter::once(&scope).chain(P::ADDITIONAL_SCOPES);
    let mut missing = required.filter(|scope| !principal.scopes().contains(scope));
    if let Some(scope) = missing.next() {
        let detail = match principal {
            Principal::Client(_) => {
                format!("requires the scope {scope}, which this client does not have")
            }
            Principal::Staff(session) => format!(
                "requires the scope {scope}, which staff members with the role {} do not have",
                session.member.role
            ),
        };
        return Err(Problem::new(Code::InsufficientScope, detail));
    }
    if let Principal::Staff(session) = principal
        && !P::STAFF_ROLES.contains(&session.member.role)
    {
        let allowed: Vec<&str> = P::STAFF_ROLES.iter().map(|role| role.as_str()).collect();
        let detail = format!(
            "staff members need the role {} for this; this one has the role {}",
            allowed.join(" or "),
            session.member.role
        );
        return Err(Problem::new(Code::InsufficientScope, detail));
    }
    Ok(())
}
