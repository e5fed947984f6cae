//! The gate: what every request passes before it comes to an endpoint.
//!
//! Here the client is looked up, once, for whoever asks later ([`super::Caller`] decides what it may
//! do); its requests are counted; and a browser is told which pages may read the answer.
//!
//! **Rates.** A known client's requests count against the client. Whatever does not come from a
//! secret client (a browser, a guess, nobody at all) counts against its peer too: a publishable id can
//! be used by anybody, so one of its users must not use up what is meant for all. A server's requests
//! do not count against its address, where its whole traffic comes from.
//!
//! **Pages of other origins (CORS).** A browser asks first, without saying for which client; that is
//! answered for the pages of all publishable clients together. The request itself is then held to the
//! pages of its own client.

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
use perennial_domain::{ClientId, ClientKind};

use super::{Bearers, Client, Directory, Known};
use crate::{
    config::Limits,
    http::{
        envelope::{Deadline, in_time},
        peer::Peer,
        problem::{Code, Problem},
        rate::{Quota, RateLimit, Standing},
    },
};

const CLIENT_ID: HeaderName = HeaderName::from_static("client-id");

/// What a page may send besides what every page may.
const ALLOWED_HEADERS: &str =
    "accept, authorization, client-id, content-type, idempotency-key, if-match, x-request-id";
/// What a page may read besides what every page may.
const EXPOSED_HEADERS: &str = "api-version, etag, idempotency-replayed, location, ratelimit, \
                               ratelimit-policy, retry-after, x-request-id";
/// How long a browser may remember that it asked, in seconds.
const MAX_AGE: u32 = 600;

/// Looks clients up and counts what they send.
pub struct Gate {
    directory: Directory,
    bearers: Arc<Bearers>,
    clients: RateLimit<ClientId>,
    peers: RateLimit<IpAddr>,
}

/// Whose the request's `client-id` is, for [`super::Caller`]: nobody's if it is missing or unknown. And who
/// can tell whose its bearer is.
#[derive(Clone)]
pub(super) struct Identified {
    pub(super) client: Result<Option<Arc<Known>>, Problem>,
    pub(super) bearers: Arc<Bearers>,
}

impl Gate {
    /// A gate with these limits.
    pub fn new(directory: Directory, bearers: Arc<Bearers>, limits: Limits) -> Self {
        let now = Instant::now();
        let quota = |who, most| Quota {
            who,
            what: "requests",
            most,
            window: Duration::from_secs(1),
        };
        Self {
            directory,
            bearers,
            clients: RateLimit::new(quota("client", limits.rate_per_client), now),
            peers: RateLimit::new(quota("peer", limits.rate_per_peer), now),
        }
    }

    /// Lets a request in, if it does not come too often.
    pub async fn pass<F: Future<Output = Response>>(
        &self,
        mut request: Request,
        deadline: Deadline,
        next: impl FnOnce(Request) -> F,
    ) -> Response {
        let now = Instant::now();
        let peer = request.extensions().get::<Peer>().copied();
        let identified = self.identify(request.headers(), peer, now, deadline).await;
        let known = identified.as_ref().ok().cloned().flatten();
        let client = known.as_ref().map(|known| &known.client);
        let standings = self.count(client, peer, now);
        let origin = request.headers().get(header::ORIGIN).cloned();

        let refusing = standings
            .iter()
            .flatten()
            .find(|standing| !standing.allowed);
        let mut response = if let Some(standing) = refusing {
            standing.refusal().into_response()
        } else if let Some(origin) = preflight(&request) {
            let answered = Box::pin(in_time(deadline, self.answer_preflight(origin))).await;
            answered.unwrap_or_else(IntoResponse::into_response)
        } else {
            request.extensions_mut().insert(Identified {
                client: identified,
                bearers: self.bearers.clone(),
            });
            next(request).await
        };
        let headers = response.headers_mut();
        for standing in standings.into_iter().flatten() {
            standing.tell(headers);
        }
        if let (Some(client), Some(origin)) = (client, origin) {
            show_to_page(client, origin, headers);
        }
        response
    }

    /// Who has the request's `client-id`. For a peer that has used up its requests nothing is looked up but
    /// what was a server's lately: the rest counts as nobody, and is refused for that.
    async fn identify(
        &self,
        headers: &HeaderMap,
        peer: Option<Peer>,
        now: Instant,
        deadline: Deadline,
    ) -> Result<Option<Arc<Known>>, Problem> {
        let Some(value) = client_id(headers) else {
            return Ok(None);
        };
        if let Some(known) = self.directory.remembered(value).await {
            return Ok(Some(known));
        }
        // Boxed, because it is rare and large, and every request would carry the place for it along.
        Box::pin(in_time(deadline, self.look_up(value, peer, now))).await?
    }

    async fn look_up(
        &self,
        value: &[u8],
        peer: Option<Peer>,
        now: Instant,
    ) -> Result<Option<Arc<Known>>, Problem> {
        let exhausted = peer.and_then(|peer| self.peers.exhausted(&peer.network(), now));
        if exhausted.is_some() && !self.directory.was_a_servers(value).await {
            return Ok(None);
        }
        Ok(self.directory.find(value).await?)
    }

    /// Counts a request where it counts. What its peer may not send does not count against the client,
    /// which that peer shares with others.
    fn count(
        &self,
        client: Option<&Client>,
        peer: Option<Peer>,
        now: Instant,
    ) -> [Option<Standing>; 2] {
        let secret = client.is_some_and(|client| client.kind == ClientKind::Secret);
        let of_peer = peer
            .filter(|_| !secret)
            .and_then(|peer| self.peers.take(&peer.network(), now));
        let of_client = client
            .filter(|_| of_peer.as_ref().is_none_or(|standing| standing.allowed))
            .and_then(|client| self.clients.take(&client.id, now));
        [of_client, of_peer]
    }

    async fn answer_preflight(&self, origin: HeaderValue) -> Response {
        match self.directory.is_page_of_a_client(&origin).await {
            Err(error) => Problem::from(error).into_response(),
            Ok(false) => {
                let detail = "no publishable client has this page's origin among its allowed ones";
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
                    (header::ACCESS_CONTROL_ALLOW_HEADERS, fixed(ALLOWED_HEADERS)),
                    (header::ACCESS_CONTROL_MAX_AGE, MAX_AGE.into()),
                    (header::VARY, fixed("origin, access-control-request-method")),
                ];
                (StatusCode::NO_CONTENT, headers).into_response()
            }
        }
    }
}

/// The value of the header, if it was sent once.
fn client_id(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(CLIENT_ID).iter();
    let only = values.next().filter(|_| values.next().is_none())?;
    Some(only.as_bytes()).filter(|value| (1..=255).contains(&value.len()))
}

/// The origin of a browser's question whether it may ask at all.
fn preflight(request: &Request) -> Option<HeaderValue> {
    let headers = request.headers();
    let asks = request.method() == Method::OPTIONS
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    headers.get(header::ORIGIN).filter(|_| asks).cloned()
}

/// Lets a page read the answer, if it is one of the client's.
fn show_to_page(client: &Client, origin: HeaderValue, headers: &mut HeaderMap) {
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if client.is_page(&origin) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let exposed = HeaderValue::from_static(EXPOSED_HEADERS);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}
