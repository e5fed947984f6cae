//! The events of a tenant as a stream of server-sent events.
//!
//! The next part is read when the connection has written the previous one, so a slow client delays its own events and
//! occupies no more memory. A client that does not read at all is disconnected by the write timeout.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use perennial_domain::TenantId;
use tokio::time::Instant;

use super::{
    event_cursor::{EventCursor, EventOrder},
    read_events::{EventReader, has_more},
};
use crate::{
    app::App,
    auth::{Caller, EventsRead},
    events::{log::LoggedEvent, view::EventView},
    http::{
        concurrency_limit::ConcurrencyPermit,
        problem::{Code, Problem},
    },
};

/// Events per read, and so the most that one stream has in memory.
const PAGE_EVENTS: i64 = 50;
/// A comment is sent if there was no event for this long, so that proxies and clients keep the connection open.
const COMMENT_INTERVAL: Duration = Duration::from_secs(15);
/// How often the stream checks that its client may still read events.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait after the database has failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct EventStream {
    app: Arc<App>,
    caller: Caller<EventsRead>,
    /// Of the request.
    headers: HeaderMap,
    reader: EventReader,
    /// The cursor of the last `id` that was sent.
    sent: Option<EventCursor>,
    comment_at: Instant,
    recheck_at: Instant,
    _permit: ConcurrencyPermit<TenantId>,
}

impl EventStream {
    pub(super) fn new(
        app: Arc<App>,
        caller: Caller<EventsRead>,
        headers: HeaderMap,
        reader: EventReader,
        permit: ConcurrencyPermit<TenantId>,
    ) -> Self {
        let now = Instant::now();
        Self {
            app,
            caller,
            headers,
            reader,
            sent: None,
            comment_at: now + COMMENT_INTERVAL,
            recheck_at: now + RECHECK_INTERVAL,
            _permit: permit,
        }
    }

    /// Returns the next part and the stream after it, or `None` at the end: the service stops, the client may no longer
    /// read events, or the log has another history. A client that reconnects gets the reason as a response.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        // The first part is a cursor, so that a client that starts now can continue there before it has an event.
        if self.sent.is_none() {
            let part = self.comment();
            return Some((part, self));
        }
        loop {
            if self.app.closing.is_cancelled() || !self.is_allowed().await {
                return None;
            }
            let tenant = self.caller.tenant();
            match self.reader.read(&self.app, tenant, PAGE_EVENTS).await {
                Ok(page) if !page.events.is_empty() => {
                    let part = self.events(&page.events);
                    return Some((part, self));
                }
                Ok(page) if has_more(&page) => {}
                Ok(_) => self.reader.wait(&self.app, self.comment_at).await,
                Err(problem) if is_temporary(&problem) => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                Err(_) => return None,
            }
            if Instant::now() >= self.comment_at {
                let part = self.comment();
                return Some((part, self));
            }
        }
    }

    /// Checks at most once in [`RECHECK_INTERVAL`]. While the home database is unavailable, the last result is valid.
    async fn is_allowed(&mut self) -> bool {
        if Instant::now() < self.recheck_at {
            return true;
        }
        let recheck = self
            .caller
            .recheck(&self.app.client_middleware, &self.headers);
        let result = recheck.await;
        self.recheck_at = Instant::now() + RECHECK_INTERVAL;
        result.err().is_none_or(|problem| is_temporary(&problem))
    }

    fn events(&mut self, events: &[LoggedEvent]) -> Bytes {
        let mut text = String::new();
        let tenant = self.caller.tenant().id;
        for event in events {
            let cursor = EventCursor {
                epoch: self.reader.cursor.epoch,
                position: event.position,
            };
            let id = cursor.to_text(&self.app, tenant, EventOrder::Log);
            // A record that cannot be serialized cannot have been stored either.
            let data = serde_json::to_string(&EventView::from(event)).unwrap_or_default();
            text += &format!("id: {id}\nevent: {}\ndata: {data}\n\n", event.kind);
            self.sent = Some(cursor);
        }
        self.comment_at = Instant::now() + COMMENT_INTERVAL;
        text.into()
    }

    /// Returns a comment, and the cursor if it has moved past events that the filter excludes. An `id` without data changes
    /// what the client sends as `Last-Event-ID` when it reconnects.
    fn comment(&mut self) -> Bytes {
        self.comment_at = Instant::now() + COMMENT_INTERVAL;
        let cursor = self.reader.cursor;
        if self.sent == Some(cursor) {
            return Bytes::from_static(b":\n\n");
        }
        self.sent = Some(cursor);
        let id = cursor.to_text(&self.app, self.caller.tenant().id, EventOrder::Log);
        format!(":\nid: {id}\n\n").into()
    }
}

/// Returns whether a later read may succeed.
fn is_temporary(problem: &Problem) -> bool {
    [Code::Unavailable, Code::Overloaded].contains(&problem.code())
}

impl IntoResponse for EventStream {
    fn into_response(self) -> Response {
        let fixed = HeaderValue::from_static;
        let headers = [
            (header::CONTENT_TYPE, fixed("text/event-stream")),
            (header::CACHE_CONTROL, fixed("no-store")),
            // nginx would otherwise collect several parts.
            (HeaderName::from_static("x-accel-buffering"), fixed("no")),
        ];
        let parts = stream::unfold(self, Self::next).map(Ok::<_, Infallible>);
        (headers, Body::from_stream(parts)).into_response()
    }
}
