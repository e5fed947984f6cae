//! [`ClientMiddleware`] runs before every endpoint. It looks up the client or the staff member, applies request rate
//! limits and handles CORS.
//!
//! **Credentials.** An API key in the header `client-id`, or else the cookie of the console.
//!
//! **Rate limits.** A secret client's requests count against the client, and not against its address,
//! which carries all of its traffic. A staff member's requests count against the member. All other requests count against their peer (IP address or IPv6
//! network), and not against the client: a publishable key is public, so strangers could use up the
//! limit of a product's users.
//!
//! **CORS.** A preflight request does not name the client, so it is allowed if any publishable
//! client allows the origin. The request that follows is checked against its own client.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use perennial_domain::{ClientId, ClientKind, StaffId};

use super::{
    ClientCache, Principal, ResolvedPrincipal,
    principal::PrincipalLookup,
    refusals::{Refusals, RefusedCaller, refusal_code},
    staff::cookie,
};
use crate::{
    config::LimitsConfig,
    http::{
        middleware::{RequestContext, within_deadline},
        network_rate_limit::NetworkRateLimit,
        problem::{Code, Problem},
        rate_limit::{Quota, RateLimit, RateLimitDecision},
        same_origin::OwnOrigin,
    },
};

/// The header with the client's API key, which is not its [`ClientId`] in the database.
const CLIENT_ID: HeaderName = HeaderName::from_static("client-id");

const CORS_ALLOWED_HEADERS: &str = "accept, authorization, client-id, content-type, \
                                    idempotency-key, if-match, if-none-match, x-forwarded-for, x-request-id";
const CORS_EXPOSED_HEADERS: &str = "api-version, etag, idempotency-replayed, location, ratelimit, \
                                    ratelimit-policy, retry-after, www-authenticate, x-request-id";
/// How long browsers may cache a preflight response, in seconds.
const CORS_MAX_AGE: u32 = 600;

pub struct ClientMiddleware {
    client_cache: ClientCache,
    client_limit: RateLimit<ClientId>,
    staff_limit: RateLimit<StaffId>,
    peer_limit: NetworkRateLimit<IpAddr>,
    refusals: Refusals,
    /// The pages that may use secret clients. `None` in live mode, where no page may.
    own_origin: Option<OwnOrigin>,
}

/// Request extension that passes the principal on to [`Caller`](super::Caller).
#[derive(Clone)]
pub(super) struct ClientLookup {
    pub(super) request: RequestContext,
    pub(super) principal: PrincipalLookup,
    /// Whether a page of this service sent the request, in sandbox mode.
    pub(super) is_own_page: bool,
}

impl ClientMiddleware {
    pub fn new(
        client_cache: ClientCache,
        limits: LimitsConfig,
        own_origin: Option<OwnOrigin>,
    ) -> Self {
        let refusals = client_cache.refusals();
        let now = Instant::now();
        let per_second = |subject, limit| Quota {
            subject,
            unit: "requests",
            limit,
            window: Duration::from_secs(1),
        };
        Self {
            client_cache,
            client_limit: RateLimit::new(per_second("client", limits.rate_per_client), now),
            staff_limit: RateLimit::new(per_second("staff member", limits.rate_per_client), now),
            peer_limit: NetworkRateLimit::new(per_second("peer", limits.rate_per_peer), now),
            refusals,
            own_origin,
        }
    }

    /// Starts listening for changed clients, which enables their cache.
    pub fn start(&self) {
        self.client_cache.start();
    }

    /// Runs `next` unless a rate limit is exceeded or the request is a CORS preflight.
    pub async fn handle<F: Future<Output = Response>>(
        &self,
        mut request: Box<Request>,
        context: RequestContext,
        next: impl FnOnce(Box<Request>) -> F,
    ) -> Response {
        let principal = self.find_principal(request.headers(), &context).await;
        let resolved = principal.as_ref().ok().and_then(Option::as_ref);
        let decision = self.count_request(resolved, &context);
        let origin = request.headers().get(header::ORIGIN).cloned();
        let caller = RefusedCaller {
            client: resolved
                .and_then(|known| Some((known.tenant.id, known.principal.client_id()?))),
            staff: resolved.and_then(|known| known.principal.staff_id()),
            remote_addr: context.remote_addr,
        };
        let cors = origin.zip(resolved.cloned());

        let exceeded = decision.as_ref().filter(|decision| !decision.allowed);
        let mut response = if let Some(decision) = exceeded {
            decision.to_problem().into_response()
        } else if let Some(origin) = preflight_origin(&request) {
            let preflight = within_deadline(context.deadline(), self.preflight_response(origin));
            let response = Box::pin(preflight).await;
            response.unwrap_or_else(IntoResponse::into_response)
        } else {
            let own_origin = self.own_origin.as_ref();
            let lookup = ClientLookup {
                request: context,
                principal,
                is_own_page: own_origin.is_some_and(|own| own.is_same_origin(request.headers())),
            };
            request.extensions_mut().insert(lookup);
            next(request).await
        };
        if let Some(code) = refusal_code(&response) {
            let origin = cors.as_ref().map(|(origin, _)| origin);
            Box::pin(self.refusals.record(code, caller, origin)).await;
        }
        let headers = response.headers_mut();
        if let Some(decision) = decision {
            decision.write_headers(headers);
        }
        if let Some((origin, resolved)) = cors {
            add_cors_headers(&resolved.principal, origin, headers);
        }
        response
    }

    /// Runs `next`, an endpoint whose requests have a signature instead of a client. The endpoint counts requests without a
    /// valid signature by [`Self::check_peer`].
    pub async fn handle_signed<F: Future<Output = Response>>(
        &self,
        mut request: Box<Request>,
        context: RequestContext,
        next: impl FnOnce(Box<Request>) -> F,
    ) -> Response {
        let caller = RefusedCaller {
            client: None,
            staff: None,
            remote_addr: context.remote_addr,
        };
        request.extensions_mut().insert(context);
        let response = next(request).await;
        if let Some(code) = refusal_code(&response) {
            Box::pin(self.refusals.record(code, caller, None)).await;
        }
        response
    }

    /// Counts a request against its peer. Returns the problem of a request above the limit.
    pub fn check_peer(&self, context: &RequestContext) -> Result<(), Problem> {
        match self.count_request(None, context) {
            Some(decision) if !decision.allowed => Err(decision.to_problem()),
            _ => Ok(()),
        }
    }

    async fn find_principal(
        &self,
        headers: &HeaderMap,
        context: &RequestContext,
    ) -> PrincipalLookup {
        let Some(api_key) = api_key(headers) else {
            let token = staff_token(headers).filter(|_| context.serves_console);
            let Some(token) = token else {
                return Ok(None);
            };
            let load = self.find_staff(token, Some(context));
            return Box::pin(within_deadline(context.deadline(), load)).await?;
        };
        if let Some(resolved) = self.client_cache.get(api_key, context.received_at) {
            return Ok(Some(resolved));
        }
        // Hot path: boxed, so that the rarely used future does not enlarge every request's future
        // (measured: all boxes of this kind together save 7,000 instructions per session check).
        let load = self.load_client(api_key, context);
        Box::pin(within_deadline(context.deadline(), load)).await?
    }

    /// Looks up the principal of a request that is still in progress. The request is not counted again.
    pub(super) async fn find_again(&self, headers: &HeaderMap) -> PrincipalLookup {
        if let Some(api_key) = api_key(headers) {
            return Ok(self.client_cache.find(api_key, &self.client_limit).await?);
        }
        match staff_token(headers) {
            Some(token) => self.find_staff(token, None).await,
            None => Ok(None),
        }
    }

    /// Looks up the staff member with this cookie. For a peer over its limit, only the cache is used, so that guessed
    /// cookies cause no database load.
    async fn find_staff(&self, token: &[u8], context: Option<&RequestContext>) -> PrincipalLookup {
        let may_load = context.is_none_or(|context| {
            let peer = context.remote_addr.client_ip.network();
            let exhausted = self.peer_limit.exhausted(&peer, context.received_at);
            exhausted.is_none()
        });
        let found = self
            .client_cache
            .find_staff(token, &self.staff_limit, may_load);
        Ok(found.await?)
    }

    /// Looks up a client that is not cached. For a peer over its limit, only keys that recently
    /// belonged to a secret client are looked up, so that guessed keys cause no database load.
    async fn load_client(&self, api_key: &[u8], context: &RequestContext) -> PrincipalLookup {
        let peer = context.remote_addr.client_ip.network();
        let exhausted = self
            .peer_limit
            .exhausted(&peer, context.received_at)
            .is_some();
        if exhausted && !self.client_cache.was_secret(api_key) {
            return Ok(None);
        }
        // The cached client contains its counter of `client_limit`.
        Ok(self.client_cache.find(api_key, &self.client_limit).await?)
    }

    /// Counts the request against its secret client or staff member, or else against its peer.
    fn count_request(
        &self,
        resolved: Option<&Arc<ResolvedPrincipal>>,
        context: &RequestContext,
    ) -> Option<RateLimitDecision<'_>> {
        let now = context.received_at;
        match resolved.map(|known| (&known.principal, &known.requests)) {
            Some((Principal::Client(client), requests)) if client.kind == ClientKind::Secret => {
                return self.client_limit.check_counter(requests, now);
            }
            Some((Principal::Staff(_), requests)) => {
                return self.staff_limit.check_counter(requests, now);
            }
            Some((Principal::Client(_), _)) | None => {}
        }
        let peer = context.remote_addr.client_ip.network();
        self.peer_limit.check(&peer, now)
    }

    async fn preflight_response(&self, origin: HeaderValue) -> Response {
        match self.client_cache.is_allowed_origin(&origin).await {
            Err(error) => Problem::from(error).into_response(),
            Ok(false) => {
                let detail = "no publishable client allows this page's origin";
                Problem::new(Code::OriginNotAllowed, detail).into_response()
            }
            Ok(true) => {
                let fixed = HeaderValue::from_static;
                let headers = [
                    (header::ACCESS_CONTROL_ALLOW_ORIGIN, origin),
                    (
                        header::ACCESS_CONTROL_ALLOW_METHODS,
                        fixed("GET, POST, PUT, DELETE"),
                    ),
                    (
                        header::ACCESS_CONTROL_ALLOW_HEADERS,
                        fixed(CORS_ALLOWED_HEADERS),
                    ),
                    (header::ACCESS_CONTROL_MAX_AGE, CORS_MAX_AGE.into()),
                    (header::VARY, fixed("origin, access-control-request-method")),
                ];
                (StatusCode::NO_CONTENT, headers).into_response()
            }
        }
    }
}

/// Returns the `client-id` header if it occurs exactly once and has 1 to 255 bytes.
fn api_key(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(CLIENT_ID).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    Some(value.as_bytes()).filter(|bytes| (1..=255).contains(&bytes.len()))
}

/// Returns the cookie of a staff member, unless the request has a `client-id`, valid or not.
fn staff_token(headers: &HeaderMap) -> Option<&[u8]> {
    if headers.contains_key(CLIENT_ID) {
        return None;
    }
    cookie::find(headers)
}

/// Returns whether the request has the cookie of a staff member as its credential.
pub(super) fn has_staff_cookie(headers: &HeaderMap) -> bool {
    staff_token(headers).is_some()
}

/// Returns the origin if the request is a CORS preflight.
fn preflight_origin(request: &Request) -> Option<HeaderValue> {
    let headers = request.headers();
    let is_preflight = request.method() == Method::OPTIONS
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    headers
        .get(header::ORIGIN)
        .filter(|_| is_preflight)
        .cloned()
}

fn add_cors_headers(principal: &Principal, origin: HeaderValue, headers: &mut HeaderMap) {
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    let client = principal.client();
    if client.is_some_and(|client| client.allows_origin(&origin)) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let exposed = HeaderValue::from_static(CORS_EXPOSED_HEADERS);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}
