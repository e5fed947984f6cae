//! Counts and logs refused credentials and authorizations: all responses with status 401 or 403.
//!
//! Every refusal is counted. Its log line names the code, the client, the addresses and the request,
//! but no credential. The number of lines is capped, per code and peer and in total, so that refused
//! requests cannot fill the disk; the next line says how many were left out.
//!
//! A secret client in a browser is also recorded as an event, because its key has leaked.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    http::{HeaderValue, StatusCode},
    response::Response,
};
use metrics::Counter;
use perennial_domain::{ClientId, EventKind, Id, StaffId, TenantId};
use serde_json::json;
use url::Url;

use super::client_cache::MAX_ORIGIN_BYTES;
use crate::{
    clock::{Clock, IdGenerator},
    db::{Databases, Error},
    events::{self, Actor, Event},
    http::{
        client_ip::RemoteAddr,
        problem::{Code, Problem},
        rate_limit::{Quota, RateLimit},
    },
    logging::RequestLogContext,
    randomness::Randomness,
};

/// Per code and peer, and minute.
const MAX_LINES_PER_PEER: u32 = 10;
/// Per minute.
const MAX_LINES: u32 = 600;
/// The minimum time between two events of a client.
const EVENT_INTERVAL: Duration = Duration::from_hours(1);

pub(super) struct Refusals {
    db: Arc<Databases>,
    clock: Clock,
    counters: Vec<(Code, Counter)>,
    lines_by_peer: RateLimit<(Code, IpAddr)>,
    lines: RateLimit<()>,
    /// Lines that were left out since the last one.
    omitted_lines: AtomicU64,
    events: RateLimit<ClientId>,
}

/// The origin of a refused request.
#[derive(Debug, Clone, Copy)]
pub(super) struct RefusedCaller {
    /// `None` if the `client-id` header is missing or unknown.
    pub client: Option<(TenantId, ClientId)>,
    pub staff: Option<StaffId>,
    pub remote_addr: RemoteAddr,
}

fn is_refusal(status: StatusCode) -> bool {
    status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN
}

/// Returns the problem code of a response that refuses a credential or an authorization.
pub(super) fn refusal_code(response: &Response) -> Option<Code> {
    let problem = || response.extensions().get::<Problem>();
    is_refusal(response.status())
        .then(problem)?
        .map(Problem::code)
}

impl Refusals {
    pub(super) fn new(db: Arc<Databases>, clock: Clock) -> Self {
        let now = Instant::now();
        let quota = |subject, limit, window| Quota {
            subject,
            unit: "refusals",
            limit,
            window,
        };
        let minute = Duration::from_mins(1);
        let codes = { Code::ALL.iter().copied() }.filter(|code| is_refusal(code.status()));
        // Registered now, so that each starts at 0 and the first refusal is an increase.
        let counter =
            |code: Code| metrics::counter!("perennial_refusals_total", "code" => code.as_str());
        Self {
            db,
            clock,
            counters: codes.map(|code| (code, counter(code))).collect(),
            lines_by_peer: RateLimit::new(quota("peer", MAX_LINES_PER_PEER, minute), now),
            lines: RateLimit::new(quota("process", MAX_LINES, minute), now),
            omitted_lines: AtomicU64::new(0),
            events: RateLimit::new(quota("client", 1, EVENT_INTERVAL), now),
        }
    }

    /// Counts and logs a refusal.
    pub(super) async fn record(
        &self,
        code: Code,
        caller: RefusedCaller,
        origin: Option<&HeaderValue>,
    ) {
        if let Some((_, counter)) = self.counters.iter().find(|(counted, _)| *counted == code) {
            counter.increment(1);
        }
        self.log(code, caller);
        if code == Code::SecretClientInBrowser
            && let Some((tenant, client)) = caller.client
            && is_within(&self.events, &client)
            && let Err(error) = self.record_browser_use(tenant, client, origin).await
        {
            tracing::warn!(%error, "cannot record that a secret client was used in a browser");
        }
    }

    fn log(&self, code: Code, caller: RefusedCaller) {
        let RemoteAddr {
            client_ip,
            forwarded_for,
        } = caller.remote_addr;
        let is_logged = is_within(&self.lines_by_peer, &(code, client_ip.network()))
            && is_within(&self.lines, &());
        if !is_logged {
            self.omitted_lines.fetch_add(1, Ordering::Relaxed);
            return;
        }
        tracing::info!(
            code = code.as_str(),
            client = caller.client.map(|(_, client)| tracing::field::display(client)),
            staff = caller.staff.map(tracing::field::display),
            peer = %client_ip.0,
            forwarded_for = forwarded_for.map(tracing::field::display),
            omitted_lines = self.omitted_lines.swap(0, Ordering::Relaxed),
            "request refused"
        );
    }

    /// Records the event in the home cell, where clients are stored.
    async fn record_browser_use(
        &self,
        tenant: TenantId,
        client: ClientId,
        origin: Option<&HeaderValue>,
    ) -> Result<(), Error> {
        let at = self.clock.now();
        // Parsed and formatted, because the header could contain anything.
        let origin = origin
            .filter(|origin| origin.len() <= MAX_ORIGIN_BYTES)
            .and_then(|origin| Url::parse(origin.to_str().ok()?).ok())
            .map(|url| url.origin())
            .filter(url::Origin::is_tuple)
            .map(|origin| origin.ascii_serialization());
        let event = Event {
            id: IdGenerator(Randomness).generate(at),
            at,
            tenant,
            kind: EventKind::ClientUsedInBrowser,
            subject: client.uuid(),
            actor: Actor {
                client: Some(client),
                request_id: RequestLogContext::current_id(),
                ..Actor::default()
            },
            data: &json!({"id": client.to_string(), "origin": origin}),
        };
        let mut connection = self.db.home()?.connection().await?;
        let tx = connection.begin();
        events::record(&tx, &event).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// Counts against a limit and returns whether it was not exceeded.
fn is_within<K: std::hash::Hash + Eq + Clone>(limit: &RateLimit<K>, key: &K) -> bool {
    limit
        .check(key, Instant::now())
        .is_none_or(|decision| decision.allowed)
}
