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

use super::{Client, Directory, Known};
use crate::{
    config::Limits,
    http::{
        envelope::{Arrival, in_time},
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
    clients: RateLimit<ClientId>,
    peers: RateLimit<IpAddr>,
}

/// What is known of a request, for [`super::Caller`].
#[derive(Clone)]
pub(super) struct Identified {
    pub(super) arrival: Arrival,
    /// Whose its `client-id` is: nobody's if it is missing or unknown.
    pub(super) client: Result<Option<Arc<Known>>, Problem>,
}

impl Gate {
    /// A gate with these limits.
    pub fn new(directory: Directory, limits: Limits) -> Self {
        let now = Instant::now();
        let quota = |who, most| Quota {
            who,
            what: "requests",
            most,
            window: Duration::from_secs(1),
        };
        Self {
            directory,
            clients: RateLimit::new(quota("client", limits.rate_per_client), now),
            peers: RateLimit::new(quota("peer", limits.rate_per_peer), now),
        }
    }

    /// Lets a request in, if it does not come too often.
    pub async fn pass<F: Future<Output = Response>>(
        &self,
        mut request: Box<Request>,
        arrival: Arrival,
        next: impl FnOnce(Box<Request>) -> F,
    ) -> Response {
        let client = self.identify(request.headers(), &arrival).await;
        let known = client.as_ref().ok().and_then(Option::as_ref);
        let standings = self.count(known, &arrival);
        let origin = request.headers().get(header::ORIGIN).cloned();
        let page = origin.zip(known.cloned());

        let refusing = standings
            .iter()
            .flatten()
            .find(|standing| !standing.allowed);
        let mut response = if let Some(standing) = refusing {
            standing.refusal().into_response()
        } else if let Some(origin) = preflight(&request) {
            let answered = in_time(arrival.deadline(), self.answer_preflight(origin));
            let answered = Box::pin(answered).await;
            answered.unwrap_or_else(IntoResponse::into_response)
        } else {
            let identified = Identified { arrival, client };
            request.extensions_mut().insert(identified);
            next(request).await
        };
        let headers = response.headers_mut();
        for standing in standings.into_iter().flatten() {
            standing.tell(headers);
        }
        if let Some((origin, known)) = page {
            show_to_page(&known.client, origin, headers);
        }
        response
    }

    /// Who has the request's `client-id`. For a peer that has used up its requests nothing is looked up but
    /// what was a server's lately: the rest counts as nobody, and is refused for that.
    async fn identify(
        &self,
        headers: &HeaderMap,
        arrival: &Arrival,
    ) -> Result<Option<Arc<Known>>, Problem> {
        let Some(value) = client_id(headers) else {
            return Ok(None);
        };
        if let Some(known) = self.directory.remembered(value, arrival.at) {
            return Ok(Some(known));
        }
        // Boxed, because it is rare and large, and every request would carry the place for it along.
        let found = self.look_up(value, arrival);
        Box::pin(in_time(arrival.deadline(), found)).await?
    }

    async fn look_up(
        &self,
        value: &[u8],
        arrival: &Arrival,
    ) -> Result<Option<Arc<Known>>, Problem> {
        let peer = arrival.sender.peer.network();
        let exhausted = self.peers.exhausted(&peer, arrival.at);
        if exhausted.is_some() && !self.directory.was_a_servers(value) {
            return Ok(None);
        }
        Ok(self.directory.find(value, &self.clients).await?)
    }

    /// Counts a request where it counts. What its peer may not send does not count against the client,
    /// which that peer shares with others.
    fn count(&self, known: Option<&Arc<Known>>, arrival: &Arrival) -> [Option<Standing<'_>>; 2] {
        let secret = known.is_some_and(|known| known.client.kind == ClientKind::Secret);
        let peer = (!secret).then(|| arrival.sender.peer.network());
        let of_peer = peer.and_then(|peer| self.peers.take(&peer, arrival.at));
        let of_client = known
            .filter(|_| of_peer.as_ref().is_none_or(|standing| standing.allowed))
            .and_then(|known| self.clients.take_of(&known.requests, arrival.at));
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
