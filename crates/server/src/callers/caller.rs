//! The extractor that stands before every handler: which client calls, on behalf of which user, and whether it may.

use std::{marker::PhantomData, sync::Arc};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, header, request::Parts},
};
use jiff::Timestamp;
use perennial_domain::{ClientKind, EventKind, Id, Scope};

use super::{
    Bearers, Client, Known, KnowsBearers, Source, Tenant, gate::Identified, sessions::SignedIn,
};
use crate::{
    clock::Ids,
    events::{By, Event},
    http::{
        envelope::Arrival,
        idempotency,
        peer::Sender,
        problem::{Code, Problem},
    },
};

/// Set by browsers, and by them alone: no script can send or suppress it.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What an endpoint asks of its caller.
pub trait Need: Send + Sync {
    /// The scope that the client must have.
    const SCOPE: Scope;
    /// The kinds of client that may have it here.
    const KINDS: &'static [ClientKind];
    /// What a bearer means here.
    const USER: OnBehalf;
}

/// What it means for an endpoint that its caller acts on behalf of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnBehalf {
    /// Nothing: whatever stands in the header is not looked at.
    OfNobody,
    /// It shows what that user may see.
    OfAnybody,
    /// It must be.
    OfSomebody,
    /// It must be, unless a server calls for itself; it shows what is that user's.
    OfSomebodyOrAServer,
    /// It must not be: users do not do this.
    Refused,
}

macro_rules! needs {
    ($($(#[$doc:meta])* $name:ident: $scope:ident, $($kind:ident)|+, $user:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {}

        impl Need for $name {
            const SCOPE: Scope = Scope::$scope;
            const KINDS: &'static [ClientKind] = &[$(ClientKind::$kind,)+];
            const USER: OnBehalf = OnBehalf::$user;
        }
    )*};
}

needs! {
    /// Reading plans. Publishable clients and users get active ones only.
    PlansRead: PlansRead, Secret | Publishable, OfAnybody;
    /// Changing plans.
    PlansWrite: PlansWrite, Secret, Refused;
    /// Signing in and what comes before it.
    SignIn: Auth, Secret | Publishable, OfNobody;
    /// What somebody does who is signed in.
    SignedInUser: Auth, Secret | Publishable, OfSomebody;
    /// Reading subscriptions. Users get their own only.
    SubscriptionsRead: SubscriptionsRead, Secret | Publishable, OfSomebodyOrAServer;
    /// Reading what a user may do.
    EntitlementsRead: SubscriptionsRead, Secret, OfAnybody;
    /// Reading what one may do oneself.
    OwnEntitlements: SubscriptionsRead, Secret | Publishable, OfSomebody;
    /// Changing subscriptions.
    SubscriptionsWrite: SubscriptionsWrite, Secret, Refused;
    /// Reading payments. Users get their own only.
    PaymentsRead: PaymentsRead, Secret | Publishable, OfSomebodyOrAServer;
    /// Changing payments.
    PaymentsWrite: PaymentsWrite, Secret, Refused;
    /// Looking up users.
    UsersRead: UsersRead, Secret, OfAnybody;
    /// Making users ahead of time.
    UsersWrite: UsersWrite, Secret, Refused;
}

/// A caller that may do what `N` asks for.
pub struct Caller<N> {
    known: Arc<Known>,
    user: Option<Arc<SignedIn>>,
    arrival: Arrival,
    need: PhantomData<N>,
}

impl<N> Caller<N> {
    /// Whose data it is about.
    pub fn tenant(&self) -> &Tenant {
        &self.known.tenant
    }

    /// The calling application.
    pub fn client(&self) -> &Client {
        &self.known.client
    }

    /// Who sent the request.
    pub fn sender(&self) -> Sender {
        self.arrival.sender
    }

    /// Who is behind it.
    pub fn source(&self) -> Source {
        Source::of(&self.known.client, self.arrival.sender)
    }

    /// On behalf of whom it calls, if of anybody.
    pub fn user(&self) -> Option<&SignedIn> {
        self.user.as_deref()
    }

    /// The same, of an endpoint that asks for somebody.
    pub fn signed_in(&self) -> Result<&SignedIn, Problem> {
        let missing = || Problem::internal(&"an endpoint that does not ask for a user");
        self.user().ok_or_else(missing)
    }

    /// Whether it sees what is not for everybody: a server that calls for itself.
    pub fn sees_everything(&self) -> bool {
        self.known.client.kind == ClientKind::Secret && self.user.is_none()
    }

    /// Whose idempotency keys these are.
    pub fn scope(&self) -> idempotency::Scope {
        idempotency::Scope {
            tenant: self.known.tenant.id.uuid(),
            client: self.known.client.id.uuid(),
            user: self.user().map(|found| found.user.id.uuid()),
        }
    }

    /// Who makes a change, when it does.
    pub fn by(&self) -> By {
        By {
            client: Some(self.known.client.id),
            user: self.user().map(|found| found.user.id),
            request_id: Some(self.arrival.id.as_str().to_owned()),
        }
    }

    /// A change that it made to its tenant's data, ready to be recorded.
    pub fn event<'a, T>(
        &self,
        ids: Ids,
        now: Timestamp,
        kind: EventKind,
        subject: impl Id,
        data: &'a T,
    ) -> Event<'a, T> {
        Event {
            id: ids.next(now),
            at: now,
            tenant: self.known.tenant.id,
            kind,
            subject: subject.uuid(),
            by: self.by(),
            data,
        }
    }
}

impl<N, S> FromRequestParts<S> for Caller<N>
where
    N: Need,
    S: KnowsBearers + Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Some(Identified { arrival, client }) = parts.extensions.remove() else {
            return Err(Problem::internal(&"an endpoint without a gate before it"));
        };
        // One body for missing, unknown, expired and disabled.
        let known = client?.ok_or_else(|| {
            let detail = "send the header client-id, once, with the id of a client that is known and enabled";
            Problem::new(Code::InvalidClient, detail)
        })?;
        admit::<N>(&known.client, arrival.sender, &parts.headers)?;
        let source = Source::of(&known.client, arrival.sender);
        let user = on_behalf::<N>(state.bearers(), &known, source, &parts.headers).await?;
        Ok(Self {
            known,
            user,
            arrival,
            need: PhantomData,
        })
    }
}

/// On behalf of whom the request is sent, as far as the endpoint cares.
async fn on_behalf<N: Need>(
    bearers: &Bearers,
    known: &Known,
    source: Source,
    headers: &HeaderMap,
) -> Result<Option<Arc<SignedIn>>, Problem> {
    let given = headers.contains_key(header::AUTHORIZATION);
    match N::USER {
        OnBehalf::OfAnybody if !given => Ok(None),
        OnBehalf::OfSomebodyOrAServer if !given => match known.client.kind {
            ClientKind::Secret => Ok(None),
            ClientKind::Publishable => {
                let detail = format!(
                    "this needs a secret client with the scope {}, or a user's access token in the header Authorization",
                    N::SCOPE
                );
                Err(Problem::new(Code::InsufficientScope, detail))
            }
        },
        OnBehalf::OfAnybody | OnBehalf::OfSomebody | OnBehalf::OfSomebodyOrAServer => {
            let signed_in = bearers.signed_in(&known.tenant, headers, source);
            Ok(Some(signed_in.await?))
        }
        OnBehalf::Refused if given => {
            let detail = "users do not do this: a server sends it for itself, without the header Authorization";
            Err(Problem::new(Code::NotForUsers, detail))
        }
        OnBehalf::OfNobody | OnBehalf::Refused => Ok(None),
    }
}

/// Refuses a known client that calls from the wrong place, or for more than it may have.
fn admit<N: Need>(client: &Client, sender: Sender, headers: &HeaderMap) -> Result<(), Problem> {
    let refuse = |code, detail: String| Err(Problem::new(code, detail));

    if !client.allow_addresses.is_empty() {
        let mut allowed = client.allow_addresses.iter();
        if !allowed.any(|net| net.contains(&sender.peer.0)) {
            let detail =
                "this client may not be used from the address that the connection comes from";
            return refuse(Code::AddressNotAllowed, detail.to_owned());
        }
    }

    let origin = headers.get(header::ORIGIN);
    match client.kind {
        ClientKind::Secret if origin.is_some() || headers.contains_key(SEC_FETCH_SITE) => {
            let detail = "a secret client must not be used in a browser; rotate it and use a publishable one there";
            return refuse(Code::SecretClientInBrowser, detail.to_owned());
        }
        ClientKind::Publishable => {
            if !origin.is_none_or(|origin| client.is_page(origin)) {
                let detail = "the page's origin is not among this client's allowed origins";
                return refuse(Code::OriginNotAllowed, detail.to_owned());
            }
        }
        ClientKind::Secret => {}
    }

    if !N::KINDS.contains(&client.kind) {
        let detail = format!(
            "this needs a secret client with the scope {}; this client is publishable",
            N::SCOPE
        );
        return refuse(Code::InsufficientScope, detail);
    }
    if !client.scopes.contains(&N::SCOPE) {
        let detail = format!(
            "this needs the scope {}, which this client does not have",
            N::SCOPE
        );
        return refuse(Code::InsufficientScope, detail);
    }
    Ok(())
}
